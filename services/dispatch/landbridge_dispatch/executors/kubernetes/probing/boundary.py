"""Boundaries, tried from inside: what must be refused is asked for, by dry runs and by questions about rights."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from landbridge.domain import units
from landbridge.domain.probe_kinds import REFUSED
from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.executors.bindings import Bindings, Principal
from landbridge_dispatch.executors.claimed import claimed_part
from landbridge_dispatch.executors.kubernetes.api import Api, ApiError, Object, UnreachableError
from landbridge_dispatch.executors.kubernetes.probing import tries
from landbridge_dispatch.executors.kubernetes.shelf import namespaces_of, pods_path
from landbridge_dispatch.executors.protocol import Finding

_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_NOT_MAY: Final = "cannot create resource"
"""How RBAC says no; a no of admission says something else."""
_TOKEN_MIN_S: Final = 600
_SLACK_S: Final = 120
# What a dispatcher that may do it could use to leave its namespaces: verb, group, resource, namespace (empty: any).
_OUTSIDE: Final = (
    ("list", "", "secrets", "kube-system"),
    ("create", "", "pods", "kube-system"),
    ("create", "batch", "jobs", "default"),
    ("list", "", "secrets", ""),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings", ""),
    ("impersonate", "", "users", ""),
)
# What no workload's own account may do.
_OF_WORK: Final = (
    ("list", "", "secrets"),
    ("create", "", "pods"),
    ("create", "batch", "jobs"),
    ("create", "", "pods/exec"),
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """`admitted` None: it could not be told, and `told` says why."""

    admitted: bool | None
    told: str = ""


class Boundaries:
    """Probes of what is kept apart."""

    def __init__(self, api: Api, bindings: Bindings) -> None:
        self._api = api
        self._bindings = bindings
        self._subject = "the cluster's admission and rights"
        site = bindings.kubernetes
        self._image = site.probes.image or site.wrapper.image or tries.NOWHERE

    async def run(self, probe: Probe) -> Finding | None:
        """Try one boundary. None: the dispatcher's own check, which is the same for every executor, has the word."""
        refused = probe.parameters.get("expect") == REFUSED
        part = claimed_part(probe)
        match probe.parameters.get("boundary", ""):
            case "securityTier":
                return await self._refuses_pods(tries.LEVELS.get(str(part.get("securityTier", "")), ""), [])
            case "admission" if refused:
                return await self._refuses_pods(str(part.get("podSecurity", "")), part.get("images") or [])
            case "admission":
                return await self._admits()
            case "tenancy" if refused:
                return await self._keeps_apart()
            case "tenancy":
                return await self._may_work()
            case "identity" if refused:
                return await self._roles_may_nothing(sorted(part.get("roles") or {}))
            case "identity":
                return await self._issues_tokens(sorted(part.get("roles") or {}), str(part.get("tokenTTL") or ""))
        name = probe.parameters.get("boundary", "")
        return self._finding(EvidenceResult.UNKNOWN, f"boundary {name} is not probed in clusters by this release")

    # -- admission -----------------------------------------------------------------------------------------------

    async def _refuses_pods(self, level: str, images: Sequence[str]) -> Finding:
        """Every namespace of the work refuses what the standard forbids, and nothing else is why."""
        for namespace in namespaces_of(self._bindings):
            control = await self.attempt(namespace, tries.harmless("default", self._image))
            if not control.admitted:
                # Then whatever is refused shows nothing.
                told = f"{tries.HARMLESS} is not let in either, in namespace {namespace}: {control.told}"
                return self._finding(EvidenceResult.UNKNOWN, told)
            wrong = tries.forbidden(level, "default", self._image)
            if images:
                wrong["a pod with an image from elsewhere"] = tries.harmless("default", tries.NOWHERE)
            results = await asyncio.gather(*(self.attempt(namespace, pod) for pod in wrong.values()))
            for what, result in zip(wrong, results, strict=True):
                where = f"{what}, in namespace {namespace}"
                if result.admitted is None:
                    return self._finding(EvidenceResult.UNKNOWN, f"{where}: {result.told}")
                if result.admitted:
                    return self._finding(EvidenceResult.FAILED, f"let in (dry run): {where}")
        if not wrong:
            return self._finding(EvidenceResult.UNKNOWN, "the claim forbids nothing that could be tried")
        return self._finding(EvidenceResult.PROVEN, f"refused: {', '.join(wrong)}")

    async def _admits(self) -> Finding:
        """Let in a pod as work brings it, with an image that the site uses."""
        for namespace in namespaces_of(self._bindings):
            result = await self.attempt(namespace, tries.harmless("default", self._image))
            if not result.admitted:
                worst = EvidenceResult.UNKNOWN if result.admitted is None else EvidenceResult.FAILED
                return self._finding(worst, f"{tries.HARMLESS} in namespace {namespace}: {result.told}")
        return self._finding(EvidenceResult.PROVEN, f"let in: {tries.HARMLESS} (dry run)")

    async def attempt(self, namespace: str, pod: Object) -> Attempt:
        """Ask the cluster to create a pod, without creating it."""
        try:
            await self._api.create(pods_path(namespace), pod, dryRun="All")
        except UnreachableError as error:
            return Attempt(None, error.message)
        except ApiError as error:
            if error.status == 403 and _NOT_MAY in error.message:
                return Attempt(None, "the dispatcher may not try: see its Role")
            if error.status in (401, 404):
                return Attempt(None, error.message)
            return Attempt(False, error.message)
        return Attempt(True)

    # -- tenancy -------------------------------------------------------------------------------------------------

    async def _may_work(self) -> Finding:
        for namespace in namespaces_of(self._bindings):
            if not await self.may("create", "batch", "jobs", namespace):
                return self._finding(
                    EvidenceResult.FAILED, f"the dispatcher may not create Jobs in namespace {namespace}"
                )
        return self._finding(EvidenceResult.PROVEN, f"may work in: {', '.join(namespaces_of(self._bindings))}")

    async def _keeps_apart(self) -> Finding:
        """Ask for rights outside of the work's namespaces, by question and by a real attempt."""
        own = namespaces_of(self._bindings)
        asked = [(*item[:3], item[3]) for item in _OUTSIDE if item[3] not in own]
        asked += [("get", "", "secrets", namespace) for namespace in own]
        results = await asyncio.gather(*(self.may(*item) for item in asked))
        for (verb, _, resource, namespace), allowed in zip(asked, results, strict=True):
            if allowed:
                where = f"in namespace {namespace}" if namespace else "in the whole cluster"
                return self._finding(EvidenceResult.FAILED, f"the dispatcher may {verb} {resource} {where}")
        for path in ("/api/v1/namespaces/kube-system/configmaps", "/api/v1/secrets"):
            try:
                await self._api.list(path, limit="1")
            except UnreachableError as error:
                return self._finding(EvidenceResult.UNKNOWN, error.message)
            except ApiError:
                continue
            return self._finding(EvidenceResult.FAILED, f"the dispatcher could read {path.rpartition('/')[2]} outside")
        return self._finding(EvidenceResult.PROVEN, "refused: rights outside of the work's namespaces, Secrets within")

    async def may(self, verb: str, group: str, resource: str, namespace: str) -> bool:
        """Ask the cluster what the dispatcher itself may. Raises ApiError."""
        return await may(self._api, verb, group, resource, namespace)

    # -- identity ------------------------------------------------------------------------------------------------

    async def _issues_tokens(self, roles: Sequence[str], ttl: str) -> Finding | None:
        """Tokens are issued for every role, and end when the contract says. None: so it is."""
        seconds = max(_TOKEN_MIN_S, units.parse_duration(ttl) // 1000 if ttl else _TOKEN_MIN_S)
        for role, namespace, principal in self._accounts(roles):
            audience = principal.audience or self._bindings.kubernetes.keeper.audience
            spec = {"audiences": [audience], "expirationSeconds": seconds}
            try:
                answer = await self._token(namespace, principal, spec)
            except ApiError as error:
                return self._no_token(role, error)
            ends = datetime.fromisoformat(answer["status"]["expirationTimestamp"]).timestamp()
            if ends > time.time() + seconds + _SLACK_S:
                told = f"role {role}: a token asked for {seconds} s lives {ends - time.time():.0f} s"
                return self._finding(EvidenceResult.FAILED, told)
        return None

    async def _roles_may_nothing(self, roles: Sequence[str]) -> Finding | None:
        """Nobody's workload may read Secrets or make pods, with the token that it has. None: so it is."""
        for role, namespace, principal in self._accounts(roles):
            try:
                answer = await self._token(namespace, principal, {"expirationSeconds": _TOKEN_MIN_S})
            except ApiError as error:
                return self._no_token(role, error)
            async with self._api.anew(answer["status"]["token"]) as asked:
                questions = [(*item, namespace) for item in _OF_WORK] + [("list", "", "secrets", "kube-system")]
                results = await asyncio.gather(*(may(asked, *item) for item in questions))
            for (verb, _, resource, where), allowed in zip(questions, results, strict=True):
                if allowed:
                    told = f"role {role}: its account may {verb} {resource} in namespace {where}"
                    return self._finding(EvidenceResult.FAILED, told)
        return None

    def _accounts(self, roles: Sequence[str]) -> list[tuple[str, str, Principal]]:
        """Roles of the contract with their accounts, in every namespace of the work."""
        known = self._bindings.identities or {}
        found = [(role, known.get(role, Principal())) for role in roles]
        return [(role, space, principal) for space in namespaces_of(self._bindings) for role, principal in found]

    async def _token(self, namespace: str, principal: Principal, spec: Mapping[str, Any]) -> Object:
        name = principal.service_account or "default"
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": dict(spec)}
        return await self._api.create(path, body)

    def _no_token(self, role: str, error: ApiError) -> Finding:
        result = EvidenceResult.FAILED if error.status == 404 else EvidenceResult.UNKNOWN
        return self._finding(result, f"role {role}: no token is issued: {error.message}")

    def _finding(self, result: EvidenceResult, detail: str) -> Finding:
        return Finding(result, self._subject, detail)


async def may(api: Api, verb: str, group: str, resource: str, namespace: str) -> bool:
    """Ask a cluster whether whoever `api` speaks for may do something. Raises ApiError."""
    plural, _, subresource = resource.partition("/")
    asked = {"verb": verb, "group": group, "resource": plural, "namespace": namespace}
    if subresource:
        asked["subresource"] = subresource
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    answer = await api.create(_REVIEWS, body)
    return bool((answer.get("status") or {}).get("allowed"))
