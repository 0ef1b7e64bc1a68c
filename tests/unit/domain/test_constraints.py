"""Every hard rule: satisfied, violated, at its boundary, and where the environment says nothing."""

# ruff: noqa: E501  one case a line, like a table

from datetime import timedelta
from typing import Any

import pytest

from landbridge.domain import claims
from landbridge.domain.candidate import Candidate, Control, Hold, Link, LinkState
from landbridge.domain.constraints import CONSTRAINTS
from landbridge.domain.requirements import RequirementClass
from support.deciding import NOW, a_catalogue, a_contract, an_environment, an_operation, codes, judged_by, proof

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


CASES: list[Case] = [
    # constraint, situation, operation, environment, expected codes
    ("environment", "satisfied", constrained(environments={"allow": ["onprem-a"]}), PLAIN, []),
    ("environment", "satisfied", constrained(environments={"forbid": ["edge-1"]}), PLAIN, []),
    ("environment", "violated", constrained(environments={"forbid": ["onprem-a"]}), PLAIN, [("forbidden", NEVER)]),
    (
        "environment",
        "violated",
        constrained(environments={"allow": ["cloud-b"]}),
        an_environment(beside=[FAR]),
        [("not-allowed", NEVER)],
    ),
    (
        "environment",
        "unknown",
        constrained(environments={"allow": ["onprem-aa"]}),
        PLAIN,
        [("allowed-environment-unknown", MISCONFIGURED)],
    ),
    ("environment", "violated", an_operation(excluded=("onprem-a",)), PLAIN, [("excluded-this-round", NEVER)]),
    ("environment", "boundary", JOB, PLAIN, []),
    ("queue", "satisfied", JOB, PLAIN, []),
    ("queue", "violated", JOB, with_documents(queues={"training": {"environments": {"forbid": ["onprem-a"]}}}), [("not-routed", NEVER)]),
    ("queue", "violated", JOB, with_documents(queues={"training": {"projects": ["search"]}}), [("project-not-in-queue", MISCONFIGURED)]),
    ("queue", "unknown", an_operation(queue="trainnig"), PLAIN, [("queue-unknown", MISCONFIGURED)]),
    ("queue", "boundary", an_operation(queue="default"), PLAIN, []),
    ("project", "satisfied", JOB, with_documents(projects={"retail-eu": {"environments": {"allow": ["onprem-a"]}}}), []),
    ("project", "violated", JOB, with_documents(projects={"retail-eu": {"environments": {"allow": ["cloud-b"]}}}), [("not-allowed-for-project", NEVER)]),
    ("project", "violated", JOB, with_documents(projects={"retail-eu": {"environments": {"forbid": ["onprem-a"]}}}), [("forbidden-for-project", NEVER)]),
    ("project", "unknown", JOB, PLAIN, []),
    ("site-policy", "satisfied", JOB, an_environment(accepts={"projects": ["retail-eu"]}), []),
    ("site-policy", "boundary", JOB, an_environment(accepts={"projects": ["*"]}), []),
    ("site-policy", "unknown", JOB, PLAIN, []),
    ("site-policy", "violated", JOB, an_environment(accepts={"projects": ["search"]}), [("project-not-accepted", NEVER)]),
    (
        "site-policy",
        "violated",
        IMAGE_ONLY,
        an_environment(runtime={"executor": "kubernetes"}, accepts={"images": ["vetted"]}),
        [("registry-not-accepted", NEVER)],
    ),
    ("residency", "satisfied", constrained(jurisdictions=["EU"], regions=["eu-de-1"]), PLAIN, []),
    ("residency", "boundary", constrained(jurisdictions=["CH", "DE"]), PLAIN, []),
    ("residency", "violated", constrained(jurisdictions=["US"]), PLAIN, [("jurisdiction", NEVER)]),
    ("residency", "violated", constrained(regions=["us-east-1"]), PLAIN, [("region", NEVER)]),
    (
        "residency",
        "unknown",
        constrained(jurisdictions=["EU"]),
        an_environment(location={"jurisdictions": []}),
        [("location-not-stated", MISCONFIGURED)],
    ),
    (
        "residency",
        "violated",
        an_operation(constraints={"jurisdictions": ["EU"]}, outputs={"model": {"connection": "events"}}),
        remote(),
        [("connection-jurisdiction", NEVER)],
    ),
    (
        "residency",
        "violated",
        needs("events"),
        with_documents(connections={"events": {"jurisdictions": ["CH"]}}),
        [("data-jurisdiction", NEVER)],
    ),
    ("security-tier", "satisfied", constrained(securityTier="standard"), PLAIN, []),
    ("security-tier", "boundary", constrained(securityTier="restricted"), PLAIN, []),
    ("security-tier", "violated", constrained(securityTier="restricted"), bounded(securityTier="standard"), [("tier-too-low", NEVER)]),
    ("security-tier", "violated", an_operation(dataClass="restricted"), bounded(securityTier="open"), [("tier-too-low", NEVER)]),
    ("security-tier", "unknown", constrained(securityTier="standard"), bounded(securityTier=None), [("tier-not-stated", MISCONFIGURED)]),
    (
        "security-tier",
        "violated",
        needs("events"),
        an_environment(connections={"events": {"dataClass": "restricted"}}, boundaries={"securityTier": "standard"}),
        [("tier-too-low", NEVER)],
    ),
    ("security-tier", "satisfied", constrained(securityTier="restricted"), KUBERNETES, []),
    ("security-tier", "satisfied", JOB, in_cluster(broken(claims.SECURITY_TIER)), []),
    ("security-tier", "violated", constrained(securityTier="standard"), in_cluster(broken(claims.SECURITY_TIER)), [("evidence-failed", NOT_NOW)]),
    ("security-tier", "violated", constrained(securityTier="standard"), in_cluster(late(claims.SECURITY_TIER)), [("evidence-stale", NOT_NOW)]),
    ("security-tier", "unknown", constrained(securityTier="standard"), in_cluster({claims.SECURITY_TIER: None}), [("evidence-unknown", NOT_NOW)]),
    ("controls", "satisfied", constrained(controls=["default-deny-egress"]), bounded(network={"default": "deny"}), []),
    ("controls", "violated", constrained(controls=["default-deny-egress"]), bounded(network={"default": "allow"}), [("control-not-in-force", NEVER)]),
    ("controls", "unknown", constrained(controls=["default-deny-egress"]), PLAIN, [("control-not-stated", MISCONFIGURED)]),
    ("controls", "unknown", constrained(controls=["default-deny"]), PLAIN, [("control-unknown", MISCONFIGURED)]),
    (
        "controls",
        "boundary",
        constrained(controls=["encrypted-storage"]),
        an_environment(storage={"fast": {"encrypted": True}, "slow": {"encrypted": False}}),
        [("control-not-in-force", NEVER)],
    ),
    (
        "controls",
        "violated",
        constrained(controls=["encrypted-storage"]),
        an_environment(storage={"fast": {"encrypted": True}}, evidence=broken("storage.fast")),
        [("evidence-failed", NOT_NOW)],
    ),
    ("operated-by", "satisfied", constrained(operatedBy=["own"]), PLAIN, []),
    ("operated-by", "violated", constrained(operatedBy=["partner"]), PLAIN, [("operator-not-accepted", NEVER)]),
    ("operated-by", "unknown", constrained(operatedBy=["own"]), an_environment(location={"operatedBy": None}), [("operator-not-stated", MISCONFIGURED)]),
    ("model-licence", "satisfied", needs("events", license="Apache-2.0"), an_environment(connections={"events": {"licenses": ["Apache-2.0"]}}), []),
    ("model-licence", "violated", needs("events", license="LicenseRef-x"), an_environment(connections={"events": {"licenses": ["Apache-2.0"]}}), [("licence-not-allowed", NEVER)]),
    ("model-licence", "unknown", needs("events", license="Apache-2.0"), PLAIN, [("licence-not-stated", MISCONFIGURED)]),
    ("model-licence", "boundary", needs("events"), PLAIN, []),
    ("data-movement", "satisfied", needs("events"), with_documents(connections={"events": {"movement": {"allowed": False}}}), []),
    ("data-movement", "violated", needs("events"), remote({"allowed": False}), [("movement-forbidden", NEVER)]),
    ("data-movement", "unknown", needs("events"), remote({"allowed": True}), [("encryption-not-stated", MISCONFIGURED)]),
    ("data-movement", "violated", needs("events"), remote({"allowed": True}, links={"cloud-b": {"encrypted": False}}), [("way-not-encrypted", NEVER)]),
    ("data-movement", "boundary", needs("events"), remote({"allowed": True}, links={"cloud-b": {"encrypted": True}}), []),
    ("workload-type", "satisfied", JOB, PLAIN, []),
    ("workload-type", "violated", an_operation(type="service"), PLAIN, [("type-not-offered", NEVER)]),
    ("workload-type", "unknown", JOB, an_environment(workloads=[]), [("type-not-offered", NEVER)]),
    ("runtime-form", "satisfied", JOB, PLAIN, []),
    ("runtime-form", "satisfied", BOTH, PLAIN, []),
    ("runtime-form", "satisfied", BOTH, KUBERNETES, []),
    ("runtime-form", "violated", IMAGE_ONLY, PLAIN, [("form-not-startable", NEVER)]),
    ("runtime-form", "violated", IMAGE_ONLY, KUBERNETES, [("command-missing", NEVER)]),
    ("runtime-form", "violated", JOB, KUBERNETES, [("form-not-startable", NEVER)]),
    ("runtime-form", "unknown", JOB, an_environment(runtime={"executor": "magic"}), [("executor-unknown", MISCONFIGURED)]),
    ("runtime-form", "boundary", an_operation(command=None), PLAIN, [("nothing-to-start", MISCONFIGURED)]),
    ("architecture", "satisfied", constrained(architectures=["arm64", "amd64"]), PLAIN, []),
    ("architecture", "violated", constrained(architectures=["arm64"]), PLAIN, [("architecture-not-offered", NEVER)]),
    ("architecture", "unknown", constrained(architectures=["arm64"]), an_environment(runtime={"architectures": []}), [("architecture-not-stated", MISCONFIGURED)]),
    ("architecture", "violated", VARIANTS, KUBERNETES, [("no-image-variant", NEVER)]),
    ("architecture", "boundary", VARIANTS, an_environment(runtime={"executor": "kubernetes", "architectures": ["amd64", "arm64"]}), []),
    ("kubernetes", "satisfied", constrained(kubernetes=">=1.33,<1.37", operators=["kueue"]), KUBERNETES, []),
    ("kubernetes", "boundary", constrained(kubernetes=">=1.35,<1.36"), KUBERNETES, []),
    ("kubernetes", "violated", constrained(kubernetes=">=1.36"), KUBERNETES, [("version-not-in-range", NEVER)]),
    ("kubernetes", "violated", constrained(operators=["kueue", "kuberay"]), KUBERNETES, [("operator-not-offered", NEVER)]),
    ("kubernetes", "unknown", constrained(kubernetes=">=1.33"), PLAIN, [("no-kubernetes", NEVER)]),
    ("gang-operator", "satisfied", a_gang(), KUBERNETES, []),
    ("gang-operator", "satisfied", a_gang(), via(), []),
    ("gang-operator", "boundary", a_gang(), via(operators=[], fallback="indexed-job"), []),
    ("gang-operator", "violated", a_gang(), via(operators=["kueue"]), [("operator-absent", MISCONFIGURED)]),
    ("gang-operator", "violated", a_gang(), via(link=connected(features=CLUSTER_FEATURES)), [("operator-absent", MISCONFIGURED)]),
    ("gang-operator", "boundary", a_gang(), via(link=connected(features=CLUSTER_FEATURES), fallback="indexed-job"), []),
    ("gang-operator", "boundary", a_gang(), via(link=connected(features=CLUSTER_FEATURES | {"operator.jobset"})), []),
    ("gang-operator", "unknown", a_gang(), via(link=Link()), []),
    ("gang-operator", "violated", a_gang("ray"), via(), [("framework-not-offered", NEVER)]),
    ("gang-operator", "satisfied", a_gang("ray"), via("ray", "kuberay", operators=["kuberay"]), []),
    ("gang-operator", "boundary", JOB, via(operators=[]), []),
    ("features", "satisfied", JOB, PLAIN, []),
    ("features", "violated", JOB, an_environment(link=connected(features=frozenset({"type.job"}))), [("feature-missing", MISCONFIGURED)]),
    ("features", "unknown", JOB, an_environment(link=Link()), []),
    ("hardware", "satisfied", gpus(), with_gpus(), []),
    ("hardware", "boundary", gpus(8), with_gpus(), []),
    ("hardware", "violated", gpus(9), with_gpus(), [("count-exceeds-node", NEVER)]),
    ("hardware", "boundary", gpus(16), with_gpus(perNode=16), []),
    ("hardware", "violated", gpus(17), with_gpus(perNode=32), [("count-exceeds-capacity", NEVER)]),
    ("hardware", "violated", gpus(8), an_environment(classes=GPUS, quotas={"gpu-80gb": 7}), [("count-exceeds-capacity", NEVER)]),
    ("hardware", "violated", gpus(precision=["fp8"]), with_gpus(), [("precision-not-offered", NEVER)]),
    ("hardware", "violated", gpus(interconnect="infiniband"), with_gpus(), [("interconnect-not-offered", NEVER)]),
    ("hardware", "violated", gpus(memory="81Gi"), with_gpus(), [("memory-too-small", NEVER)]),
    ("hardware", "boundary", gpus(memory="80Gi"), with_gpus(), []),
    ("hardware", "unknown", gpus(memory="40Gi"), with_gpus(memory=None), [("memory-too-small", NEVER)]),
    ("hardware", "violated", gpus(), with_gpus(interruptible=True), [("interruptible", NEVER)]),
    ("hardware", "satisfied", gpus(interruptible="allow"), with_gpus(interruptible=True), []),
    ("hardware", "violated", gpus(interruptible="require"), with_gpus(), [("not-interruptible", NEVER)]),
    ("hardware", "violated", gpus(partition="1g.10gb"), with_gpus(), [("partition-not-offered", NEVER)]),
    ("hardware", "violated", gpus(), an_environment(beside=[a_contract("other", classes=GPUS)]), [("class-not-offered", NEVER)]),
    ("hardware", "unknown", gpus(), PLAIN, [("class-unknown", MISCONFIGURED)]),
    (
        "hardware",
        "violated",
        gpus(15, interconnect="nvlink"),
        an_environment(
            classes={"gpu-80gb": {**GPUS["gpu-80gb"], "perNode": 16}},
            evidence={"classes.gpu-80gb": proof("classes.gpu-80gb", proven=14, claimed=16)},
        ),
        [("capacity-not-proven", NOT_NOW)],
    ),
    (
        "hardware",
        "boundary",
        gpus(14),
        an_environment(
            classes={"gpu-80gb": {**GPUS["gpu-80gb"], "perNode": 16}},
            evidence={"classes.gpu-80gb": proof("classes.gpu-80gb", proven=14, claimed=16)},
        ),
        [],
    ),
    ("hardware", "violated", gpus(), an_environment(classes=GPUS, evidence=broken("classes.gpu-80gb")), [("evidence-failed", NOT_NOW)]),
    ("compute", "satisfied", JOB, PLAIN, []),
    ("compute", "boundary", an_operation(resources={"requests": {"cpu": "64", "memory": "256Gi"}}), PLAIN, []),
    ("compute", "violated", an_operation(resources={"requests": {"cpu": "64001m"}}), PLAIN, [("cpu-exceeds-capacity", NEVER)]),
    ("compute", "violated", an_operation(type="distributed-job", replicas=33), PLAIN, [("cpu-exceeds-capacity", NEVER)]),
    ("compute", "violated", an_operation(resources={"requests": {"memory": "257Gi"}}), PLAIN, [("memory-exceeds-capacity", NEVER)]),
    ("compute", "unknown", JOB, an_environment(classes={"cpu-general": {"cpu": None}}), [("cpu-not-stated", MISCONFIGURED)]),
    ("compute-evidence", "satisfied", JOB, PLAIN, []),
    ("compute-evidence", "boundary", an_operation(resources=None), an_environment(evidence=late("classes.cpu-general")), []),
    ("compute-evidence", "unknown", JOB, an_environment(evidence={"classes.cpu-general": None}), [("evidence-unknown", NOT_NOW)]),
    ("compute-evidence", "violated", JOB, an_environment(evidence=late("classes.cpu-general")), [("evidence-stale", NOT_NOW)]),
    ("compute", "violated", an_operation(resources={"requests": {"cpu": "33"}}), an_environment(evidence={"classes.cpu-general": proof("classes.cpu-general", proven=1, claimed=2)}), [("capacity-not-proven", NOT_NOW)]),
    ("connections", "satisfied", needs("events"), PLAIN, []),
    ("connections", "violated", needs("events", "outputs"), PLAIN, [("access-mode", NEVER)]),
    ("connections", "boundary", needs("events", "outputs"), an_environment(connections={"events": {"access": "write-only"}}), []),
    ("connections", "violated", needs("elsewhere"), an_environment(beside=[FAR]), [("connection-missing", NEVER)]),
    ("connections", "unknown", needs("evnets"), PLAIN, [("connection-unknown", MISCONFIGURED)]),
    ("connections", "violated", an_operation("search", inputs={"x": {"connection": "events"}}), PLAIN, [("project-not-authorised", MISCONFIGURED)]),
    ("connections", "violated", needs("events"), an_environment(evidence=broken("connections.events")), [("evidence-failed", NOT_NOW)]),
    ("connections", "violated", needs("events"), an_environment(evidence=late("connections.events")), [("evidence-stale", NOT_NOW)]),
    ("connections", "unknown", needs("events"), an_environment(evidence={"connections.events": None}), [("evidence-unknown", NOT_NOW)]),
    ("connections", "violated", needs("events"), an_environment(accepts={"connections": ["models"]}), [("not-accepted-by-site", NEVER)]),
    ("identity", "satisfied", an_operation(identity="trainer"), PLAIN, []),
    ("identity", "violated", an_operation(identity="admin"), PLAIN, [("role-not-mapped", MISCONFIGURED)]),
    ("identity", "unknown", an_operation(identity="trainer"), bounded(identity=None), [("role-not-mapped", MISCONFIGURED)]),
    ("identity", "violated", an_operation(identity="trainer"), an_environment(accepts={"identities": ["analyst"]}), [("role-not-accepted-by-site", NEVER)]),
    ("identity", "violated", an_operation(identity="trainer"), with_documents(projects={"retail-eu": {"identities": ["analyst"]}}), [("role-not-allowed-by-project", MISCONFIGURED)]),
    ("identity", "violated", an_operation(identity="trainer"), an_environment(evidence=broken(claims.IDENTITY)), [("evidence-failed", NOT_NOW)]),
    ("identity", "boundary", JOB, bounded(identity=None), []),
    ("recovery", "satisfied", JOB, PLAIN, []),
    ("recovery", "satisfied", an_operation(failed_over=True, lifecycle={"recovery": {"mode": "resume", "environments": ["onprem-a"]}}), PLAIN, []),
    ("recovery", "violated", an_operation(failed_over=True, lifecycle={"recovery": {"mode": "never"}}), PLAIN, [("never-recovers", NEVER)]),
    ("recovery", "violated", an_operation(failed_over=True, lifecycle={"recovery": {"mode": "resume", "environments": ["cloud-b"]}}), PLAIN, [("not-a-recovery-environment", NEVER)]),
    ("recovery", "violated", an_operation(failed_over=True, checkpoints={"connection": "shared"}), PLAIN, [("checkpoint-unreachable", NEVER)]),
    ("recovery", "boundary", an_operation(failed_over=True, checkpoints={"connection": "shared"}, lifecycle={"recovery": {"mode": "restart"}}), PLAIN, []),
    ("deadline", "satisfied", due(timedelta(hours=2)), PLAIN, []),
    ("deadline", "boundary", due(HOUR), PLAIN, []),
    ("deadline", "violated", due(HOUR - timedelta(milliseconds=1)), PLAIN, [("deadline-too-close", NEVER)]),
    ("deadline", "violated", due(timedelta(0)), PLAIN, [("deadline-passed", NEVER)]),
    (
        "deadline",
        "violated",
        due(HOUR + timedelta(seconds=79), inputs={"x": {"connection": "events", "size": "10G"}}),
        remote(links={"cloud-b": {"bandwidth": "1Gbit/s"}}),
        [("deadline-too-close", NEVER)],
    ),
    (
        "deadline",
        "boundary",
        due(HOUR + timedelta(seconds=80), inputs={"x": {"connection": "events", "size": "10G"}}),
        remote(links={"cloud-b": {"bandwidth": "1Gbit/s"}}),
        [],
    ),
    ("deadline", "unknown", due(timedelta(hours=9), inputs={"x": {"connection": "events"}}), remote(), [("staging-time-unknown", MISCONFIGURED)]),
    ("evidence", "satisfied", JOB, PLAIN, []),
    ("evidence", "unknown", JOB, an_environment(evidence={claims.RUNTIME: None}), [("evidence-unknown", NOT_NOW)]),
    ("evidence", "unknown", JOB, an_environment(evidence=broken(claims.RUNTIME, "unknown")), [("evidence-unknown", NOT_NOW)]),
    ("evidence", "violated", JOB, an_environment(evidence=broken(claims.CLOCK)), [("evidence-failed", NOT_NOW)]),
    ("evidence", "violated", JOB, an_environment(evidence=late(claims.NETWORK)), [("evidence-stale", NOT_NOW)]),
    ("evidence", "boundary", JOB, an_environment(evidence=broken(claims.SELF_STOP)), []),
    ("contract", "satisfied", JOB, PLAIN, []),
    ("contract", "violated", JOB, an_environment(phase="canary"), [("not-yet-active", NOT_NOW)]),
    ("contract", "violated", JOB, an_environment(phase="retiring"), [("no-longer-active", NEVER)]),
    ("contract", "unknown", JOB, an_environment(phase=""), [("no-longer-active", NEVER)]),
    ("control", "satisfied", JOB, PLAIN, []),
    ("control", "violated", JOB, an_environment(control=Control(paused=True, by="ann", reason="disk swap")), [("paused", NOT_NOW)]),
    ("control", "violated", JOB, an_environment(control=Control(paused=True, draining=True)), [("draining", NOT_NOW)]),
    ("class-control", "satisfied", JOB, holding("gpu-80gb"), []),
    ("class-control", "satisfied", gpus(), holding(nodes="pool=cpu"), []),
    ("class-control", "violated", JOB, holding("cpu-general"), [("class-paused", NOT_NOW)]),
    ("class-control", "violated", gpus(), holding("gpu-80gb"), [("class-paused", NOT_NOW)]),
    ("class-control", "violated", gpus(), holding(nodes="pool=gpu"), [("class-paused", NOT_NOW)]),
    ("class-control", "violated", an_operation(resources={**GPU, "requests": {"cpu": "70"}}), holding("gpu-80gb"), [("class-paused", NOT_NOW)] * 2),
    ("class-control", "boundary", an_operation(resources={"requests": {"cpu": "64"}}), holding("gpu-80gb"), []),
    ("class-control", "boundary", an_operation(resources={"requests": {"cpu": "65"}}), holding("gpu-80gb"), [("class-paused", NOT_NOW)]),
    ("class-control", "boundary", an_operation(resources={"requests": {"cpu": "1000"}}), holding("gpu-80gb"), []),  # never there
    ("class-control", "unknown", gpus(), an_environment(control=Control(holds=(Hold("gpu-80gb"),))), []),  # not offered
    ("operator-rules", "satisfied", JOB, ruled("operation.cpu <= 2.0"), []),
    ("operator-rules", "satisfied", JOB, ruled("false", environments={"forbid": ["onprem-a"]}), []),
    ("operator-rules", "satisfied", JOB, ruled("false", environments={"allow": ["cloud-b"]}), []),
    ("operator-rules", "satisfied", JOB, ruled("false", scope={"projects": ["search"]}), []),
    ("operator-rules", "violated", JOB, ruled("operation.cpu < 2.0"), [("rule:house", NEVER)]),
    ("operator-rules", "violated", JOB, ruled("operation.cpu < 2.0", violation="not-now"), [("rule-not-now:house", NOT_NOW)]),
    ("operator-rules", "violated", JOB, ruled("'EU' in environment.jurisdictions && environment.securityTier == 'open'"), [("rule:house", NEVER)]),
    ("operator-rules", "boundary", gpus(), ruled("!has(operation.accelerator) || operation.accelerator.count <= 4"), []),
    ("operator-rules", "boundary", gpus(5), ruled("!has(operation.accelerator) || operation.accelerator.count <= 4"), [("rule:house", NEVER)]),
    ("operator-rules", "unknown", JOB, ruled("operation.accelerator.count <= 4"), [("rule-error:house", MISCONFIGURED)]),
    ("operator-rules", "unknown", JOB, ruled("environment.kubernetes.startsWith('1.3')"), [("rule-error:house", MISCONFIGURED)]),
    ("operator-rules", "unknown", JOB, ruled("1 / (operation.replicas - 1) > 0"), [("rule-error:house", MISCONFIGURED)]),
    ("operator-rules", "unknown", JOB, ruled("operation.colour == 'red'"), [("rule-error:house", MISCONFIGURED)]),  # of a later release
    ("link", "satisfied", JOB, PLAIN, []),
    ("link", "violated", JOB, an_environment(link=connected(state=LinkState.LOST)), [("control-lost", NOT_NOW)]),
    ("link", "violated", JOB, an_environment(link=connected(state=LinkState.RECONCILING)), [("reconciling", NOT_NOW)]),
    ("support", "boundary", JOB, an_environment(support={"until": "2026-11-30"}), []),
    ("support", "unknown", JOB, an_environment(support={"reason": "no end is known"}), []),
    ("support", "violated", JOB, an_environment(support={"until": "2026-11-29"}), [("support-ended", MISCONFIGURED)]),
    ("link", "unknown", JOB, an_environment(link=Link()), [("never-connected", NOT_NOW)]),
]  # fmt: skip


def test_an_environment_is_supported_to_the_end_of_its_last_day() -> None:
    site = an_environment(support={"until": "2026-11-30"})
    end = NOW.replace(hour=0) + timedelta(days=1)
    [rule] = [each for each in CONSTRAINTS if each.name == "support"]
    assert rule.holds_until(JOB.requirements, site, NOW) == end
    assert rule.holds_until(JOB.requirements, site, end) is None
    assert not judged_by("support", JOB, site, end - timedelta(seconds=1))
    assert [found.reason for found in judged_by("support", JOB, site, end)] == ["support-ended"]


WINDOW = {"rrule": "FREQ=WEEKLY;BYDAY=MO;BYHOUR=3;BYMINUTE=0;BYSECOND=0", "duration": "2h"}
MAINTENANCE = an_environment(maintenance=[WINDOW])


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{'-'.join(c for c, _ in case[4]) or 'ok'}"
)
def test_a_constraint_says_exactly_what_is_wrong(case: Case) -> None:
    constraint, _, operation, environment, expected = case
    assert codes(constraint, operation, environment) == expected


@pytest.mark.parametrize(
    ("hours", "expected", "code"),
    [
        (-2, "1h", []),
        (-1, "1h", []),  # it ends as the window opens
        (-1, "1h1m", ["maintenance-ahead"]),
        (-1, "0s", []),
        (0, "0s", ["in-maintenance"]),
        (1.99, "0s", ["in-maintenance"]),
        (2, "0s", []),
    ],
)
def test_work_neither_starts_in_a_maintenance_window_nor_runs_into_one(
    hours: float, expected: str, code: list[str]
) -> None:
    operation = an_operation(lifecycle={"expectedDuration": expected})
    found = judged_by("maintenance", operation, MAINTENANCE, NOW + timedelta(hours=hours))
    assert [violation.reason for violation in found] == code
    assert all(violation.kind == NOT_NOW for violation in found)


def test_a_maintenance_window_follows_the_clocks_of_its_place() -> None:
    berlin = an_environment(maintenance=[{**WINDOW, "timeZone": "Europe/Berlin"}])  # 02:00 to 04:00 UTC in winter
    assert judged_by("maintenance", JOB, berlin, NOW - timedelta(minutes=1))
    assert not judged_by("maintenance", JOB, berlin, NOW + timedelta(hours=1))


def test_every_constraint_has_a_case_in_which_it_holds_and_one_in_which_it_does_not() -> None:
    covered = {(constraint, bool(expected)) for constraint, _, _, _, expected in CASES} | {
        ("maintenance", True),
        ("maintenance", False),
    }
    assert covered == {(constraint.name, violated) for constraint in CONSTRAINTS for violated in (True, False)}


def test_every_constraint_has_a_boundary_or_an_unknown() -> None:
    states = {(constraint, situation) for constraint, situation, _, _, _ in CASES}
    plain_flags = {"maintenance", "control"}
    for constraint in CONSTRAINTS:
        if constraint.name not in plain_flags:
            assert {(constraint.name, "boundary"), (constraint.name, "unknown")} & states, constraint.name


def test_names_of_constraints_are_unique() -> None:
    names = [constraint.name for constraint in CONSTRAINTS]
    assert len(set(names)) == len(names)


def test_a_paused_class_says_who_paused_it_and_why() -> None:
    [violation] = judged_by("class-control", gpus(), holding(nodes="pool=gpu"))
    assert violation.wanted == "4 gpu-80gb of classes that take new work"
    assert violation.found == "class gpu-80gb paused with nodes pool=gpu by ann: new driver"
    [violation] = judged_by("class-control", an_operation(resources={"requests": {"cpu": "65"}}), holding("gpu-80gb"))
    assert violation.wanted == "65 cpu of classes that take new work"
    assert violation.found == "class gpu-80gb paused by ann: new driver"


def test_nothing_of_a_paused_class_counts_as_room_for_new_work() -> None:
    paused = holding("gpu-80gb")
    assert (paused.proven["gpu-80gb"], paused.open["gpu-80gb"]) == (16, 0)
    assert (paused.proven["cpu"], paused.open["cpu"]) == (96_000, 64_000)
