"""Every code that a person may meet has an entry, and every violation reads as its entry says."""

import ast
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from landbridge.domain import constraints, hardware
from landbridge.domain.candidate import Link, LinkState
from landbridge.domain.constraints import CONSTRAINTS
from landbridge.domain.constraints.proof import FAILED_CODE, STALE_CODE, UNKNOWN_CODE
from landbridge.domain.queues import WaitReason
from landbridge.domain.reasons import REFUSALS, VIOLATIONS, next_step, reason_of
from landbridge.domain.reasons.waits import WAITS
from landbridge.domain.verdict import Outlook
from landbridge.domain.violation import Kind, Violation
from landbridge.domain.waiting import NoPlace
from support.deciding import NOW, a_catalogue, a_contract, an_environment, an_operation, judged_by
from unit.domain.constraint_cases import CASES
from unit.domain.constraint_worlds import GPUS, MAINTENANCE

# Where a call that makes a violation has its code.
_PLACES = {"Violation": 1, "Mismatch": 0, "_violation": 0, "_outside": 0}
CODE = re.compile(r"[a-z]+(?:-[a-z]+)*")
_GUARANTEED = a_catalogue(a_contract(), classes={"gpu-80gb": {"attributes": {"memory": "80Gi"}}})
# Codes that the cases of the rules do not meet.
MORE = [
    ("hardware", an_operation(resources={"accelerator": {"exception": {"product": "H200"}}}), an_environment()),
    (
        "hardware",
        an_operation(resources={"accelerator": {"class": "gpu-80gb"}}),
        an_environment(classes={"gpu-80gb": {**GPUS["gpu-80gb"], "memory": "40Gi"}}, catalogue=_GUARANTEED),
    ),
    (
        "hardware",
        an_operation(resources={"accelerator": {"memory": "40Gi"}}),
        an_environment(classes=GPUS, link=Link(LinkState.CONNECTED, NOW, frozenset({"type.job"}))),
    ),
    (
        "hardware",
        an_operation(
            resources={"accelerator": {"memory": "40Gi"}},
            command=None,
            image={"registry": "events", "variants": {"a": {"digest": "sha256:0", "accelerator": "gpu-40gb"}}},
        ),
        an_environment(classes=GPUS),
    ),
    ("security-tier", an_operation(constraints={"securityTier": "top"}), an_environment()),
    ("compute", an_operation(), an_environment(classes={"cpu-general": {"cpu": "64", "memory": None}})),
    (
        "compute",
        an_operation(resources={"requests": {"ephemeral-storage": "9Ti"}}),
        an_environment(classes={"cpu-general": {"ephemeral-storage": "1Ti"}}),
    ),
]


def _met() -> Iterator[Violation]:
    for rule, _, operation, environment, _ in CASES:
        yield from judged_by(rule, operation, environment)
    for rule, operation, environment in MORE:
        yield from judged_by(rule, operation, environment)
    for hours in (-1, 0):
        work = an_operation(lifecycle={"expectedDuration": "2h"})
        yield from judged_by("maintenance", work, MAINTENANCE, NOW + timedelta(hours=hours))


def test_a_violation_reads_as_the_table_says() -> None:
    for violation in _met():
        reason = reason_of(violation)
        assert reason is not None, str(violation)
        assert reason.fits(violation), (str(violation), reason)


def test_the_cases_meet_every_code_of_the_table() -> None:
    evidence = {UNKNOWN_CODE, FAILED_CODE, STALE_CODE}
    found = [reason_of(violation) for violation in _met()]
    met = {(violation.constraint, violation.reason) for violation in _met()}
    met |= {(reason.rule, reason.code) for reason in found if reason is not None}
    assert {(reason.rule, reason.code) for reason in VIOLATIONS if reason.code not in evidence} <= met
    assert {code for _, code in met} >= evidence


def test_every_code_in_the_rules_source_is_in_the_table() -> None:
    """Also one that no case meets: the source is read, not run."""
    folder = Path(constraints.__file__).parent
    known = {reason.code for reason in VIOLATIONS}
    for path in [*folder.glob("*.py"), Path(hardware.__file__)]:
        for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
            place = _PLACES.get(ast.unparse(call.func).split(".")[-1])
            code = call.args[place] if place is not None and len(call.args) > place else None
            if isinstance(code, ast.Constant):
                assert code.value in known, (path.name, code.value)


def test_the_table_has_no_code_twice_and_only_rules_that_exist() -> None:
    keys = [(reason.rule, reason.code) for reason in VIOLATIONS]
    assert len(keys) == len(set(keys))
    assert {reason.rule for reason in VIOLATIONS} == {constraint.name for constraint in CONSTRAINTS}
    assert all(CODE.fullmatch(code.removesuffix(":<name>")) for _, code in keys)


def test_the_next_step_names_the_environment_and_a_later_code_has_none() -> None:
    stale = Violation("evidence", STALE_CODE, Kind.NOT_NOW, "fresh proof of runtime", "…")
    assert "landbridge env verify cloud-b" in next_step(stale, "cloud-b")
    assert not next_step(Violation("evidence", "of-a-later-release", Kind.NEVER, "a", "b"), "cloud-b")


# -- waits and refusals -----------------------------------------------------------------------------------------------

# Words that stand where codes stand and are none.
_NO_CODES = {"checkpoint-then-stop", "ephemeral-storage", "name-or-all"}
_HYPHENATED = re.compile(r"[a-z]+(?:-[a-z0-9]+)+")
_SOURCES = (
    "libs/landbridge/domain/documents",
    "services/intake/landbridge_intake",
    "services/contract-verifier/landbridge_contract_verifier",
)


def test_every_reason_to_wait_is_told() -> None:
    told = {each.code for each in WAITS}
    assert told == {str(code) for code in (*WaitReason, *NoPlace, *Outlook) if code}
    assert all(each.meaning and each.next for each in WAITS)


def test_every_code_of_a_refusal_is_told_and_no_other() -> None:
    """The sources are read: what stands in the place of a code has an entry."""
    told = [each.code for _, codes in REFUSALS for each in codes]
    assert len(told) == len(set(told))
    root = Path(__file__).parents[3]
    found = {code for folder in _SOURCES for path in (root / folder).glob("*.py") for code in _codes(path)}
    assert found - _NO_CODES - set(told) == set()
    written = "".join(path.read_text() for folder in _SOURCES for path in (root / folder).glob("*.py"))
    assert [code for code in told if f'"{code}"' not in written] == []


def _codes(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        places: list[ast.expr] = []
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("Problem", "problem"):
            places = node.args[1:2]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("stop", "_stop", "Rule"):
            places = node.args[:1]
        elif (
            isinstance(node, ast.Return | ast.Yield) and isinstance(node.value, ast.Tuple) and len(node.value.elts) > 2
        ):
            places = node.value.elts[:1]
        yield from (
            place.value
            for place in places
            if isinstance(place, ast.Constant) and isinstance(place.value, str) and _HYPHENATED.fullmatch(place.value)
        )
