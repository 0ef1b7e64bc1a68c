"""Services: a Deployment beside the slot's Job. One runs when a pod of it is ready, and ends when it is told to.

Its pods come and go without the centre: each asks the keeper at its start, none takes the slot for itself.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from landbridge_dispatch.executors.kubernetes import names, records
from landbridge_dispatch.executors.kubernetes.api import Api, Object
from landbridge_dispatch.executors.kubernetes.facts import condition, pod_facts
from landbridge_dispatch.executors.kubernetes.progress import Progress
from landbridge_dispatch.executors.kubernetes.vouching import NodeFacts, heard


def service_progress(
    job: Mapping[str, Any],
    record: records.Record,
    deployment: Mapping[str, Any] | None,
    pods: Sequence[Mapping[str, Any]],
    now: float,
    *,
    since: Callable[[str], float],
    node: Callable[[str], NodeFacts],
) -> Progress:
    """Return what follows for a service's slot. `claim`: it has begun to run. `since`, `node`: as for other work."""
    noted = records.annotations(job)
    if names.GRAVE in noted or names.END in noted or names.BEGUN not in noted:
        return Progress()
    stop = records.read(job, names.STOP, records.Stop)
    provider = _provider(deployment, pods)
    if names.CLAIMS in noted:
        told = heard([fact for fact in map(pod_facts, pods) if fact.may_run], now, node, since)
        end = None if any(fact.may_run for fact in told.pods) else _end(record, deployment, stop, now)
        provider = "; ".join(filter(None, (provider, told.doubt)))
        return Progress(end=end, provider=provider, again_at=told.again_at, vouched=bool(told.pods))
    if deployment is None:
        return Progress(provider=provider)
    if int((deployment.get("status") or {}).get("readyReplicas") or 0) >= 1:
        return Progress(claim=records.Claim(deployment["metadata"]["uid"], now), provider=provider)
    failed = _late(deployment)
    if failed:
        return Progress(grave=records.Grave("not-ready", now, f"{failed}; {provider}"), provider=provider)
    return Progress(provider=provider)


def _end(
    record: records.Record,
    deployment: Mapping[str, Any] | None,
    stop: records.Stop | None,
    now: float,
) -> records.End | None:
    if stop is not None:
        outputs = {
            name: {"connection": place.connection, "path": place.path, "exists": False}
            for name, place in record.outputs.items()
        }
        return records.End(
            outcome="cancelled", reason=stop.reason, message=f"stopped: {stop.reason}", at=now, outputs=outputs
        )
    if deployment is None:
        text = "somebody removed its Deployment"
        return records.End(outcome="failed", reason="removed-externally", message=text, at=now)
    return None


def _late(deployment: Mapping[str, Any]) -> str:
    """Return why a Deployment will not become ready by itself; empty while it may."""
    for found in (deployment.get("status") or {}).get("conditions") or ():
        if found.get("type") == "Progressing" and found.get("reason") == "ProgressDeadlineExceeded":
            return str(found.get("message") or "it did not become ready in time")
    failure = condition(deployment, "ReplicaFailure")
    return f"its pods are refused: {failure.get('message', '')}" if failure else ""


def _provider(deployment: Mapping[str, Any] | None, pods: Sequence[Mapping[str, Any]]) -> str:
    if deployment is None:
        return "no Deployment"
    status = deployment.get("status") or {}
    ready = f"{status.get('readyReplicas') or 0} of {(deployment.get('spec') or {}).get('replicas', 1)} ready"
    facts = [pod_facts(pod) for pod in pods]
    words = sorted({fact.scheduled or fact.waiting for fact in facts} - {""})
    return "; ".join((ready, *words))


async def scaled_to_nothing(api: Api, deployment: Object) -> None:
    """Have a Deployment make no more pods."""
    if (deployment.get("spec") or {}).get("replicas") == 0:
        return
    meta = deployment["metadata"]
    path = f"/apis/apps/v1/namespaces/{meta['namespace']}/deployments/{meta['name']}"
    await api.merge(path, {"metadata": {"uid": meta["uid"]}, "spec": {"replicas": 0}})
