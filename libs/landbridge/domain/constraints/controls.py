"""Every security control that the operation names is in force here, and proven where a probe can prove it."""

from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

from landbridge.domain import claims
from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints.base import OK, Rule, Violations, earliest, listed
from landbridge.domain.constraints.proof import proven_until, unproven
from landbridge.domain.contract import Contract
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class Control(NamedTuple):
    """How a contract states a control, and the claims whose evidence proves it.

    `stated` returns True or False, or None if the contract says nothing about it.
    """

    stated: Callable[[Contract], bool | None]
    claims: Callable[[Contract], tuple[str, ...]]


def _network(contract: Contract) -> bool | None:
    network = contract.boundaries.network
    return network.default == "deny" if network is not None and network.default else None


def _storage(contract: Contract) -> bool | None:
    stated = [storage.encrypted for storage in contract.storage.values()]
    if not stated or None in stated:
        return False if False in stated else None
    return all(stated)


def _signatures(contract: Contract) -> bool | None:
    admission = contract.boundaries.admission
    return admission.require_signature if admission is not None else None


def _images(contract: Contract) -> bool | None:
    admission = contract.boundaries.admission
    return bool(admission.images) if admission is not None else None


def _pods(contract: Contract) -> bool | None:
    admission = contract.boundaries.admission
    return admission.pod_security == "restricted" if admission is not None and admission.pod_security else None


def _tokens(contract: Contract) -> bool | None:
    identity = contract.boundaries.identity
    return bool(identity.token_ttl) if identity is not None else None


def _tenancy(contract: Contract) -> bool | None:
    tenancy = contract.boundaries.tenancy
    return bool(tenancy.namespace) if tenancy is not None else None


def _control_plane(field: str, value: object) -> Callable[[Contract], bool | None]:
    def stated(contract: Contract) -> bool | None:
        section = contract.boundaries.control_plane
        found = getattr(section, field, None)
        return None if found in (None, "") else found == value

    return stated


def _always(*names: str) -> Callable[[Contract], tuple[str, ...]]:
    return lambda contract: names  # noqa: ARG005


def _storage_claims(contract: Contract) -> tuple[str, ...]:
    return tuple(claims.storage(name) for name in contract.storage)


CONTROLS: Final = {
    "default-deny-egress": Control(_network, _always(claims.NETWORK)),
    "encrypted-storage": Control(_storage, _storage_claims),
    "signed-images": Control(_signatures, _always(claims.ADMISSION)),
    "approved-images": Control(_images, _always(claims.ADMISSION)),
    "restricted-pods": Control(_pods, _always(claims.ADMISSION)),
    "short-lived-identity": Control(_tokens, _always(claims.IDENTITY)),
    "tenant-isolation": Control(_tenancy, _always(claims.TENANCY)),
    "secure-boot": Control(_control_plane("node_trust", "secure-boot"), _always(claims.CONTROL_PLANE)),
    "audited-operators": Control(_control_plane("operator_access", "audited"), _always(claims.CONTROL_PLANE)),
    "own-control-plane": Control(_control_plane("managed", False), _always()),
}


class Controls(Rule):
    """Codes: `control-unknown`, `control-not-stated`, `control-not-in-force`, and those of evidence."""

    name = "controls"
    fields = ("controls",)
    reads = frozenset({Source.CONTRACT, Source.EVIDENCE})
    timed = True

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:
        if not requirements.controls:
            return OK
        violations: list[Violation] = []
        unproven_claims: set[str] = set()
        for name in requirements.controls:
            control = CONTROLS.get(name)
            if control is None:
                found = f"no such control; there are {listed(CONTROLS)}"
                violations.append(Violation(self.name, "control-unknown", Kind.MISCONFIGURED, f"control {name}", found))
                continue
            stated = control.stated(candidate.contract)
            if not stated:
                code, found = ("control-not-in-force", "not in force") if stated is False else _NOT_STATED
                kind = Kind.NEVER if stated is False else Kind.MISCONFIGURED
                violations.append(Violation(self.name, code, kind, f"control {name}", found))
                continue
            unproven_claims.update(control.claims(candidate.contract))
        missing = (unproven(self.name, candidate, claim, now) for claim in sorted(unproven_claims))
        return (*violations, *(violation for violation in missing if violation is not None))

    def holds_until(self, requirements: Requirements, candidate: Candidate, now: datetime) -> datetime | None:
        relied_on = (CONTROLS[name] for name in requirements.controls if name in CONTROLS)
        names = {claim for control in relied_on for claim in control.claims(candidate.contract)}
        return earliest(proven_until(candidate, claim, now) for claim in sorted(names))


_NOT_STATED: Final = ("control-not-stated", "nothing stated")
