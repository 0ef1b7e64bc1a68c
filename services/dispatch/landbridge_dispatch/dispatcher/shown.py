"""What the executor shows: read at the start, watched while running, sent as an inventory when the centre asks."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Final

from landbridge.domain.ownership import environment_model as own
from landbridge.runtime import logs
from landbridge.schema.wire.report_v1 import SurveyedSlot
from landbridge_dispatch.dispatcher.desk import Desk, Item
from landbridge_dispatch.dispatcher.reporting import Reporter
from landbridge_dispatch.dispatcher.wire import ending, held_slot, slot_state, to_wire
from landbridge_dispatch.executors.protocol import Executor, SlotKey, SlotView

log = logs.get(__name__)


async def restore(executor: Executor, desk: Desk) -> int:
    """Take over what an earlier dispatcher left. Return how many slots that were."""
    found: dict[str, list[SlotView]] = {}
    views = await executor.inventory()
    for view in views:
        found.setdefault(view.operation, []).append(view)
    desk.restore(
        {
            operation: own.Restarted(tuple(held_slot(view) for view in slots), (), _newest(slots).policy)
            for operation, slots in found.items()
        }
    )
    return len(views)


def _newest(views: list[SlotView]) -> SlotView:
    return max(views, key=lambda view: view.epoch)


async def send_inventory(executor: Executor, reporter: Reporter, term: int) -> None:
    """Send what waits, then everything that there is."""
    await reporter.flush()
    views = await executor.inventory()
    await reporter.publish_inventory(term, [slot_state(view, term) for view in views])
    log.info("inventory_sent", term=term, slots=len(views))


async def survey(
    executor: Executor, reporter: Reporter, clock: Callable[[], datetime], may_speak: Callable[[], bool], every_s: float
) -> None:
    """Tell the centre now and then what is here, while it hears and nothing is out of order. Runs until cancelled."""
    while True:
        await asyncio.sleep(every_s)
        if not may_speak():
            continue
        at = clock()
        await reporter.flush()  # what has happened is told before what is left
        views = await executor.inventory()
        held = [held_slot(view) for view in views]
        slots = [
            SurveyedSlot(operation=view.operation, epoch=to_wire(view.epoch), over=slot.phase in _OVER)
            for view, slot in zip(views, held, strict=True)
            if slot.phase is not own.SlotPhase.EMPTY
        ]
        await reporter.publish_survey(at, slots)


_OVER: Final = frozenset({own.SlotPhase.FINISHED, own.SlotPhase.TOMBSTONE})


class Watcher:
    """Brings every change that the executor lets be observed to the desk."""

    def __init__(self, executor: Executor, desk: Desk) -> None:
        self._executor = executor
        self._desk = desk
        self._running: set[SlotKey] = set()

    async def run(self) -> None:
        """Watch until cancelled."""
        async for views in self._executor.observe():
            items: list[Item] = []
            for view in views:
                items += self._read(view)
            if items:
                self._desk.feed(items)

    def _read(self, view: SlotView) -> list[Item]:
        key, operation, epoch = view.key, view.operation, view.epoch
        match view.phase:
            case own.SlotPhase.RUNNING:
                return self._read_running(key, view)
            case own.SlotPhase.FINISHED | own.SlotPhase.TOMBSTONE if view.ended:
                self._running.discard(key)
                self._desk.tell(key, view.report, ended=True)
                return [(operation, ending(view))]
            case own.SlotPhase.EMPTY:
                self._running.discard(key)
                return [(operation, own.Disappeared(epoch))]
        return []

    def _read_running(self, key: SlotKey, view: SlotView) -> list[Item]:
        items: list[Item] = []
        if key not in self._running:
            self._running.add(key)
            items.append((key.operation, own.Started(view.epoch)))
        if view.report is not None and view.report.checkpoint is not None:
            items.append((key.operation, own.Checkpointed(view.epoch)))
        self._desk.tell(key, view.report, ended=False)
        return items
