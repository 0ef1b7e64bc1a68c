"""The auditor: compares what clients were told, what really ran and what was committed, and trusts none of them."""

import itertools
import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from landbridge.bus.envelope import Inbound
from landbridge.bus.scan import scan
from landbridge.bus.streams import DEADLETTERS, OPERATIONS, TERMINAL

from .load import Acknowledged
from .truth import Run, Truth
from .world import World

SCHEMAS = ("intake", "eligibility", "ranking", "dispatch")
CANARY_S = 60.0
_NAMED = 20
# A frozen simulated site notices the end of its lease when it wakes: its heap is behind by one turn of its loop.
_WAKE_S = 1.0


@dataclass(frozen=True, slots=True)
class Frozen:
    """A time during which a site's dispatcher was stopped or dead, on the boot clock."""

    site: str
    start: float
    stop: float


@dataclass
class Committed:
    """The OPERATIONS stream: distinct events, by operation where they have one."""

    events: dict[str, list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    dead_letters: list[str] = field(default_factory=list)
    repeated: int = 0

    def take(self, message: Inbound) -> None:
        if message.id in self.ids:
            self.repeated += 1
            return
        self.ids.add(message.id)
        event = message.subject.split(".")[3]
        if event == "refused":
            self.refused.add(str(json.loads(message.body).get("submission")))
        elif event not in {"assessed", "waiting", "decided", "requeued", "freed"}:
            body = json.loads(message.body)
            self.events.setdefault(str(body["operation"]), []).append((event, body))


@dataclass
class Findings:
    """What does not fit. Every list is empty after a good run."""

    lost: list[str] = field(default_factory=list)
    double_owned: list[str] = field(default_factory=list)
    double_committed: list[str] = field(default_factory=list)
    unexplained_overlap: list[str] = field(default_factory=list)
    started_after_end: list[str] = field(default_factory=list)
    committed_without_run: list[str] = field(default_factory=list)
    out_of_order: list[str] = field(default_factory=list)
    never_stopped: list[str] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)
    projection: list[str] = field(default_factory=list)
    unrecorded_starts: list[str] = field(default_factory=list)
    dead_letters: list[str] = field(default_factory=list)
    not_recovered: list[str] = field(default_factory=list)
    explained_overlaps: int = 0
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        return not any(isinstance(value, list) and value for value in vars(self).values())

    def to_json(self) -> dict[str, Any]:
        """Return counts, and the first examples of what is not zero."""
        lists = {name: value for name, value in vars(self).items() if isinstance(value, list)}
        examples = {name: value[:_NAMED] for name, value in lists.items() if value}
        numbers = {name: len(value) for name, value in lists.items()}
        return {**numbers, "explained_overlaps": self.explained_overlaps, "counts": self.counts, "examples": examples}


async def read_stream(world: World) -> Committed:
    """Read all of OPERATIONS as it is now, and what nobody could handle."""
    bus = await world.bus("streams")
    committed = Committed()
    try:
        async for message in scan(bus, OPERATIONS):
            committed.take(message)
        async for message in scan(bus, DEADLETTERS):
            told = (message.headers.get(name, "") for name in ("lb-consumer", "lb-subject", "lb-id", "lb-error"))
            committed.dead_letters.append(" ".join(told))
    finally:
        await bus.drain()
    return committed


def audit(
    told: Acknowledged,
    truth: Truth,
    committed: Committed,
    frozen: Sequence[Frozen],
    said: Mapping[str, int] | None = None,
) -> Findings:
    """Compare everything. `said`: how often workloads themselves said that they run, by operation. Pure."""
    found = Findings(
        contradictions=list(told.contradictions),
        double_owned=list(truth.repeated),
        dead_letters=list(committed.dead_letters),
    )
    for operation, times in (said or {}).items():
        if times > (recorded := len(truth.runs.get(operation, []))):
            found.unrecorded_starts.append(f"{operation}: ran {times} times, {recorded} starts are recorded")
    _check_promises(told, committed, found)
    for operation, events in committed.events.items():
        runs = sorted(truth.runs.get(operation, []), key=lambda run: run.start)
        _check_commits(operation, events, found)
        _check_ends(operation, events, runs, found)
    for operation, runs in truth.runs.items():
        _check_owners(operation, sorted(runs, key=lambda run: run.start), committed, frozen, found)
    phases = Counter(event for events in committed.events.values() for event, _ in events if event in TERMINAL)
    found.counts = {
        **{f"ended_{phase}": phases[phase] for phase in TERMINAL},
        "acknowledged": len(told.operations),
        "cancels_acknowledged": len(told.cancels),
        "operations_in_stream": len(committed.events),
        "runs": truth.count(),
        "operations_with_several_runs": sum(len(runs) > 1 for runs in truth.runs.values()),
        "repeated_messages": committed.repeated,
    }
    return found


def _check_promises(told: Acknowledged, committed: Committed, found: Findings) -> None:
    for key, operation in told.operations.items():
        events = committed.events.get(operation, [])
        if key in committed.refused:
            found.lost.append(f"{operation} ({key}): acknowledged, then refused")
        elif not any(event in TERMINAL for event, _ in events):
            last = events[-1][0] if events else "nothing"
            found.lost.append(f"{operation} ({key}): no end; the last event is {last}")


def _check_commits(operation: str, events: Sequence[tuple[str, dict[str, Any]]], found: Findings) -> None:
    ends = [event for event, _ in events if event in TERMINAL]
    if len(ends) > 1:
        found.double_committed.append(f"{operation}: {', '.join(ends)}")
    numbers = [int(body["opSeq"]) for _, body in events]
    if sorted(numbers) != list(range(1, len(numbers) + 1)):
        found.out_of_order.append(f"{operation}: events numbered {sorted(numbers)}")
    ordered = sorted(events, key=lambda each: int(each[1]["opSeq"]))
    epochs = [_epoch(body) for _, body in ordered if body.get("epoch") and body.get("verdict") in (None, "accepted")]
    if epochs != sorted(epochs):
        found.out_of_order.append(f"{operation}: epochs go back: {epochs}")
    after = [event for event, body in ordered if event != "observed" and ends and _after_end(ordered, body)]
    if after:
        found.out_of_order.append(f"{operation}: {', '.join(after)} after its end")


def _after_end(ordered: Sequence[tuple[str, dict[str, Any]]], body: dict[str, Any]) -> bool:
    end = next(int(each["opSeq"]) for event, each in ordered if event in TERMINAL)
    return int(body["opSeq"]) > end and body.get("phase") not in TERMINAL


def _check_ends(
    operation: str, events: Sequence[tuple[str, dict[str, Any]]], runs: Sequence[Run], found: Findings
) -> None:
    """A completed operation ran to its end in the environment and epoch that were committed."""
    for event, body in events:
        if event != "completed":
            continue
        epoch = ".".join(str(part) for part in _epoch(body))
        if not any(run.epoch == epoch and run.site == body.get("environment") for run in runs):
            where = f"{body.get('environment')} {epoch}"
            found.committed_without_run.append(f"{operation}: completed in {where}; ran: {[*map(_named, runs)]}")


def _is_canary_at_work(operation: str, run: Run) -> bool:
    """A canary of the verifier comes and goes as it likes: one may run during the audit, but not for long."""
    return operation.startswith("probe-") and time.clock_gettime(time.CLOCK_BOOTTIME) - run.start < CANARY_S


def _check_owners(
    operation: str, runs: Sequence[Run], committed: Committed, frozen: Sequence[Frozen], found: Findings
) -> None:
    by_epoch: dict[str, set[str]] = {}
    for run in runs:
        by_epoch.setdefault(run.epoch, set()).add(run.site)
        if run.stop is None and not _is_canary_at_work(operation, run):
            found.never_stopped.append(f"{operation} {_named(run)}")
    for epoch, sites in by_epoch.items():
        if len(sites) > 1:
            found.double_owned.append(f"{operation} {epoch} ran in {', '.join(sorted(sites))}")
    for one, other in itertools.pairwise(runs):
        if one.stop is not None and one.stop <= other.start:
            continue
        if _frozen_meanwhile(one, other, frozen):
            found.explained_overlaps += 1
        else:
            found.unexplained_overlap.append(f"{operation}: {_named(one)} and {_named(other)}")
    ended = _ended_at(committed.events.get(operation, []))
    late = [run for run in runs if ended is not None and run.wall > ended]
    found.started_after_end += [f"{operation}: {_named(run)} started after the end was recorded" for run in late]


def _frozen_meanwhile(one: Run, other: Run, frozen: Sequence[Frozen]) -> bool:
    """Simulated work lives in its dispatcher: while that is frozen or dead, nothing runs, whatever the journal says."""
    for run, begin, end in ((one, other.start, one.stop), (other, one.start, other.stop)):
        if run.simulated and end is not None:
            stood = [each for each in frozen if each.site == run.site]
            if any(each.start <= max(begin, run.start) and each.stop + _WAKE_S >= end for each in stood):
                return True
    return False


def _ended_at(events: Iterable[tuple[str, dict[str, Any]]]) -> float | None:
    from datetime import datetime

    for event, body in events:
        if event in TERMINAL:
            return datetime.fromisoformat(body["at"]).timestamp()
    return None


def _epoch(body: dict[str, Any]) -> tuple[int, int]:
    epoch = body.get("epoch") or {}
    return int(epoch.get("generation", 0)), int(epoch.get("counter", 0))


def _named(run: Run) -> str:
    stop = "on" if run.stop is None else f"{run.stop:.3f}"
    return f"{run.site} {run.epoch} [{run.start:.3f}-{stop} {run.cause}]"
