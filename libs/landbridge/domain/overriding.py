"""A named person places one operation in an environment that the rules or its queue would not give it.

Not against everything: where work and data may be by law, how well they are protected, licences, and what the site
itself accepts stay in force; and an environment that cannot be reached, or takes nothing, cannot be made to.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from landbridge.domain.violation import Violation

# Rules that nobody overrides, with what each protects.
UNBREAKABLE: Final = {
    "residency": "where work and data may be",
    "security-tier": "how well they must be protected",
    "model-licence": "licences of models and data",
    "data-movement": "where data may be copied",
    "site-policy": "what the site accepts",
}
# Rules whose violation means that the environment would not take it, whoever asked.
UNABLE: Final = {
    "features": "its dispatcher would refuse it",
    "contract": "no version of its contract takes work",
    "control": "it takes nothing new until it is resumed",
    "link": "it is not heard",
}
# The site's last word, which other rules speak.
_SITE: Final = frozenset({("connections", "not-accepted-by-site"), ("identity", "role-not-accepted-by-site")})


class EmergencyOverride(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Who placed an operation where, why, and which rules and what turn in the queue were overridden for it.

    `waited` is what it waited for by its queue, as a sentence; empty: it was its turn, or no rule let it have one.
    """

    environment: str
    by: str
    reason: str
    overridden: tuple[Violation, ...] = ()
    waited: str = ""


def stands(violations: Iterable[Violation]) -> list[Violation]:
    """Return what no override may break, or what none could; empty: a person may place it there."""
    return [
        violation
        for violation in violations
        if violation.constraint in UNBREAKABLE
        or violation.constraint in UNABLE
        or (violation.constraint, violation.reason) in _SITE
    ]


def why_it_stands(violation: Violation) -> str:
    """Say why a violation cannot be overridden, and what stands there."""
    protects = UNBREAKABLE.get(violation.constraint)
    unable = UNABLE.get(violation.constraint)
    why = unable if unable is not None else f"{protects or 'what the site accepts'} is not overridden"
    return f"{violation.constraint}: {why}: wanted {violation.wanted}, found {violation.found}"
