"""What the centre knows of environments that it does not hear, in plain words, for people."""

from datetime import UTC, datetime
from typing import Any

from landbridge.domain.ownership.centre_model import OWNED, OperationState, PlacementState
from landbridge.domain.ownership.leases_centre import EnvironmentLease, Link
from landbridge.domain.ownership.wording import Outlook, Prospect, Silence, outlook
from landbridge.store import Tx
from landbridge_dispatch.coordinator import environments, rows
from landbridge_dispatch.coordinator.acting import LISTED, names
from landbridge_dispatch.coordinator.core import Core

_HEADS = {
    Prospect.RUNS_ON: "Run on by their own policy: {n}. Only their environment's word or a person frees them.",
    Prospect.MAY_MOVE: "Stop by themselves: {n}. They may be placed again, the first not before {at}.",
    Prospect.WAITS: "Wait for the environment's return or a person's decision: {n}.",
    Prospect.HELD: "Stop by themselves, but held: {n}. Nothing moves while the centre doubts its own hearing.",
}


async def silence_of(core: Core, tx: Tx, lease: EnvironmentLease) -> Silence:
    """Return what decides about placements in a lost environment."""
    held = await tx.fetchval("select held_since is not null from centre")
    verified = core.verdicts.self_stop_verified(lease.environment, core.clock.wall())
    return Silence(environment=lease.environment, since=lease.link_since, self_stop_verified=verified, held=bool(held))


async def environment_view(core: Core, tx: Tx, name: str) -> dict[str, Any] | None:
    """Return the state of an environment's link and what it means for each placement there; None: never heard."""
    row = await tx.fetchrow("select environment from environment where environment = $1", name)
    if row is None:
        return None
    lease = (await environments.all_leases(tx))[name]
    lost = lease.link is Link.LOST
    found = await rows.peek_active(tx, name)
    outlooks: list[tuple[OperationState, Outlook]] = []
    if lost:
        silence = await silence_of(core, tx, lease)
        outlooks = [(state, outlook(state, silence, core.timing)) for state in found if state.placement in OWNED]
    called = await names(tx, [state.operation for state, _ in outlooks[:LISTED]])
    return {
        "environment": name,
        "link": lease.link.value,
        "since": _moment(lease.link_since),
        "selfStopProven": core.verdicts.self_stop_verified(name, core.clock.wall()),
        "text": _text(lease, found, outlooks),
        "operations": [_row(state, seen, called) for state, seen in outlooks[:LISTED]],
    }


def _text(
    lease: EnvironmentLease, found: list[OperationState], outlooks: list[tuple[OperationState, Outlook]]
) -> list[str]:
    if lease.link is not Link.LOST:
        return []
    lines = [f"Not heard since {_clock(lease.link_since)}: nothing new starts there."]
    offered = sum(1 for state in found if state.placement is PlacementState.OFFERED)
    if offered:
        lines.append(f"Offered and unclaimed: {offered}. Taken back at once.")
    for prospect in Prospect:
        seen = [look for _, look in outlooks if look.prospect is prospect]
        if seen:
            first = min(look.not_before for look in seen)
            lines.append(_HEADS[prospect].format(n=len(seen), at=_clock(first)))
    cancels = sum(1 for state, _ in outlooks if state.cancel)
    if cancels:
        lines.append(f"Cancelled, unconfirmed: {cancels}. Over when the environment proves it, or the rules free it.")
    if not outlooks and not offered:
        lines.append("No work is known to be there.")
    return lines


async def operation_view(core: Core, tx: Tx, state: OperationState) -> dict[str, Any]:
    """Return who owns an operation, and if that is not certain just now, what may change it."""
    lease = (await environments.all_leases(tx)).get(state.environment)
    text: list[str] = []
    not_before = 0
    if lease is not None and lease.link is Link.LOST and state.placement in OWNED:
        seen = outlook(state, await silence_of(core, tx, lease), core.timing)
        not_before = seen.not_before
        when = f" (not before {_clock(not_before)})" if not_before else ""
        text.append(f"Unknown since {_clock(lease.link_since)}: environment {state.environment} is not heard.")
        text.append(f"{seen.text[:1].upper()}{seen.text[1:]}{when}.")
        if state.cancel:
            text.append("Its cancel is unconfirmed until the environment proves the stop.")
    if state.overlap.counter:
        text.append(f"Moved by emergency override: epoch {state.overlap} may still run where it was.")
    if state.pinned:
        text.append(f"A person moves it to {state.pinned}.")
    return {
        "operation": state.operation,
        "phase": state.phase.value,
        "placement": state.placement.value,
        "environment": state.environment,
        "epoch": str(state.epoch),
        "policy": state.policy.policy.value,
        "cancelling": bool(state.cancel),
        "unknownSince": _moment(lease.link_since) if text and lease and lease.link is Link.LOST else "",
        "notBefore": _moment(not_before),
        "text": text,
    }


def _row(state: OperationState, seen: Outlook, called: dict[str, str]) -> dict[str, Any]:
    return {
        "operation": state.operation,
        "name": called.get(state.operation, ""),
        "project": state.project,
        "epoch": str(state.epoch),
        "policy": state.policy.policy.value,
        "prospect": seen.prospect.value,
        "notBefore": _moment(seen.not_before),
        "text": seen.text,
    }


def _moment(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat() if milliseconds else ""


def _clock(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%d %b %H:%M:%S UTC")
