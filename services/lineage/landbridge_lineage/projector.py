"""The message loop's handler: a batch of messages becomes facts, folded states and counts in a few statements."""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from landbridge.bus.envelope import Inbound, Outbound
from landbridge.runtime.failures import PermanentFailure
from landbridge.store import ContentionError, Tx
from landbridge_lineage import writes
from landbridge_lineage.facts import Read, UnreadableError, read
from landbridge_lineage.fold import LIFECYCLE, WAITING, Fact, TooManyParkedError, fold
from landbridge_lineage.state import TERMINAL_PHASES
from landbridge_lineage.writes import Cell, Versioned, cell_of

STATES_MAX: Final = 10_000
KNOWN_MAX: Final = 10_000
_FOLDED: Final = frozenset({LIFECYCLE, WAITING})


class Projector:
    """Folds what happened. Holds the states of operations that are under way, so that they need not be read again."""

    def __init__(self) -> None:
        self._states: OrderedDict[str, Versioned] = OrderedDict()
        self._known: OrderedDict[str, None] = OrderedDict()  # ids of assessments and decisions that are stored
        self._gaps: set[str] = set()  # operations with an event missing, as far as this replica has seen

    def forget(self) -> None:
        """Read everything again: what is held may not be what was kept."""
        self._states.clear()
        self._known.clear()

    async def __call__(self, tx: Tx, batch: Sequence[Inbound]) -> Sequence[Outbound]:
        """Handle first-seen messages. Raises PermanentFailure for what cannot be read, ContentionError for a race."""
        found = _read(batch)
        before = await self._load(tx, {fact.operation for fact in found.facts if fact.lane in _FOLDED})
        after = _folded(before, found.facts)
        await writes.insert_facts(tx, found.facts)
        if await writes.upsert_operations(tx, after) != len(after):
            for operation in after:
                self._states.pop(operation, None)
            raise ContentionError("another replica folded events of the same operations")
        await writes.add_to_tally(tx, _moved(before, after))
        await self._write_documents(tx, found)
        tx.after_commit(lambda: self._remember(after))
        return ()

    async def _load(self, tx: Tx, operations: set[str]) -> dict[str, Versioned]:
        held = {each: self._states[each] for each in operations if each in self._states}
        missing = operations - held.keys()
        return held | await writes.load_states(tx, list(missing)) if missing else held

    async def _write_documents(self, tx: Tx, found: Read) -> None:
        assessments = {key: each for key, each in found.assessments.items() if key not in self._known}
        decisions = {key: each for key, each in found.decisions.items() if key not in self._known}
        await writes.insert_assessments(tx, assessments)
        await writes.insert_decisions(tx, decisions)
        await writes.upsert_verdicts(tx, found.verdicts)
        await writes.insert_refusals(tx, found.refusals)
        fresh = [*assessments, *decisions]
        if fresh:
            tx.after_commit(lambda: self._note(fresh))

    @property
    def gaps(self) -> int:
        """How many operations wait for a missing event."""
        return len(self._gaps)

    def _remember(self, after: Mapping[str, Versioned]) -> None:
        for operation, each in after.items():
            if each.state.parked:
                self._gaps.add(operation)
            else:
                self._gaps.discard(operation)
            if each.state.phase in TERMINAL_PHASES:
                self._states.pop(operation, None)
            else:
                self._states[operation] = each
                self._states.move_to_end(operation)
        while len(self._states) > STATES_MAX:
            self._states.popitem(last=False)

    def _note(self, stored: Iterable[str]) -> None:
        for key in stored:
            self._known[key] = None
        while len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)


def _read(batch: Sequence[Inbound]) -> Read:
    try:
        return read(batch)
    except UnreadableError as error:
        message_id, reason = error.args
        raise PermanentFailure(reason, offenders=[message_id]) from error


def _folded(before: Mapping[str, Versioned], facts: Iterable[Fact]) -> dict[str, Versioned]:
    """Return the states that changed, each one version on."""
    after: dict[str, Versioned] = {}
    for fact in facts:
        if fact.lane not in _FOLDED:
            continue
        operation = fact.operation
        known = after.get(operation) or before.get(operation)
        try:
            state = fold(known.state if known else None, fact)
        except (TooManyParkedError, msgspec.MsgspecError) as error:
            raise PermanentFailure(f"{operation}: {error}", offenders=[fact.id]) from error
        if known is None or state is not known.state:
            base = before[operation].version if operation in before else 0
            after[operation] = Versioned(base + 1, state)
    return after


def _moved(before: Mapping[str, Versioned], after: Mapping[str, Versioned]) -> dict[Cell, int]:
    """Return by how much each count changes."""
    changes: defaultdict[Cell, int] = defaultdict(int)
    for operation, each in after.items():
        left = cell_of(before[operation].state) if operation in before else None
        entered = cell_of(each.state)
        if left != entered:
            if left is not None:
                changes[left] -= 1
            if entered is not None:
                changes[entered] += 1
    return changes
