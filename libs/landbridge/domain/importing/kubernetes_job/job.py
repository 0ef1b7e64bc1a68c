"""From a Job to an operation: one container, its resources, what follows a failure, how many run together."""

from typing import Final

from landbridge.domain.documents.places import Path
from landbridge.domain.importing.containers import take_container
from landbridge.domain.importing.kubernetes_job.failures import take_failure_policy
from landbridge.domain.importing.pods import take_pod, take_volumes
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.sheet import Sheet
from landbridge.domain.importing.sizes import seconds
from landbridge.domain.importing.wishes import PORT, SCHEDULE, take_annotations, take_labels, take_name

_OBJECT: Final = Left(Why.NOT_NEEDED, "written by the cluster")
_LABEL: Final = Left(Why.NOT_NEEDED, "chooses the Job's own pods")
_METADATA: Final[dict[str, Left]] = {
    "namespace": Left(
        Why.DECISION, "a part of one cluster; an operation belongs to a project", "name the project with --project"
    ),
    **dict.fromkeys(
        ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "ownerReferences"),
        _OBJECT,
    ),
    "finalizers": Left(Why.NO_COUNTERPART, "of controllers of the cluster"),
    "generateName": Left(Why.DECISION, "a name is stated", "write metadata.name"),
}
_SPEC: Final[dict[str, Left]] = {
    "ttlSecondsAfterFinished": Left(Why.NOT_NEEDED, "what has ended is removed once the centre has acknowledged it"),
    "manualSelector": _LABEL,
    "selector": _LABEL,
    "suspend": Left(Why.DECISION, "held back until somebody lets it go", "submit it later, or into a paused queue"),
    "podReplacementPolicy": Left(Why.NOT_NEEDED, "an attempt starts when the one before has provably ended"),
    "managedBy": Left(Why.NOT_NEEDED, "the environment's dispatcher manages it"),
    "backoffLimitPerIndex": Left(Why.NO_COUNTERPART, "replicas of one operation fail together", "submit one for each"),
    "maxFailedIndexes": Left(Why.NO_COUNTERPART, "replicas of one operation fail together", "submit one for each"),
    "successPolicy": Left(Why.DECISION, "ends early by a rule of its own", "write spec.acceptance"),
}
_QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
_PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"


def import_kubernetes_job(sheet: Sheet) -> None:
    """Fill in the operation of a Job, or of the Job that a CronJob makes."""
    base: Path = ()
    for field in ("apiVersion", "kind"):
        if sheet.has(field):
            sheet.leave((field,), Left(Why.NOT_NEEDED, "the kind of the declaration that was read"))
    if sheet.text("kind") == "CronJob":
        _metadata(sheet, ("metadata",))
        for field in sheet.map("spec"):
            if field != "jobTemplate":
                sheet.leave(("spec", field), SCHEDULE)
        base = ("spec", "jobTemplate")
    _metadata(sheet, (*base, "metadata"))
    if sheet.has(*base, "status"):
        sheet.leave_rest((*base, "status"), _OBJECT)
    _job(sheet, (*base, "spec"))


def _metadata(sheet: Sheet, base: Path) -> None:
    name = sheet.text(*base, "name")
    if name:
        take_name(sheet, (*base, "name"), name)
    for label, target in ((_QUEUE_LABEL, "queue"), (_PRIORITY_LABEL, "priority")):
        if sheet.has(*base, "labels", label):
            found = sheet.text(*base, "labels", label)
            known = sheet.named(found) or found
            note = (
                f"there must be such a {target} here; --map {found}=NAME gives another name" if known == found else ""
            )
            sheet.put((*base, "labels", label), ("spec", target), known, note)
    for key in list(sheet.map(*base, "labels")):
        if not sheet.has(*base, "labels", key):
            continue
        if str(key).startswith(("batch.kubernetes.io/", "controller-uid", "job-name")):
            sheet.leave((*base, "labels", key), _OBJECT)
    _open_labels(sheet, base)
    sheet.leave_known(base, _METADATA)


def _open_labels(sheet: Sheet, base: Path) -> None:
    """Map labels and annotations that nothing else has taken; the pod's are often those of the Job once more."""
    for group, take in (("labels", take_labels), ("annotations", take_annotations)):
        for key in sheet.map(*base, group):
            known = sheet.drafted("metadata", group, str(key))
            if known is not None and known == sheet.text(*base, group, key):
                sheet.note((*base, group, key), ("metadata", group, str(key)), "the same once more")
        if all(sheet.has(*base, group, key) for key in sheet.map(*base, group)):
            take(sheet, (*base, group))
        else:
            _one_by_one(sheet, base, group)


def _one_by_one(sheet: Sheet, base: Path, group: str) -> None:
    from landbridge.domain.documents.names import label_refusal

    for key in sheet.map(*base, group):
        if sheet.has(*base, group, key):
            value = sheet.text(*base, group, key)
            message, suggestion = label_refusal(str(key), value)
            if message:
                sheet.leave((*base, group, key), Left(Why.NO_COUNTERPART, message, suggestion))
            else:
                sheet.put((*base, group, key), ("metadata", group, str(key)), value)


def _job(sheet: Sheet, base: Path) -> None:
    pod: Path = (*base, "template", "spec")
    take_failure_policy(sheet, base)
    deadline = seconds(sheet.at(*base, "activeDeadlineSeconds"))
    if deadline:
        note = "of each attempt here, of the whole Job there"
        sheet.put((*base, "activeDeadlineSeconds"), ("spec", "lifecycle", "timeout"), deadline, note)
    grace = seconds(sheet.at(*pod, "terminationGracePeriodSeconds"))
    if grace:
        sheet.put((*pod, "terminationGracePeriodSeconds"), ("spec", "lifecycle", "stopGrace"), grace)
    deadline = seconds(sheet.at(*pod, "activeDeadlineSeconds"))
    if deadline:
        sheet.put((*pod, "activeDeadlineSeconds"), ("spec", "lifecycle", "timeout"), deadline)
    _replicas(sheet, base)
    take_pod(sheet, pod)  # first: a node's product may already say which class is meant
    _containers(sheet, pod)
    _metadata(sheet, (*base, "template", "metadata"))
    sheet.leave_known(base, _SPEC)


def _replicas(sheet: Sheet, base: Path) -> None:
    """Map an indexed Job whose pods all run at once; other counts mean several operations."""
    at_once, wanted = sheet.at(*base, "parallelism"), sheet.at(*base, "completions")
    indexed = sheet.text(*base, "completionMode") == "Indexed"
    fields = [(*base, field) for field in ("parallelism", "completions", "completionMode") if sheet.has(*base, field)]
    together = indexed and isinstance(wanted, int) and wanted > 1 and at_once == wanted
    if together:
        sheet.put((*base, "completions"), ("spec", "type"), "distributed-job")
        note = "they start together or not at all; LANDBRIDGE_RANK and RANK stand for JOB_COMPLETION_INDEX"
        sheet.put((*base, "completions"), ("spec", "replicas"), wanted, note)
        for path in fields:
            if sheet.has(*path):
                sheet.note(path, ("spec", "replicas"), "all run at once")
        return
    for path in fields:
        if sheet.at(*path) in (1, "NonIndexed") or (path[-1] == "completionMode" and wanted in (None, 1)):
            sheet.leave(path, Left(Why.NOT_NEEDED, "one operation is one piece of work"))
        else:
            reason = "several pieces of work in one Job, which need not run at once"
            advice = "submit an operation for each; if they must run together: type distributed-job with replicas"
            sheet.leave(path, Left(Why.DECISION, reason, advice))


def _containers(sheet: Sheet, pod: Path) -> None:
    first: Path = (*pod, "containers", 0)
    if sheet.map(*first):
        take_volumes(sheet, (*pod, "volumes"), (*first, "volumeMounts"))
        take_container(sheet, first)
        if sheet.has(*first, "ports"):
            sheet.leave((*first, "ports"), PORT)
    for index in range(1, len(sheet.list(*pod, "containers"))):
        left = Left(
            Why.NO_COUNTERPART, "an operation has one container; the first was taken", "do its work in the command"
        )
        sheet.leave((*pod, "containers", index), left, found=sheet.text(*pod, "containers", index, "name"))
