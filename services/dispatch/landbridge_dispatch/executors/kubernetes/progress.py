"""What follows for a slot from its Job and its pods as they stand: the whole rule, whatever changed. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from msgspec.structs import replace as replace_end

from landbridge.domain.ownership.environment_model import Outcome
from landbridge.domain.ownership.policy import KILL_MARGIN_MS
from landbridge_dispatch.executors.kubernetes import names, records
from landbridge_dispatch.executors.kubernetes.facts import PodFacts, condition, moment, pod_facts
from landbridge_dispatch.executors.kubernetes.operators.kinds import RAYJOB
from landbridge_dispatch.executors.kubernetes.operators.told import NOT_TOLD, State, Told
from landbridge_dispatch.executors.kubernetes.remains import Remains, read_remains
from landbridge_dispatch.executors.kubernetes.states import Meaning, Patience, Row, Seen, row_of
from landbridge_dispatch.executors.kubernetes.vouching import Heard, NodeFacts, heard
from landbridge_dispatch.executors.local.evidence import accepted_exit_codes, judge_acceptance
from landbridge_dispatch.executors.local.outcome import judge

MESSAGE_MAX: Final = 1000
SHORT_S: Final = 30.0
ASK_S: Final = 1.0
_LOST = Row("gone", "the pod that took the slot is not there any more", lambda _: True, Meaning.ENDED, "failed",
            "removed-externally", text="its pod was removed, and nobody here ordered it")  # fmt: skip

_TOLD = Row("told", "the operator says that it has ended", lambda _: True, Meaning.ENDED)


@dataclass(frozen=True, slots=True)
class Progress:
    """`grave`, `end` or `claim` (of a service): to be recorded now, with the manifest of the last `checkpoint`.

    `provider`: the cluster's own state, for people. `again_at`: when to look again at the latest; 0: at a change.
    `vouched`: the end rests on what nodes show, not on what they said.
    """

    grave: records.Grave | None = None
    end: records.End | None = None
    claim: records.Claim | None = None
    checkpoint: str = ""
    provider: str = ""
    again_at: float = 0.0
    vouched: bool = False


NOTHING: Final = Progress()
NOT_STORED: Final = "outputs-not-stored"
TOLD_TO_END: Final = "stopped"
"""What the wrapper says of a signal that came before it had started the work."""


def progress(
    job: Mapping[str, Any],
    pods: Sequence[Mapping[str, Any]],
    now: float,
    *,
    long_s: float,
    since: Callable[[str], float],
    told: Told = NOT_TOLD,
    warned: Callable[[str], str | None] = lambda _uid: "",
    node: Callable[[str], NodeFacts] = lambda _name: NodeFacts(),
) -> Progress:
    """Return what follows. `since`: when a state of this slot, by its code, was first seen; `told`: by its operator.

    `warned`: the reason of the latest warning about a pod, by its UID; empty: there is none; None: not asked yet.
    `node`: how a node stands, by its name.
    """
    record = records.record_of(job)
    noted = records.annotations(job)
    if record is None or names.GRAVE in noted or names.END in noted:
        return NOTHING
    stop = records.read(job, names.STOP, records.Stop)
    stopping = "" if stop is None else stop.reason
    claims = records.claims_of(job)
    facts = [pod_facts(pod) for pod in pods]
    if claims:
        owned = _owned(record, claims, facts, told)
        return _started(record, claims, facts, heard(owned, now, node, since), stopping, now, told)
    return _not_started(job, facts, now, long_s, since, told, warned)


# -- the workload has started ------------------------------------------------------------------------------------------


def _owned(
    record: records.Record, claims: Mapping[str, records.Claim], facts: Sequence[PodFacts], told: Told
) -> list[PodFacts]:
    """Return the pods that took the slot; of those that are not there any more, what their claims say."""
    owners, there = {claim.pod for claim in claims.values()}, {pod.uid for pod in facts}
    owned = [pod for pod in facts if pod.uid in owners]
    if told.state is State.SUCCEEDED or (told.over and record.operator == RAYJOB.operator):
        # Its operator has seen the end itself, and takes pods away only then.
        return [pod for pod in owned if pod.over or not pod.gone]
    grace_s = (max(record.stop_grace_ms, record.loss_grace_ms) + KILL_MARGIN_MS) / 1000
    return owned + [
        PodFacts(claim.pod, rank=int(rank), phase="Unknown", gone=True, node=claim.node, grace_s=grace_s)
        for rank, claim in claims.items()
        if claim.pod not in there
    ]


def _started(
    record: records.Record,
    claims: Mapping[str, records.Claim],
    facts: Sequence[PodFacts],
    owned: Heard,
    stopping: str,
    now: float,
    told: Told,
) -> Progress:
    """Tell of a gang that it has ended when none of its members runs; the first that failed says how."""
    owners = {claim.pod for claim in claims.values()}
    # Of a pod that left no trace, and whose node is there, nothing can be told but that it is gone.
    seen = [
        Seen(pod, read_remains(pod.message), claimed=True, stopping=stopping, told=told)
        for pod in owned.pods
        if pod.phase != "Unknown" or pod.status_reason
    ]
    # Members that have not taken their rank yet count as running: the first may have ended before the last has asked.
    waiting = len(claims) < record.ranks and any(pod.uid not in owners and not pod.ended for pod in facts)
    if waiting or any(not pod.over for pod in owned.pods):
        words = sorted({_provider(each.pod, row_of(each)) for each in seen} | {owned.doubt} - {""})
        return Progress(provider="; ".join(words), again_at=owned.again_at)
    vouched = any(pod.vouched for pod in owned.pods)
    if not seen:
        lost = Seen(PodFacts(uid=""), Remains(), claimed=True, stopping=stopping)
        return Progress(end=_unseen(record, lost, now, told), vouched=vouched)
    failed = [each for each in seen if not each.pod.succeeded]
    # Members that were ended because another one had failed are younger, and mostly deleted.
    first = min(failed or seen, key=lambda each: (each.pod.deleting, each.pod.finished_at or now, each.pod.rank))
    if first.remains.not_started is not None:
        # The keeper had let it start, and the wrapper did not get as far before the lease's end.
        reason, text = first.remains.not_started
        if reason == TOLD_TO_END:  # the wrapper does not know why; the order, if there is one, does
            reason = stopping or reason
        return Progress(grave=records.Grave(reason, now, text[:MESSAGE_MAX], denied=True))
    missing = len(owners) > len(seen) or len(claims) < record.ranks
    row = _lacking(facts, owners, stopping) if not failed and missing else row_of(first)
    if row.code == "ended-with-its-cluster" and first.remains.status is None:
        return Progress(end=_unseen(record, first, now, told))
    sealed = next((each.remains.checkpoint for each in seen if each.remains.checkpoint), "")
    return Progress(
        end=_end(record, first, row, now),
        checkpoint=manifest_of(record, sealed),
        provider=_provider(first.pod, row),
        vouched=vouched,
    )


def _unseen(record: records.Record, lost: Seen, now: float, told: Told) -> records.End:
    """Say how a gang ended whose pods tell nothing: its operator's word counts; metrics and outputs nobody knows."""
    match told.state:
        case State.SUCCEEDED if not lost.stopping:
            return _end(record, replace(lost, remains=Remains(status=0)), _TOLD, now)
        case State.FAILED if not lost.stopping:
            return replace_end(_end(record, lost, _LOST, now), reason="operator-failed", message=told.words)
    return _end(record, lost, _LOST, now)


def _lacking(facts: Sequence[PodFacts], owners: set[str], stopping: str) -> Row:
    """Say how a gang failed of which a member never took its rank."""
    others = [Seen(pod, read_remains(pod.message), claimed=False) for pod in facts if pod.uid not in owners]
    if not others or stopping:
        return _LOST
    row = row_of(others[0])
    reason, text = others[0].remains.not_started or (row.reason or "failed-to-start", row.text)
    return replace(row, outcome=Outcome.FAILED.value, reason=reason, text=f"a member did not start: {text}")


def manifest_of(record: records.Record, sealed: str) -> str:
    """Return the path of a sealed checkpoint's manifest below its connection; empty for none."""
    return f"{record.checkpoint.path}/{sealed}/manifest.json" if record.checkpoint is not None and sealed else ""


def _end(record: records.Record, seen: Seen, row: Row, now: float) -> records.End:
    remains, pod = seen.remains, seen.pod
    status = pod.exit_code if remains.status is None else remains.status
    code, signal = (None, status - 128) if status > 128 else (status, None)
    outputs = {
        name: {"connection": place.connection, "path": place.path, **_measured(remains.outputs.get(name))}
        for name, place in record.outputs.items()
    }
    acceptance = judge_acceptance(list(record.acceptance), code, remains.metrics, outputs)
    outcome, reason, message = row.outcome, row.reason, row.text
    if not outcome or row.code == "stopped":
        cause = remains.cause or seen.stopping
        ending = judge(
            signal if signal is not None else (code or 0) << 8,
            cause=cause,
            out_of_memory=False,
            unmet=[item["criterion"] for item in acceptance if not item["met"]],
            accepted_codes=accepted_exit_codes(list(record.acceptance)),
        )
        outcome, reason, message = ending.outcome, ending.reason, ending.message
        if remains.not_stored and outcome == Outcome.COMPLETED.value:
            outcome, reason, message = Outcome.FAILED.value, NOT_STORED, f"it ended well, but {remains.not_stored}"
    elif row is _LOST and seen.stopping:
        outcome, reason, message = Outcome.CANCELLED.value, seen.stopping, "stopped; its pod is gone"
    elif row.code == "out-of-memory" and record.memory_bytes:
        message = f"{message} (limit {record.memory_bytes} bytes)"
    told = pod.disruption_message or pod.status_message
    return records.End(
        outcome=outcome,
        reason=reason,
        message=(f"{message}: {told}" if told and row.outcome == "failed" else message)[:MESSAGE_MAX],
        exit_code=code if pod.terminated else None,
        signal=signal if pod.terminated else None,
        at=pod.finished_at or now,
        provider=_provider(pod, row),
        outputs=outputs,
        metrics=remains.metrics,
        acceptance=tuple(acceptance),
    )


def _measured(found: tuple[int, str] | None) -> dict[str, Any]:
    size, digest = found or (0, "")
    return {"exists": found is not None, "bytes": size, "sha256": digest}


# -- it has not started ------------------------------------------------------------------------------------------------


def _not_started(
    job: Mapping[str, Any],
    facts: Sequence[PodFacts],
    now: float,
    long_s: float,
    since: Callable[[str], float],
    told: Told,
    warned: Callable[[str], str | None],
) -> Progress:
    failed = condition(job, "Failed")
    if not facts and told.state is not None:
        facts = [PodFacts(uid="")]
    if not facts:
        if not failed:
            return Progress(provider="" if (job.get("spec") or {}).get("suspend") else "no pod yet")
        why = failed.get("message") or failed.get("reason") or ""
        text = f"its pod was removed before it had started: {why}"
        return Progress(
            grave=records.Grave("removed-externally", moment(failed.get("lastTransitionTime")) or now, text)
        )
    seen = [
        Seen(pod, read_remains(pod.message), claimed=False, told=told, warned=warned(pod.uid) or "") for pod in facts
    ]
    row, shown = min(((row_of(each), each) for each in seen), key=lambda pair: _ORDER.index(pair[0].meaning))
    provider = _provider(shown.pod, row) if shown.pod.uid else told.words
    if row.meaning in (Meaning.WAITS, Meaning.RUNS):
        return Progress(provider=provider)
    patience_s = {Patience.NONE: 0.0, Patience.SHORT: SHORT_S, Patience.LONG: long_s}[row.patience]
    due = since(row.waits_as or row.code) + patience_s
    if now < due:
        return Progress(provider=provider, again_at=due)
    if row.patience is Patience.LONG and warned(shown.pod.uid) is None:
        # It is given up for what its events say, and those are asked one slot after the other.
        return Progress(provider=provider, again_at=now + ASK_S)
    reason, text = shown.remains.not_started or (row.reason, f"{row.text} ({provider})")
    return Progress(
        grave=records.Grave(reason, now, text[:MESSAGE_MAX], denied=row.meaning is Meaning.DENIED), provider=provider
    )


_ORDER: Final = (Meaning.NOT_STARTED, Meaning.DENIED, Meaning.ENDED, Meaning.WAITS, Meaning.RUNS)


def _provider(pod: PodFacts, row: Row) -> str:
    """Return the cluster's own words: what people look for in its documentation."""
    if pod.terminated:
        own = f"{pod.reason or 'Terminated'} (exit code {pod.exit_code})"
        return f"{pod.disruption}: {own}" if pod.disruption else own
    words = pod.scheduled or pod.waiting or pod.status_reason or pod.phase
    message = "" if pod.scheduled else pod.waiting_message or pod.status_message
    return (f"{words}: {message}" if message else words)[:MESSAGE_MAX] or row.code
