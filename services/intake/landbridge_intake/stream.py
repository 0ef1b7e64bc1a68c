"""Submissions from the stream: every message is answered by an event, whatever it holds."""

from collections.abc import Sequence
from hashlib import blake2b

from landbridge.bus.envelope import Inbound, Outbound
from landbridge.bus.subjects import project_of
from landbridge.domain.errors import Problem
from landbridge.domain.ids import cloud_event_key
from landbridge.runtime import logs
from landbridge.runtime.clock import Clock
from landbridge.runtime.failures import PermanentFailure
from landbridge.runtime.loop import Loop
from landbridge.store import TransientStoreError, Tx
from landbridge_intake import messages
from landbridge_intake.accept import Acceptor, Submission

log = logs.get(__name__)

_UNEXPECTED = Problem("", "not-handled", "this could not be handled; the reason is in intake's log", "tell an operator")


class SubmissionHandler:
    """The message loop's handler: decides about a batch. Refusals are events, never failures."""

    def __init__(self, acceptor: Acceptor) -> None:
        self._acceptor = acceptor

    async def __call__(self, tx: Tx, batch: Sequence[Inbound]) -> Sequence[Outbound]:
        decision = await self._acceptor.decide(tx, [submission_of(message) for message in batch])
        return decision.events


def submission_of(message: Inbound) -> Submission:
    """Return the submission in a message. The project is that of the subject: the broker checked who may use it."""
    source, name = _clean(message.source), _clean(message.id)
    return Submission(
        message.body,
        cloud_event_key(source, name),
        project_of(message.subject),
        source=source,
        submission=name,
        by=source,
        traceparent=message.traceparent,
    )


class SubmissionLoop(Loop):
    """The message loop with two differences that submissions need.

    A message with a known id and another body is not a duplicate but a conflict, so the body belongs to the inbox key.
    A message that is no CloudEvent is dead-lettered as everywhere, and its sender is told as well.
    """

    clock: Clock

    def _key(self, message: Inbound) -> str:
        digest = blake2b(message.body, digest_size=16).hexdigest()
        return f"{message.subject}\x00{message.source}\x00{message.id}\x00{digest}"

    async def _bury(self, message: Inbound, error: BaseException) -> None:
        await self._tell_sender(message, error)
        await super()._bury(message, error)

    async def _tell_sender(self, message: Inbound, error: BaseException) -> None:
        """Publish the refusal. A crash before the burial repeats it: told twice is better than not at all."""
        problem = _UNEXPECTED
        if isinstance(error, PermanentFailure):
            hint = "send a CloudEvent with ce-id, ce-source and ce-type"
            problem = Problem("", "not-a-submission", str(error), hint)
        source, name = _clean(message.source), _clean(message.id)
        event = messages.refused(project_of(message.subject), source, name, (problem,), self.clock.wall())

        async def work(_: Tx) -> Sequence[Outbound]:
            return [event]

        while True:
            try:
                await self._outbox.commit(work, cause=[message])
                return
            except TransientStoreError as failure:
                log.warning("a refusal waits for Postgres", error=str(failure))
                await self._database.wait_until_healthy()


def _clean(text: str) -> str:
    """Return `text` without what can not be stored: NUL and lone surrogates."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
