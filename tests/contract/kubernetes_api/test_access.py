"""Who may do what: tokens, roles, reviews, and pods that namespaces do not take."""

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from contract.kubernetes_api.samples import a_job, a_pod
from support.kubernetes.access_point import Access, own_namespace

_RBAC = "rbac.authorization.k8s.io"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.fixture
async def reader(api: Access) -> AsyncIterator[Access]:
    """A service account that may read pods and their logs, and the Job `mine`."""
    await api.make("serviceaccounts", {"metadata": {"name": "reader"}})
    rules = [
        {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "resourceNames": ["mine"], "verbs": ["get"]},
    ]
    await api.make(f"roles.{_RBAC}", {"metadata": {"name": "reader"}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": api.namespace}
    role = {"apiGroup": _RBAC, "kind": "Role", "name": "reader"}
    await api.make(f"rolebindings.{_RBAC}", {"metadata": {"name": "reader"}, "subjects": [subject], "roleRef": role})
    answer = await api.make("serviceaccounts/reader/token", {"spec": {}})
    asked = api.anew(answer["status"]["token"])
    yield asked
    await asked.session.close()


async def test_a_role_permits_what_it_names_and_nothing_else(api: Access, reader: Access) -> None:
    await api.make("pods", a_pod())
    await api.make("jobs.batch", a_job("mine"))
    await api.make("jobs.batch", a_job("other"))

    assert (await reader.ask("GET", "pods"))[0] == 200
    assert (await reader.ask("GET", "jobs.batch/mine"))[0] == 200
    for method, path in (
        ("GET", "jobs.batch/other"),
        ("GET", "jobs.batch"),
        ("GET", "secrets"),
        ("DELETE", "pods/pod"),
        ("GET", "/api/v1/namespaces/default/pods"),
        ("GET", "/api/v1/nodes"),
    ):
        status, told = await reader.ask(method, path)
        assert (status, told["reason"]) == (403, "Forbidden"), (method, path)
    assert (await reader.ask("POST", "pods", a_pod("new")))[0] == 403
    assert (await reader.apply("pods/new", a_pod("new"), "one"))[0] == 403


async def test_a_refusal_says_who_may_not_do_what(api: Access, reader: Access) -> None:
    _, told = await reader.ask("GET", "secrets")

    who = f'User "system:serviceaccount:{api.namespace}:reader"'
    what = f'cannot list resource "secrets" in API group "" in the namespace "{api.namespace}"'
    assert told["message"] == f"secrets is forbidden: {who} {what}"


@pytest.mark.parametrize(
    ("attributes", "allowed"),
    [
        ({"verb": "list", "resource": "pods"}, True),
        ({"verb": "get", "resource": "pods", "subresource": "log"}, True),
        ({"verb": "get", "resource": "jobs", "group": "batch", "name": "mine"}, True),
        ({"verb": "get", "resource": "jobs", "group": "batch", "name": "other"}, False),
        ({"verb": "create", "resource": "pods"}, False),
        ({"verb": "list", "resource": "pods", "namespace": "kube-system"}, False),
    ],
)
async def test_one_can_ask_what_one_may(api: Access, reader: Access, attributes: dict[str, str], allowed: bool) -> None:
    asked = {"namespace": api.namespace, **attributes}

    status, told = await reader.ask("POST", _REVIEWS, {"spec": {"resourceAttributes": asked}})

    assert (status, told["status"]["allowed"]) == (201, allowed)


async def test_one_can_ask_who_one_is(api: Access, reader: Access) -> None:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

    _, told = await reader.ask("POST", path, {})

    assert told["status"]["userInfo"]["username"] == f"system:serviceaccount:{api.namespace}:reader"


async def test_an_unknown_token_is_nobody(api: Access) -> None:
    stranger = api.anew("not.a.token")
    try:
        status, told = await stranger.ask("GET", "pods")
    finally:
        await stranger.session.close()

    assert (status, told["reason"]) == (401, "Unauthorized")


async def test_a_token_is_for_an_audience_and_a_time(api: Access) -> None:
    spec = {"audiences": ["landbridge"], "expirationSeconds": 600}

    told = await api.make("serviceaccounts/default/token", {"spec": spec})

    claims = json.loads(base64.urlsafe_b64decode(told["status"]["token"].split(".")[1] + "=="))
    assert claims["aud"] == ["landbridge"]
    assert 595 <= claims["exp"] - claims["iat"] <= 605
    assert claims["sub"] == f"system:serviceaccount:{api.namespace}:default"
    assert told["status"]["expirationTimestamp"].endswith("Z")
    stranger = api.anew(told["status"]["token"])
    try:
        assert (await stranger.ask("GET", "pods"))[0] == 401
    finally:
        await stranger.session.close()


async def test_a_token_that_lives_too_short_or_for_nobody_is_not_issued(api: Access) -> None:
    short, told = await api.ask("POST", "serviceaccounts/default/token", {"spec": {"expirationSeconds": 599}})
    nobody, _ = await api.ask("POST", "serviceaccounts/nobody/token", {"spec": {}})
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "none"}
    unbound, _ = await api.ask("POST", "serviceaccounts/default/token", {"spec": {"boundObjectRef": bound}})

    assert (short, nobody, unbound) == (422, 404, 404)
    assert "may not specify a duration less than 10 minutes" in told["message"]


async def test_a_pod_needs_its_service_account(api: Access) -> None:
    status, told = await api.ask("POST", "pods", a_pod(serviceAccountName="nobody"))

    assert (status, told["reason"]) == (403, "Forbidden")
    assert 'serviceaccount "nobody" not found' in told["message"]


_FINE = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.mark.parametrize(
    ("level", "spec", "context", "why"),
    [
        ("baseline", {}, {"privileged": True}, "privileged"),
        ("baseline", {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, {}, "hostPath volumes"),
        ("baseline", {"hostNetwork": True, "hostPID": True}, {}, "host namespaces (hostNetwork=true, hostPID=true)"),
        ("baseline", {}, {"capabilities": {"add": ["SYS_ADMIN"]}}, "non-default capabilities"),
        ("restricted", {}, {**_FINE, "runAsNonRoot": None}, "runAsNonRoot != true"),
        ("restricted", {}, {**_FINE, "runAsUser": 0}, "runAsUser=0"),
        ("restricted", {}, {**_FINE, "seccompProfile": None}, "seccompProfile"),
        ("restricted", {}, {**_FINE, "capabilities": None}, "unrestricted capabilities"),
        ("restricted", {}, {**_FINE, "allowPrivilegeEscalation": None}, "allowPrivilegeEscalation != false"),
        ("baseline", {}, {"runAsUser": 0}, ""),
        ("restricted", {}, _FINE, ""),
    ],
)
async def test_a_namespace_refuses_pods_beyond_its_standard(
    api: Access, level: str, spec: dict[str, Any], context: dict[str, Any], why: str
) -> None:
    pod = a_pod(**spec)
    pod["spec"]["containers"][0]["securityContext"] = context
    async with own_namespace(api, {"pod-security.kubernetes.io/enforce": level}):
        status, told = await api.ask("POST", "pods", pod, dryRun="All")

    if not why:
        assert status == 201
        return
    assert (status, told["reason"]) == (403, "Forbidden")
    assert f'violates PodSecurity "{level}:latest": ' in told["message"]
    assert why in told["message"]


async def test_a_template_is_judged_when_its_pods_are_made(api: Access) -> None:
    job = a_job()
    job["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    async with own_namespace(api, {"pod-security.kubernetes.io/enforce": "baseline"}):
        assert (await api.ask("POST", "jobs.batch", job))[0] == 201
