"""Whether what runs in an environment is what the record says: compared now and then, while both are well.

A survey is what the environment holds. It and the record are of slightly different moments, so that one difference
alone tells nothing: only what two surveys in a row show is drift.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum

import msgspec

from landbridge.domain.lifecycle import TERMINAL
from landbridge.domain.ownership.centre_model import OWNED, OperationState, PlacementState
from landbridge.domain.ownership.epochs import Epoch


class Kind(StrEnum):
    """How what runs and what is recorded differ. Stable codes."""

    UNKNOWN = "unknown-work"  # it runs there, and nothing of it is recorded
    ELSEWHERE = "runs-elsewhere"  # it runs there, and the record has it in another place, another epoch, or over
    MISSING = "missing-work"  # it is recorded there, and the environment holds nothing of it
    VERSION = "contract-version"  # it runs under a contract version that is over
    REMOVED = "removed-externally"  # somebody at the site removed it


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """One difference: what the record says, and what is found. Both for people."""

    kind: Kind
    operation: str
    epoch: Epoch
    wanted: str
    found: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind.value, self.operation, str(self.epoch)


def compare_survey(
    environment: str,
    term: int,
    present: Collection[tuple[str, Epoch]],
    states: Mapping[str, OperationState],
    standing: Collection[int] | None,
    *,
    over: Collection[tuple[str, Epoch]] = (),
    complete: bool = True,
) -> list[Drift]:
    """Return all differences between a survey and the record, in order.

    `present` is what is there and not over, `over` what is there and has ended, told or not. `states` holds at least
    every operation that is named in it, as far as it is known, and what is recorded in the environment. `standing` are
    the contract versions that are not over; None: not known. A survey that is not `complete` proves no absence.
    """
    found = [drift for item in present for drift in _present(environment, item, states, standing)]
    if complete:
        held = {*present, *over}
        found += [
            _missing(environment, state)
            for state in states.values()
            if _is_here(state, environment) and state.grant_term <= term and (state.operation, state.epoch) not in held
        ]
    return sorted(found, key=lambda drift: drift.key)


def removed(environment: str, operation: str, epoch: Epoch, message: str) -> Drift:
    """Return the drift of work that the environment says somebody removed."""
    wanted = f"epoch {epoch} in {environment}"
    return Drift(
        kind=Kind.REMOVED, operation=operation, epoch=epoch, wanted=wanted, found=message or "removed at the site"
    )


def _present(
    environment: str, item: tuple[str, Epoch], states: Mapping[str, OperationState], standing: Collection[int] | None
) -> list[Drift]:
    operation, epoch = item
    state = states.get(operation)
    runs = f"epoch {epoch} runs in {environment}"
    if state is None:
        return [Drift(kind=Kind.UNKNOWN, operation=operation, epoch=epoch, wanted="nothing of it recorded", found=runs)]
    if state.placement is PlacementState.RECOVERING:
        return []
    if not _is_here(state, environment) or state.epoch != epoch:
        return [Drift(kind=Kind.ELSEWHERE, operation=operation, epoch=epoch, wanted=_recorded(state), found=runs)]
    version = state.contract_version
    if standing is None or not version or version in standing:
        return []
    wanted = f"contract version {', '.join(map(str, sorted(standing))) or 'none'} of {environment}"
    found = f"it runs under version {version}, which is over"
    return [Drift(kind=Kind.VERSION, operation=operation, epoch=epoch, wanted=wanted, found=found)]


def _missing(environment: str, state: OperationState) -> Drift:
    return Drift(
        kind=Kind.MISSING,
        operation=state.operation,
        epoch=state.epoch,
        wanted=_recorded(state),
        found=f"{environment} holds nothing of it",
    )


def _is_here(state: OperationState, environment: str) -> bool:
    return state.environment == environment and state.placement in OWNED


def _recorded(state: OperationState) -> str:
    if state.phase in TERMINAL:
        return f"over: {state.phase.value}"
    if state.placement in OWNED:
        return f"epoch {state.epoch} in {state.environment}, {state.phase.value}"
    return f"nowhere: {state.phase.value}"
