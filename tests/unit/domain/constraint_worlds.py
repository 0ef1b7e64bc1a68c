"""Operations and environments that constraints are tried on."""

from datetime import timedelta
from typing import Any

from landbridge.domain.candidate import Candidate, Control, Hold, Link, LinkState
from landbridge.domain.requirements import RequirementClass
from support.deciding import NOW, a_catalogue, a_contract, an_environment, an_operation, proof

GPU = {"accelerator": {"class": "gpu-80gb", "count": 4, "precision": ["bf16"], "interconnect": "nvlink"}}
GPUS: dict[str, Any] = {
    "gpu-80gb": {
        "count": 16,
        "perNode": 8,
        "memory": "80Gi",
        "precision": ["fp32", "bf16"],
        "interconnect": "nvlink",
        "driver": ">=580,<590",
        "interruptible": False,
    }
}
NEVER, NOT_NOW, MISCONFIGURED = "never", "not-now", "misconfigured"
Case = tuple[str, str, RequirementClass, Candidate, list[tuple[str, str]]]
WINDOW = {"rrule": "FREQ=WEEKLY;BYDAY=MO;BYHOUR=3;BYMINUTE=0;BYSECOND=0", "duration": "2h"}
MAINTENANCE = an_environment(maintenance=[WINDOW])


def gpus(count: int = 4, **more: Any) -> RequirementClass:
    return an_operation(resources={"accelerator": {**GPU["accelerator"], "count": count, **more}})


def with_gpus(**changes: Any) -> Candidate:
    return an_environment(classes={"gpu-80gb": {**GPUS["gpu-80gb"], **changes}})


def needs(connection: str, section: str = "inputs", **more: Any) -> RequirementClass:
    spec: dict[str, Any] = {section: {"x": {"connection": connection, **more}}}
    return an_operation(**spec)


def constrained(**constraints: Any) -> RequirementClass:
    return an_operation(constraints=constraints)


def bounded(**boundaries: Any) -> Candidate:
    return an_environment(boundaries=boundaries)


def broken(claim: str, result: str = "failed") -> dict[str, Any]:
    return {claim: proof(claim, result, detail="no device in pod")}


def late(claim: str) -> dict[str, Any]:
    return {claim: proof(claim, at=NOW - timedelta(hours=2), lasts=timedelta(hours=2))}


def connected(**changes: Any) -> Link:
    return Link(**{"state": LinkState.CONNECTED, "since": NOW, "features": frozenset(), **changes})


FAR = a_contract(
    "cloud-b",
    location={"regions": ["us-east-1"], "jurisdictions": ["US"]},
    connections={"elsewhere": {"type": "s3", "region": "us-east-1", "size": "10G"}},
    cost={"currency": "EUR", "egressPerGB": 0.08},
)
PLAIN = an_environment()
JOB = an_operation()
IMAGE_ONLY = an_operation(command=None, image={"registry": "images", "name": "a/b", "digest": "sha256:" + "0" * 64})
BOTH = an_operation(image={"registry": "images", "name": "a/b", "digest": "sha256:" + "0" * 64})
VARIANTS = an_operation(
    command=None, image={"variants": {"arm": {"digest": "sha256:" + "0" * 64, "architecture": "arm64"}}}
)
KUBERNETES = an_environment(runtime={"executor": "kubernetes", "kubernetes": "1.35.2", "operators": ["kueue"]})


CLUSTER_FEATURES = frozenset({"type.distributed-job", "disconnection.continue", "image"})


def a_gang(framework: str = "") -> RequirementClass:
    gang: dict[str, Any] = {"gang": {"framework": framework}} if framework else {}
    return an_operation(type="distributed-job", replicas=4, **gang)


def via(
    framework: str = "ranks",
    operator: str = "jobset",
    *,
    operators: Any = ("jobset",),
    fallback: str = "",
    link: Link | None = None,
) -> Candidate:
    """A cluster that says by which operator gangs run; nothing is known of its dispatcher unless stated."""
    chosen = {"operator": operator, **({"fallback": fallback} if fallback else {})}
    runtime = {"executor": "kubernetes", "kubernetes": "1.35.2", "operators": [*operators], "via": {framework: chosen}}
    every = CLUSTER_FEATURES | {f"operator.{name}" for name in operators} | {"framework.ray"}
    return an_environment(runtime=runtime, link=link if link is not None else connected(features=every))


def in_cluster(evidence: dict[str, Any]) -> Candidate:
    """A cluster, whose security tier is tried by probes."""
    return an_environment(runtime={"executor": "kubernetes", "kubernetes": "1.35.2"}, evidence=evidence)


REMOTE_DATA = {"events": {"type": "s3", "access": "read-only", "region": "us-east-1"}}
HOUR = timedelta(hours=1)


def remote(movement: dict[str, Any] | None = None, **changes: Any) -> Candidate:
    """An environment whose data lies in another region."""
    here = a_contract(connections=REMOTE_DATA, **changes)
    documents = {"events": {"movement": movement}} if movement is not None else {}
    return an_environment(connections=REMOTE_DATA, catalogue=a_catalogue(here, FAR, connections=documents), **changes)


def with_documents(**documents: Any) -> Candidate:
    return an_environment(catalogue=a_catalogue(a_contract(), **documents))


def due(in_: timedelta, expected: str = "1h", **spec: Any) -> RequirementClass:
    deadline = (NOW + in_).isoformat()
    return an_operation(constraints={"deadline": deadline}, lifecycle={"expectedDuration": expected}, **spec)


def holding(name: str = "", nodes: str = "") -> Candidate:
    """An environment with processors and accelerators, one of whose parts is paused."""
    gpu = {**GPUS["gpu-80gb"], "cpu": "32", "via": {"nodeSelector": {"pool": "gpu"}}}
    held = Control(holds=(Hold(name, nodes, "new driver", "ann"),))
    return an_environment(classes={"gpu-80gb": gpu}, control=held)


def ruled(expression: str, **spec: Any) -> Candidate:
    """An environment in a fleet with one rule of its operators."""
    return with_documents(rules={"house": {"expression": expression, "message": "house rule", **spec}})
