"""What is wrong after a loss in the centre, and the step against it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from landbridge.bus.envelope import Outbound
from landbridge.domain.ownership.epochs import TERMS_PER_GENERATION
from landbridge.domain.ownership.leases_centre import Link
from landbridge.runtime.problems import ProblemError
from landbridge.store import Tx
from landbridge_dispatch.coordinator import audit, environments, recovery, stream_watch
from landbridge_dispatch.coordinator.acting import Order, Outcome, act

if TYPE_CHECKING:
    from landbridge_dispatch.coordinator.service import CoordinatorService

_LOGGED = "select count(*) from event_log where split_part(subject, '.', 3) = 'operation'"


async def diagnose(service: "CoordinatorService") -> dict[str, Any]:
    """Compare what this database knows with what environments and the broker show."""
    core = service.core
    await stream_watch.look(service)
    async with service.database.transaction(readonly=True) as tx:
        generation, recovering = tuple(await tx.fetchrow("select generation, recovering from centre") or (1, False))
        ahead = await tx.fetch("select environment, ahead_term from environment where ahead_term > 0 order by 1")
        leases = await environments.all_leases(tx)
        operations = int(await tx.fetchval("select count(*) from operation"))
        logged = int(await tx.fetchval(_LOGGED))
        unknown = int(await tx.fetchval("select count(*) from quarantine where state = 'open'"))
        following = await _next_generation(tx)
        lost_at = await tx.fetchval("select stream_lost_at from centre")
    waiting = sorted(n for n, lease in leases.items() if recovering and lease.link is not Link.CONNECTED)
    found = await stream_watch.last_message(service)
    stored = -1 if found is None else found[1]
    findings: list[dict[str, str]] = []
    if ahead:
        names = ", ".join(row["environment"] for row in ahead)
        text = f"{names}: hold leases that this database has never granted, so it was restored from a backup"
        findings.append({"code": "centre-restored", "text": text, "step": "generation"})
    if recovering:
        text = f"generation {generation} has begun; nothing is placed before these have shown what they hold: "
        text += ", ".join(waiting) or "none, it ends at once"
        findings.append({"code": "recovering", "text": text, "step": "wait"})
    if found is not None and not found[0]:
        text = "the stream OPERATIONS does not exist: run the init step, which declares all streams, then republish"
        findings.append({"code": "stream-missing", "text": text, "step": "declare"})
    elif lost_at is not None:
        text = f"the stream OPERATIONS went back at {lost_at:%d %b %H:%M:%S} UTC: the broker has lost messages"
        findings.append({"code": "stream-lost", "text": text, "step": "republish"})
    elif 0 <= stored < logged:
        text = f"the stream OPERATIONS has seen {stored} messages, yet {logged} were logged here alone: it was lost"
        findings.append({"code": "stream-lost", "text": text, "step": "republish"})
    if unknown:
        text = f"{unknown} slot(s) of unknown work are undecided: landbridge quarantine list"
        findings.append({"code": "quarantine", "text": text, "step": "quarantine"})
    return {
        "generation": generation,
        "nextGeneration": following,
        "recovering": recovering,
        "waiting": waiting,
        "operations": operations,
        "logged": logged,
        "stored": stored,
        "verdictsOf": sorted(core.verdicts.names()),
        "findings": findings,
    }


async def _next_generation(tx: Tx) -> int:
    """Return a generation above all that environments have shown."""
    row = await tx.fetchrow(
        """select (select generation from centre) as own,
                  (select coalesce(max(ahead_term), 0) from environment) as term,
                  (select coalesce(max(generation), 0) from quarantine) as found"""
    )
    assert row is not None
    ahead = (row["term"] - 1) // TERMS_PER_GENERATION + 1 if row["term"] else 0
    return int(max(row["own"], ahead, row["found"])) + 1


async def begin_next(service: "CoordinatorService", by: str, order: Order, *, dry_run: bool) -> Outcome:
    """Begin a generation above every one ever used. Raises ProblemError 409 for one that is not above the present."""
    core = service.core

    async def work(tx: Tx) -> tuple[Outcome, Sequence[Outbound]]:
        generation = order.generation or await _next_generation(tx)
        begun, events = await recovery.begin(core, tx, generation)
        if not begun:
            raise ProblemError(409, "Not above", f"generation {generation} is not above the present one")
        held = int(await tx.fetchval("select count(*) from operation where placement = 'recovering'"))
        names = sorted(await environments.all_leases(tx))
        await audit.record(tx, "begin-generation", by, order.reason, generation=generation)
        text = [
            f"Generation {generation} begins: every earlier grant and term is void.",
            f"{held} open operation(s) wait until these have shown what they hold: {', '.join(names) or 'none'}.",
            "Then the highest epoch found decides: finished is done, running is adopted, the rest is placed anew.",
        ]
        return {"generation": generation, "operations": held, "text": text}, events

    return await act(core, work, "recovery", dry_run=dry_run, alone=True)
