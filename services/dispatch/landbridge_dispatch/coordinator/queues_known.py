"""The queues that there are, as far as the coordinator has to know them."""

from collections.abc import Mapping

import msgspec

from landbridge.bus.envelope import Inbound
from landbridge.domain.requirements import DEFAULT_QUEUE
from landbridge.runtime import logs
from landbridge.schema.wire.event_v1 import CatalogueEntry

log = logs.get(__name__)


class _QueueSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What matters here of a queue."""

    projects: tuple[str, ...] = ()
    priority_classes: dict[str, int] = {}


class _Queue(msgspec.Struct, frozen=True):
    spec: _QueueSpec = _QueueSpec()


_entry = msgspec.json.Decoder(CatalogueEntry)
_queue = msgspec.json.Decoder(_Queue)


class Queues:
    """Queues by name, from the catalogue's stream. `default` is there without a document."""

    def __init__(self) -> None:
        self._known: dict[str, _QueueSpec] = {}

    def apply(self, message: Inbound) -> None:
        """Take on one document. One that cannot be read here leaves what was known."""
        try:
            entry = _entry.decode(message.body)
            found = None if entry.deleted else _queue.decode(entry.document).spec
        except msgspec.MsgspecError as error:
            log.warning("queue_not_read", error=str(error))
            return
        if found is None:
            self._known.pop(entry.name, None)
        else:
            self._known[entry.name] = found

    def why_not(self, queue: str, priority: str, project: str) -> str:
        """Say why an operation of a project cannot wait in a queue by a priority class; empty = it can."""
        spec = self._known.get(queue) or (_QueueSpec() if queue == DEFAULT_QUEUE else None)
        if spec is None:
            return f"there is no queue {queue}; there are: {_listed({**self._known, DEFAULT_QUEUE: spec})}"
        if spec.projects and project not in spec.projects and "*" not in spec.projects:
            return f"queue {queue} does not take project {project}, it takes: {', '.join(sorted(spec.projects))}"
        if priority and priority not in spec.priority_classes:
            return f"queue {queue} has no priority class {priority}; it has: {_listed(spec.priority_classes)}"
        return ""


def _listed(known: Mapping[str, object]) -> str:
    return ", ".join(sorted(known)) or "none"
