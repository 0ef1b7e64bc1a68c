"""What a person decides about where an operation waits: another queue, another priority class.

As a move it is one transaction with its audit row, and it can be previewed. The rules are judged again by eligibility:
whether the queue takes the project and routes to an environment, and all others.
"""

from collections.abc import Sequence

import msgspec

from landbridge.bus.envelope import Outbound
from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.centre_give_way import why_not_requeue
from landbridge.domain.requirements import DEFAULT_QUEUE
from landbridge.runtime import logs
from landbridge.runtime.auth import Principal
from landbridge.runtime.problems import ProblemError
from landbridge.store import Tx
from landbridge_dispatch.coordinator import audit
from landbridge_dispatch.coordinator.acting import Order, Outcome, act, changes
from landbridge_dispatch.coordinator.core import Core
from landbridge_dispatch.coordinator.declarations import owned

log = logs.get(__name__)


class _Spec(msgspec.Struct, frozen=True):
    queue: str = ""


class _Document(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


async def requeue(core: Core, operation: str, principal: Principal, order: Order, *, dry_run: bool) -> Outcome:
    """Have an operation that waits do so in another queue, by another priority class, or both."""
    if not order.queue and not order.priority:
        raise ProblemError(422, "Invalid request", "expected a queue, a priority class, or both")

    async def work(tx: Tx) -> tuple[Outcome, Sequence[Outbound]]:
        session, _ = await owned(core, tx, operation, principal)
        before = session.state(operation)
        queue = order.queue or before.queue or await _declared(tx, operation) or DEFAULT_QUEUE
        why = why_not_requeue(before) or core.queues.why_not(queue, order.priority, before.project)
        if why:
            raise ProblemError(409, "Cannot be changed", f"operation {operation}: {why}")
        wish = model.QueueChanged(principal.name, order.reason, order.queue, order.priority)
        session.decide_for_gang(operation, wish)  # its gang waits in one queue
        listed = await changes(tx, {operation: before}, session.states())
        events = await session.finish()
        await audit.record(
            tx,
            "queue-move" if order.queue else "queue-prioritise",
            principal.name,
            order.reason,
            operation=operation,
            queue=queue,
            priority=order.priority,
        )
        by = f" by priority class {order.priority}" if order.priority else ""
        text = [f"It waits in queue {queue}{by} and is judged again by every rule, at the end of the line there."]
        return {"operation": operation, "queue": queue, "changes": listed, "text": text}, events

    outcome = await act(core, work, "requeue", dry_run=dry_run)
    if not dry_run:
        log.info("queue_changed", operation=operation, queue=outcome["queue"], by=principal.name, reason=order.reason)
    return outcome


async def _declared(tx: Tx, operation: str) -> str:
    """Return the queue that its own specification names."""
    body = await tx.fetchval(
        "select c.body from operation o join content c on c.sha256 = o.spec_sha256 where o.id = $1::uuid", operation
    )
    return msgspec.json.decode(body, type=_Document).spec.queue
