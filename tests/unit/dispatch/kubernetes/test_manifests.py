"""What is made for an operation: valid in every supported version, Restricted, and no more than the operation names."""

from typing import Any

import kubernetes_validate
import msgspec
import pytest

from landbridge.domain.ownership.environment_model import FinalReport, ReportState
from landbridge.domain.ownership.epochs import Epoch
from landbridge_dispatch.executors.kubernetes import manifests, names, records
from landbridge_dispatch.executors.kubernetes.objects import owned
from landbridge_dispatch.executors.kubernetes.resolution import Resolved, resolve
from landbridge_dispatch.executors.protocol import Burial, RefusedError, SlotKey, Work
from support.kubernetes import operator_shapes
from unit.dispatch.kubernetes.things import DIGEST, OPERATION, some_bindings, some_work

VERSIONS = ("1.31", "1.32", "1.33", "1.34", "1.35", "1.36")
CLASSES = {
    "gpu": {"resource": "nvidia.com/gpu", "nodeSelector": {"gpu": "a100"}, "runtimeClass": "nvidia",
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]},
    "slice": {"deviceClass": "gpu.example.com"},
    "made": {"claimTemplate": "whole-node"},
}  # fmt: skip
WRAPPER = {"image": f"registry.site/tools/busybox@{DIGEST}"}
FULL: dict[str, Any] = {
    "inputs": {"events": {"connection": "events", "path": "2026"}, "words": {"connection": "words"}},
    "outputs": {"model": {"connection": "models"}},
    "checkpoints": {"connection": "checkpoints"},
    "identity": "trainer",
    "resources": {"requests": {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "1Gi"}},
    "lifecycle": {"timeout": "1h", "disconnection": {"policy": "checkpoint-then-stop", "checkpointWithin": "1m"}},
}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "full": FULL,
    "gang": {"type": "distributed-job", "replicas": 4, **FULL},
    "gpu": {"resources": {"accelerator": {"class": "gpu", "count": 2}}},
    "carried": {
        "inputs": {"events": {"connection": "events"}, "table": {"connection": "tables"}},
        "outputs": {"model": {"connection": "store"}},
        "checkpoints": {"connection": "store"},
    },
    "service": {"type": "service", "ports": {"web": {"port": 8080}}, "route": {"name": "churn", "healthPath": "/up"}},
}


def made(kind: str, wrapper: bool = False) -> tuple[Work, Resolved, dict[str, Any]]:
    carrier = {"image": f"registry.site/tools/python@{DIGEST}"}
    bindings = some_bindings(classes=CLASSES, carrier=carrier, **({"wrapper": WRAPPER} if wrapper else {}))
    work = some_work(**KINDS[kind])
    found = resolve(bindings, work)
    return work, found, manifests.job(bindings, work, found)


def parts_of(kind: str) -> list[dict[str, Any]]:
    """As they are made from the Job alone, by whoever starts it."""
    job = made(kind)[2] | {}
    job["metadata"]["uid"] = "job-uid"
    kept = records.read(job, names.PARTS, list[dict[str, Any]])
    return [owned(part, job) for part in kept or ()]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_jobs_are_valid_in_every_supported_version(kind: str, version: str) -> None:
    for wrapper in (False, True):
        kubernetes_validate.validate(made(kind, wrapper)[2], version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_all_that_goes_with_a_job_is_valid_in_every_supported_version(version: str) -> None:
    bindings = some_bindings()
    burial = Burial(SlotKey(OPERATION, Epoch(1, 2)), FinalReport(ReportState.RELINQUISHED, "", "not-here"), 3)
    objects = [
        *parts_of("gang"),
        *parts_of("service"),
        manifests.wrapper("cluster-a", "lb-retail-eu"),
        manifests.tombstone(bindings, burial, "lb-retail-eu", records.Grave("not-here", 1.0, buried=True)),
    ]
    assert [each["kind"] for each in objects] == ["Service", "Service", "Deployment", "ConfigMap", "Job"]
    for each in objects:
        kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize(("version", "api"), [("1.33", "v1beta1"), ("1.34", "v1"), ("1.36", "v1")])
def test_a_device_class_becomes_a_claim_template_in_the_words_of_the_version(version: str, api: str) -> None:
    bindings = some_bindings(classes=CLASSES)
    work = some_work(resources={"accelerator": {"class": "slice", "count": 2}})
    found = resolve(bindings, work)
    major, minor = version.split(".")
    assert manifests.devices_version((int(major), int(minor))) == api
    [part] = manifests.parts(bindings, work, found, api)
    template = owned(part, {"metadata": {"name": "op-1", "uid": "job-uid"}})
    kubernetes_validate.validate(template, version, strict=True)
    pod = manifests.job(bindings, work, found)["spec"]["template"]["spec"]
    assert pod["resourceClaims"] == [{"name": "devices", "resourceClaimTemplateName": names.name_of(work.key)}]
    assert pod["containers"][0]["resources"]["claims"] == [{"name": "devices"}]


def test_a_class_becomes_resource_selector_tolerations_and_runtime_class() -> None:
    pod = made("gpu")[2]["spec"]["template"]["spec"]
    assert pod["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert pod["nodeSelector"] == {"gpu": "a100"}
    assert pod["tolerations"] == [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert pod["runtimeClassName"] == "nvidia"


@pytest.mark.parametrize("kind", KINDS)
def test_a_slot_is_suspended_never_retried_and_never_removed_by_time(kind: str) -> None:
    work, _, job = made(kind)
    spec = job["spec"]
    assert (spec["suspend"], spec["backoffLimit"], spec["podReplacementPolicy"]) == (True, 0, "Failed")
    assert spec["template"]["spec"]["restartPolicy"] == "Never"
    assert "ttlSecondsAfterFinished" not in spec
    assert job["metadata"]["name"] == names.name_of(work.key)
    assert job["metadata"]["annotations"][names.SPEC_HASH] == work.spec_sha256


def test_two_epochs_of_one_operation_have_two_names_and_one_epoch_one() -> None:
    first, again, second = (names.name_of(some_work(counter=counter).key) for counter in (1, 1, 2))
    assert first == again != second


def test_pods_meet_the_restricted_standard_and_hold_no_credential_of_the_cluster() -> None:
    for kind in KINDS:
        for wrapper in (False, True):
            pod = made(kind, wrapper)[2]["spec"]["template"]["spec"]
            security = pod["securityContext"]
            assert security["runAsNonRoot"]
            assert security["runAsUser"] > 0
            assert security["seccompProfile"] == {"type": "RuntimeDefault"}
            assert pod["automountServiceAccountToken"] is False
            for container in (*pod["containers"], *pod.get("initContainers", ())):
                own = container["securityContext"]
                assert own["allowPrivilegeEscalation"] is False
                assert own["capabilities"] == {"drop": ["ALL"]}
            for volume in pod.get("volumes", ()):
                assert not {"hostPath", "nfs"} & volume.keys()
            assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()


def test_a_pod_sees_only_the_connections_that_the_operation_names() -> None:
    pod = made("full")[2]["spec"]["template"]["spec"]
    claims = {v["persistentVolumeClaim"]["claimName"] for v in pod["volumes"] if "persistentVolumeClaim" in v}
    assert claims == {"events-data", "models-data", "checkpoints-data"}
    mounts = {m["mountPath"]: m for m in pod["containers"][0]["volumeMounts"]}
    assert mounts["/landbridge/connections/events"]["readOnly"] is True
    assert "readOnly" not in mounts["/landbridge/connections/models"]
    assert mounts["/landbridge/connections/models"]["subPath"] == "team"
    assert "/landbridge/connections/features" not in mounts
    env = {entry["name"] for entry in pod["containers"][0]["env"]}
    assert not {"S3_ENDPOINT", "S3_KEY"} & env


def test_secrets_are_named_and_never_copied() -> None:
    bindings = some_bindings()
    work = some_work(inputs={"features": {"connection": "features", "path": "7"}})
    pod = manifests.job(bindings, work, resolve(bindings, work))["spec"]["template"]["spec"]
    env = {entry["name"]: entry for entry in pod["containers"][0]["env"]}
    assert env["S3_KEY"]["valueFrom"] == {"secretKeyRef": {"name": "features", "key": "access"}}
    assert env["LANDBRIDGE_INPUT_FEATURES"]["value"] == "s3://features/daily/7"
    assert env["S3_ENDPOINT"]["value"] == "http://s3.site:8333"


def test_an_identity_becomes_a_service_account_with_a_short_lived_token_for_its_audience() -> None:
    _, found, job = made("full")
    pod = job["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "trainer"
    assert found.principal == "system:serviceaccount:lb-retail-eu:trainer"
    tokens = {
        v["name"]: v["projected"]["sources"][0]["serviceAccountToken"] for v in pod["volumes"] if "projected" in v
    }
    assert tokens["identity"]["audience"] == "sts.site"
    assert tokens["keeper"]["audience"] == "landbridge-keeper"
    assert {token["expirationSeconds"] for token in tokens.values()} == {3600}


def test_members_of_a_gang_find_rank_size_and_first_member() -> None:
    work, _, job = made("gang")
    assert (job["spec"]["completionMode"], job["spec"]["completions"], job["spec"]["parallelism"]) == ("Indexed", 4, 4)
    pod = job["spec"]["template"]["spec"]
    env = {entry["name"]: entry for entry in pod["containers"][0]["env"]}
    name = names.name_of(work.key)
    assert env["MASTER_ADDR"]["value"] == f"{name}-0.{name}"
    assert env["WORLD_SIZE"]["value"] == env["LANDBRIDGE_WORLD_SIZE"]["value"] == "4"
    assert env["RANK"]["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{names.RANK}']"
    assert pod["subdomain"] == name


def test_the_kubelet_expands_nothing_that_was_meant_literally() -> None:
    bindings = some_bindings()
    work = some_work(command=["sh", "-c", "echo $HOME $(WHERE) $$(WHERE)"], env={"WHERE": "here $(pwd)"})
    container = manifests.job(bindings, work, resolve(bindings, work))["spec"]["template"]["spec"]["containers"][0]
    env = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert container["args"][2] == "echo $$HOME here $$(pwd) $$(WHERE)"
    assert env["WHERE"] == "here $$(pwd)"


def test_an_operation_cannot_tell_the_wrapper_anything() -> None:
    bindings = some_bindings()
    work = some_work(env={"LANDBRIDGE_WRAPPER_KEEPER": "http://elsewhere", "LANDBRIDGE_WRAPPER_POLICY": "continue"})
    container = manifests.job(bindings, work, resolve(bindings, work))["spec"]["template"]["spec"]["containers"][0]
    values = [entry["value"] for entry in container["env"] if entry["name"] == "LANDBRIDGE_WRAPPER_KEEPER"]
    assert values == ["http://landbridge-dispatcher:8480"]


def test_a_wrapper_image_brings_its_own_shell() -> None:
    pod = made("plain", wrapper=True)[2]["spec"]["template"]["spec"]
    assert pod["initContainers"][0]["image"] == WRAPPER["image"]
    assert pod["containers"][0]["command"] == ["/landbridge/bin/sh", "/landbridge/wrapper/wrapper.sh"]


def test_the_whole_grace_of_every_policy_fits_into_the_pods() -> None:
    work = some_work(
        lifecycle={
            "stopGrace": "10s",
            "disconnection": {"policy": "stop-after-grace", "stopAfter": "1m", "grace": "45s"},
        }
    )
    bindings = some_bindings()
    pod = manifests.job(bindings, work, resolve(bindings, work))["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 50


def test_a_device_class_is_refused_where_the_version_has_none() -> None:
    assert manifests.devices_version((1, 31)) == ""
    bindings = some_bindings(classes=CLASSES)
    work = some_work(resources={"accelerator": {"class": "slice"}})
    with pytest.raises(RefusedError, match="version"):
        manifests.job(bindings, work, resolve(bindings, work), version="")


def test_what_goes_with_a_slot_is_owned_by_its_job_and_made_from_it_alone() -> None:
    service, deployment = parts_of("service")
    for each in (service, deployment):
        assert each["metadata"]["ownerReferences"][0]["uid"] == "job-uid"
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["readinessProbe"]["httpGet"] == {"path": "/up", "port": 8080}
    assert service["spec"]["ports"][0]["targetPort"] == 8080
    [headless] = parts_of("gang")
    assert headless["spec"]["clusterIP"] == "None"


def test_keys_of_a_store_are_references_and_each_container_has_only_those_that_it_needs() -> None:
    pod = made("carried", wrapper=True)[2]["spec"]["template"]["spec"]
    [work], [shell, carrier] = pod["containers"], pod["initContainers"]
    assert (shell["name"], carrier["name"], carrier["restartPolicy"]) == ("shell", "carrier", "Always")
    assert _secrets(work) == {"tables-keys"}
    assert _secrets(carrier) == {"store-keys"}
    env = {entry["name"]: entry.get("value") for entry in work["env"]}
    assert env["LANDBRIDGE_INPUT_TABLE"] == "s3://tables/daily"
    assert (env["AWS_ENDPOINT_URL"], env["S3_TABLES_BUCKET"]) == ("http://s3.site:8333", "tables")
    shared = {mount["mountPath"] for mount in work["volumeMounts"]} & {m["mountPath"] for m in carrier["volumeMounts"]}
    assert shared == {"/landbridge/carrier", "/landbridge/connections/store"}


def _secrets(container: dict[str, Any]) -> set[str]:
    sources = [entry["valueFrom"] for entry in container["env"] if "valueFrom" in entry]
    return {source["secretKeyRef"]["name"] for source in sources if "secretKeyRef" in source}


ROUTE = {"host": "{name}.{project}.apps.site", "ingressClass": "nginx", "tlsSecret": "apps", "annotations": {"a": "b"}}
GATEWAY = {"host": "{name}.{project}.apps.site", "gateway": {"name": "shared", "sectionName": "https", "https": False}}
SERVICE: dict[str, Any] = {
    "type": "service",
    "ports": {"web": {"port": 8080}, "admin": {"port": 9090}},
    "route": {"name": "churn", "port": "web", "path": "v1/"},
}


def routed(offered: dict[str, Any], **spec: Any) -> tuple[list[dict[str, Any]], str]:
    """What goes with a service, and the endpoint that is told."""
    bindings = some_bindings(route=offered) if offered else some_bindings()
    work = some_work(**{**SERVICE, **spec})
    job = manifests.job(bindings, work, resolve(bindings, work))
    record = records.record_of(job)
    assert record is not None
    return records.read(job, names.PARTS, list[dict[str, Any]]) or [], str(record.resolved["endpoint"])


@pytest.mark.parametrize("version", VERSIONS)
def test_an_ingress_is_valid_in_every_supported_version(version: str) -> None:
    [ingress] = [item for item in routed(ROUTE)[0] if item["kind"] == "Ingress"]
    kubernetes_validate.validate(ingress, version, strict=True)
    assert ingress["spec"]["tls"] == [{"hosts": ["churn.retail-eu.apps.site"], "secretName": "apps"}]
    [path] = ingress["spec"]["rules"][0]["http"]["paths"]
    assert (path["path"], path["backend"]["service"]["port"]) == ("/v1", {"name": "web"})
    assert ingress["metadata"]["annotations"] == {"a": "b"}


def test_an_http_route_has_the_published_shape() -> None:
    [made] = [item for item in routed(GATEWAY)[0] if item["kind"] == "HTTPRoute"]
    assert operator_shapes.problems("HTTPRoute", made) == []
    assert made["spec"]["parentRefs"] == [{"name": "shared", "sectionName": "https"}]
    assert made["spec"]["hostnames"] == ["churn.retail-eu.apps.site"]
    assert made["spec"]["rules"][0]["backendRefs"][0]["port"] == 8080


def test_the_endpoint_is_the_route_or_within_the_cluster() -> None:
    assert routed(ROUTE)[1] == "https://churn.retail-eu.apps.site/v1"
    assert routed(GATEWAY)[1] == "http://churn.retail-eu.apps.site/v1"
    for parts, endpoint in (routed({}), routed(ROUTE, route={"healthPath": "/up"})):
        assert [part["kind"] for part in parts] == ["Service", "Deployment"]
        assert endpoint.endswith((".lb-retail-eu.svc:9090", ".lb-retail-eu.svc:8080"))


@pytest.mark.parametrize(
    "route",
    [
        {"host": "{name}.{project}.apps.site"},
        {"host": "{name}.{project}.apps.site", "ingressClass": "nginx", "gateway": {"name": "shared"}},
        {"host": "{name}.{project}.apps.site", "gateway": {"name": "shared"}, "tlsSecret": "apps"},
        {"host": "{name}.apps.site", "ingressClass": "nginx"},
        {"host": "{project}.apps.site", "ingressClass": "nginx"},
        {"host": "{name}.{project}.apps.site/x", "ingressClass": "nginx"},
        {"host": "*.{name}.{project}.site", "ingressClass": "nginx"},
    ],
)
def test_a_route_that_could_lead_astray_is_refused_with_the_bindings(route: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        some_bindings(route=route)


def test_a_host_name_that_is_too_long_is_refused_before_anything_is_made() -> None:
    with pytest.raises(RefusedError, match="longer than host names"):
        routed(ROUTE, route={"name": "x" * 64})
