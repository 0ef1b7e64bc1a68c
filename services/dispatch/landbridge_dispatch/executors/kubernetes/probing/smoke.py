"""Tiny Jobs that prove one thing on one node each, and what became of them. Pure.

A Job that has ended stays as the record of its proof, so that a dispatcher that starts anew knows what was proven:
its name stands for what is tried, its annotations say about which state of the node it was.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from landbridge_dispatch.executors.kubernetes import carrying, names
from landbridge_dispatch.executors.kubernetes.facts import condition, moment, pod_facts
from landbridge_dispatch.executors.kubernetes.probing.members import Reach
from landbridge_dispatch.executors.kubernetes.settings import S3, KubernetesSettings

Object = dict[str, Any]

MANAGER: Final = "landbridge-probe"
SUBJECT: Final = f"{names.PREFIX}probe-subject"
WORD: Final = f"{names.PREFIX}probe-word"
EARLIER: Final = f"{names.PREFIX}probe-earlier"
"""When the same was proven before, in seconds since 1970."""
WHAT: Final = f"{names.PREFIX}probe"
DEADLINE_S: Final = 120
CLOCK_OFF_S: Final = 10
"""How far a node's clock may be off; what is compared has whole seconds, and starting takes time."""
_VOLUME_SIZE: Final = "1Gi"
_SAY: Final = 'no() { echo "$*" > /dev/termination-log; exit 1; }; '
_WRITE: Final = (
    "dd if=/dev/urandom of=/probe/sample bs=65536 count=16 2>/dev/null && sync && first=$(cksum < /probe/sample) || "
    'no "it cannot be written as user $(id -u)"; '
    '[ "$(cksum < /probe/sample)" = "$first" ] || no "what is read is not what was written"; '
    'rm /probe/sample || no "what was written cannot be removed"; '
)
BULK_BYTES: Final = 16 << 20
"""What is carried to measure how fast that goes."""
_CLOCK: Final = "clock() { read -r up _ </proc/uptime; now=${up%.*}${up#*.}; }; "
_MEASURE: Final = (
    f"{_CLOCK}clock; began=$now; dd if=/dev/zero of=/probe/bulk bs=1048576 count={BULK_BYTES >> 20} 2>/dev/null && "
    'sync || no "it cannot be written as user $(id -u)"; clock; took=$((now - began)); rm -f /probe/bulk; '
    f'[ "$took" -gt 0 ] || took=1; speed=$(({BULK_BYTES * 8 * 100} / took)); '
)
_DEVICES: Final = (
    "if command -v nvidia-smi >/dev/null 2>&1; then nvidia-smi -L >/dev/null || no 'nvidia-smi finds no device'; fi; "
)


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """What is tried: `what` names it, `node` is where (empty: anywhere), `subject` as what that stands right now."""

    what: str
    subject: str
    image: str
    shell: str
    node: str = ""
    reach: Reach = field(default_factory=Reach)
    storage_class: str = ""
    pull_secret: str = ""
    mount: Mapping[str, Any] | None = None
    writes: bool = False
    measures: bool = False
    """Whether to tell how fast it writes, in bits per second."""
    store: S3 | None = None
    """An object store to be tried, with `access`, by the carrier's code."""
    access: str = ""
    script: str = ""
    """What else is tried, by a shell; `arguments` come after the word, as `$2` and so on."""
    arguments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        told = hashlib.sha256(f"{self.what}\n{self.node}".encode()).hexdigest()[:20]
        return f"landbridge-probe-{told}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a Job shows. `proven` None: nothing yet; `busy`: there is no room for it now. `at`: seconds since 1970.

    `speed`: bits per second, where that was measured.
    """

    proven: bool | None
    told: str = ""
    at: float = 0.0
    busy: bool = False
    speed: float | None = None


def selector(site: str) -> str:
    """Return the label selector for the probes of a site; work has another."""
    return f"{names.MANAGED_BY}={MANAGER},{names.SITE}={site}"


def job(site: KubernetesSettings, namespace: str, trial: Trial, word: str) -> Object:
    """Return the Job of a trial. `word` is what it has to say."""
    labels = {names.MANAGED_BY: MANAGER, names.SITE: site.site}
    metadata = {
        "name": trial.name,
        "namespace": namespace,
        "labels": labels,
        "annotations": {SUBJECT: trial.subject, WORD: word, WHAT: f"{trial.what} {trial.node}".strip()},
    }
    spec = {
        "backoffLimit": 0,
        "podReplacementPolicy": "Failed",
        "template": {"metadata": {"labels": labels}, "spec": _pod(site, trial, word)},
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _pod(site: KubernetesSettings, trial: Trial, word: str) -> Object:
    tries = (_WRITE if trial.writes else "") + (_DEVICES if trial.reach.resource or trial.reach.device_class else "")
    tries += (_MEASURE if trial.measures else "") + trial.script
    script = f'{_SAY}{tries}echo "$1 $(date +%s) ${{speed:-}}" > /dev/termination-log'
    container: Object = {
        "name": names.CONTAINER,
        "image": trial.image,
        "imagePullPolicy": "Always" if trial.pull_secret or trial.what.startswith("registry") else "IfNotPresent",
        "command": [*_shell(trial), "-c", script, "probe", word, *trial.arguments],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    pod: Object = {
        "restartPolicy": "Never",
        # Of the pod, not of the Job: waiting for room is no failure.
        "activeDeadlineSeconds": DEADLINE_S,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": site.run_as_user,
            "runAsGroup": site.run_as_group,
            "fsGroup": site.run_as_group,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
    if trial.pull_secret:
        pod["imagePullSecrets"] = [{"name": trial.pull_secret}]
    if trial.store is not None:
        container |= _store(site, trial, trial.store, word)
        pod["volumes"] = [carrying.code_volume(names.wrapper_name())]
    elif (volume := _volume(trial)) is not None:
        pod["volumes"] = [{"name": "probe", **volume}]
        container["volumeMounts"] = [{"name": "probe", "mountPath": "/probe"}]
    _place(pod, container, trial)
    return pod


def _shell(trial: Trial) -> list[str]:
    return [trial.shell, "sh"] if trial.shell.endswith("busybox") else [trial.shell]


def _store(site: KubernetesSettings, trial: Trial, store: S3, word: str) -> Object:
    """Return what a container has that tries an object store: the carrier's code and the store's keys."""
    task: Object = {"place": carrying.place_of(store), "access": trial.access, "bytes": BULK_BYTES, "word": word}
    task["message"] = "/dev/termination-log"
    told = {"name": "LANDBRIDGE_TRIAL", "value": carrying.json_value(task)}
    return {
        **carrying.runs(site, f"{names.CARRIER}.trial"),
        "env": [*carrying.code_variables(), told, *carrying.reading_keys("STORE", store)],
        "volumeMounts": [carrying.code_mount()],
    }


def _volume(trial: Trial) -> Mapping[str, Any] | None:
    """Return the volume. A claim that comes and goes with the pod proves a class, and needs no right to make claims."""
    if not trial.storage_class:
        return trial.mount
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": trial.storage_class,
        "resources": {"requests": {"storage": _VOLUME_SIZE}},
    }
    return {"ephemeral": {"volumeClaimTemplate": {"spec": claim}}}


def _place(pod: Object, container: Object, trial: Trial) -> None:
    """By the scheduler, which also allocates devices: a node that it would not give to work is not proven either."""
    reach = trial.reach
    if trial.node:
        # Not by nodeName, which would go past the scheduler.
        field = {"key": "metadata.name", "operator": "In", "values": [trial.node]}
        terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        pod["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    if reach.node_selector:
        pod["nodeSelector"] = dict(reach.node_selector)
    if reach.tolerations:
        pod["tolerations"] = [
            {key: value for key in ("key", "operator", "value", "effect") if (value := getattr(one, key))}
            for one in reach.tolerations
        ]
    if reach.runtime_class:
        pod["runtimeClassName"] = reach.runtime_class
    if reach.resource:
        container["resources"]["limits"][reach.resource] = "1"
    elif reach.device_class or reach.claim_template:
        container["resources"]["claims"] = [{"name": "devices"}]
        template = reach.claim_template or trial.name
        pod["resourceClaims"] = [{"name": "devices", "resourceClaimTemplateName": template}]


def claim_template(site: KubernetesSettings, namespace: str, trial: Trial, version: str) -> Object | None:
    """Return the template of claims for one device, where a class is reached through a device class."""
    if not trial.reach.device_class:
        return None
    wanted = {"deviceClassName": trial.reach.device_class, "allocationMode": "ExactCount", "count": 1}
    request = {"name": "devices", "exactly": wanted} if version == "v1" else {"name": "devices", **wanted}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaimTemplate",
        "metadata": {
            "name": trial.name,
            "namespace": namespace,
            "labels": {names.MANAGED_BY: MANAGER, names.SITE: site.site},
        },
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def outcome(found: Object, pods: Sequence[Object]) -> Outcome:
    """Judge a Job by its conditions and by what its pod said; word, clock and exit code all have to be right."""
    created = moment(found["metadata"].get("creationTimestamp"))
    own = [pod for pod in pods if _owner(pod) == found["metadata"]["uid"]]
    facts = [pod_facts(pod) for pod in own]
    complete = condition(found, "Complete")
    if complete:
        at = moment(complete.get("lastTransitionTime")) or created
        said = next((fact.message.split() for fact in facts if fact.phase == "Succeeded"), [])
        if said[:1] != [found["metadata"]["annotations"].get(WORD)]:
            return Outcome(False, "its pod did not say what it was to say", at)
        clock = float(said[1]) if len(said) > 1 and said[1].isdecimal() else 0.0
        if not created - CLOCK_OFF_S <= clock <= at + CLOCK_OFF_S:
            ahead = clock - at if clock > at else clock - created
            return Outcome(False, f"its clock is {abs(ahead):.0f} s {'ahead' if ahead > 0 else 'behind'}", at)
        speed = float(said[2]) if len(said) > 2 and said[2].isdecimal() and len(said[2]) < 16 else 0.0
        return Outcome(True, "", at, speed=speed or None)
    waits = next((fact.scheduled for fact in facts if fact.scheduled), "")
    if failed := condition(found, "Failed"):
        at = moment(failed.get("lastTransitionTime")) or created
        if waits:
            return Outcome(False, waits, at, busy="Insufficient" in waits or "cannot allocate" in waits)
        return Outcome(False, _why(facts) or str(failed.get("message") or failed.get("reason") or "failed"), at)
    return Outcome(None, waits or _why(facts) or "still starting", created, busy="Insufficient" in waits)


def _why(facts: Sequence[Any]) -> str:
    for fact in facts:
        if fact.terminated and fact.exit_code:
            reason = f", {fact.reason}" if fact.reason not in ("", "Error") else ""
            message = f": {' '.join(fact.message.split())[:200]}" if fact.message else ""
            return f"exit code {fact.exit_code}{reason}{message}"
        if fact.waiting and fact.waiting not in ("ContainerCreating", "PodInitializing"):
            return f"{fact.waiting}: {fact.waiting_message}"[:300]
    return ""


def _owner(pod: Mapping[str, Any]) -> str:
    owners = (pod["metadata"].get("ownerReferences") or ()) if pod.get("metadata") else ()
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")
