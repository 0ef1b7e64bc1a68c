"""Who asks and what they may: tokens, and RBAC as the objects in the store say."""

import base64
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from support.kubernetes.errors import ApiError, Object, invalid, not_found
from support.kubernetes.store import Store

_RBAC = "rbac.authorization.k8s.io"
_TOKEN = "authentication.kubernetes.io"
_OPEN_TO_ALL = frozenset(("selfsubjectaccessreviews", "selfsubjectreviews", "selfsubjectrulesreviews"))


@dataclass(frozen=True)
class User:
    """Who asks. Members of system:masters may do anything."""

    name: str
    groups: tuple[str, ...] = ("system:authenticated",)
    uid: str = ""

    @property
    def is_master(self) -> bool:
        return "system:masters" in self.groups


ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"))


@dataclass(frozen=True)
class Attributes:
    """What is asked for."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


@dataclass
class Access:
    """Tokens that were issued and the check of every request."""

    store: Store
    tokens: dict[str, tuple[User, float]] = field(default_factory=dict)
    issued: dict[str, tuple[User, tuple[str, ...], float, Object]] = field(default_factory=dict)
    """Of tokens for service accounts: who, for whom, until when, and the pod that it is bound to."""

    def user_of(self, authorization: str) -> User:
        """Nobody in particular is the administrator, as with a client certificate. Raises a 401."""
        if not authorization:
            return ADMIN
        found = self.tokens.get(authorization.removeprefix("Bearer ").strip())
        if found is None or found[1] < time.time():
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return found[0]

    def allow(self, token: str, user: User, seconds: float = 3600) -> None:
        self.tokens[token] = (user, time.time() + seconds)

    def issue(self, namespace: str, name: str, request: Object) -> Object:
        """Answer a TokenRequest for a service account."""
        account = self.store.get((("", "serviceaccounts"), namespace, name))
        if account is None:
            raise not_found("serviceaccounts", name)
        spec = request.get("spec") or {}
        seconds = int(spec.get("expirationSeconds") or 3600)
        if seconds < 600:
            why = "Invalid value: may not specify a duration less than 10 minutes"
            raise invalid("TokenRequest", "authentication.k8s.io", name, [("spec.expirationSeconds", why)])
        self._bound(spec.get("boundObjectRef"), namespace)
        audiences = spec.get("audiences") or ["https://kubernetes.default.svc"]
        user = User(
            f"system:serviceaccount:{namespace}:{name}",
            ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"),
            account["metadata"]["uid"],
        )
        now = int(time.time())
        claims = {
            "aud": audiences,
            "exp": now + seconds,
            "iat": now,
            "sub": user.name,
            "jti": str(len(self.tokens) + len(self.issued)),
        }
        token = ".".join(_part(part) for part in ({"alg": "none"}, claims, {"signed": "by nobody"}))
        self.issued[token] = user, tuple(audiences), now + seconds, spec.get("boundObjectRef") or {}
        if "https://kubernetes.default.svc" in audiences:
            self.allow(token, user, seconds)
        until = datetime.fromtimestamp(now + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": None},
            "spec": {
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {"token": token, "expirationTimestamp": until},
        }

    def review(self, token: str, audiences: Iterable[str]) -> Object:
        """Answer a TokenReview; a token dies with the pod that it is bound to."""
        user, meant, until, bound = self.issued.get(token, (None, (), 0.0, {}))
        for_us = [audience for audience in audiences or meant if audience in meant]
        namespace = user.name.split(":")[2] if user is not None else ""
        pod = self.store.get((("", "pods"), namespace, bound["name"])) if bound.get("kind") == "Pod" else None
        dead = bound.get("kind") == "Pod" and (pod is None or pod["metadata"]["uid"] != bound.get("uid"))
        if user is None or until < time.time() or not for_us or dead:
            return {"user": {}, "error": "the token is not valid"}
        extra = {} if pod is None else {f"{_TOKEN}/pod-name": [bound["name"]], f"{_TOKEN}/pod-uid": [bound["uid"]]}
        told = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
        return {"authenticated": True, "user": told, "audiences": for_us}

    def _bound(self, reference: Object | None, namespace: str) -> None:
        if not reference:
            return
        plural = {"Pod": "pods", "Secret": "secrets"}[reference["kind"]]
        item = self.store.get((("", plural), namespace, reference["name"]))
        if item is None:
            raise not_found(plural, reference["name"])
        if reference.get("uid") not in (None, "", item["metadata"]["uid"]):
            raise ApiError(
                409, "Conflict", f"the UID in the bound object reference ({reference['uid']}) does not match"
            )

    def may(self, user: User, asked: Attributes) -> bool:
        if user.is_master or asked.path or asked.resource in _OPEN_TO_ALL:
            return True
        return any(_permits(rule, asked) for rule in self._rules(user, asked.namespace))

    def check(self, user: User, asked: Attributes) -> None:
        """Raises a 403 that says who cannot do what."""
        if self.may(user, asked):
            return
        resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
        where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
        qualified = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
        subject = f'{qualified} "{asked.name}"' if asked.name else qualified
        what = f'User "{user.name}" cannot {asked.verb} resource "{resource}" in API group "{asked.group}" {where}'
        details = {"name": asked.name, "group": asked.group, "kind": asked.resource}
        details = {key: value for key, value in details.items() if value}
        raise ApiError(403, "Forbidden", f"{subject} is forbidden: {what}", details=details)

    def _rules(self, user: User, namespace: str) -> Iterator[Object]:
        for (resource, place, _), binding in list(self.store.objects.items()):
            if resource not in ((_RBAC, "clusterrolebindings"), (_RBAC, "rolebindings")):
                continue
            if resource[1] == "rolebindings" and place != namespace:
                continue
            if not any(_is(user, subject, place) for subject in binding.get("subjects") or ()):
                continue
            reference = binding["roleRef"]
            plural = "roles" if reference["kind"] == "Role" else "clusterroles"
            role = self.store.get(((_RBAC, plural), place if plural == "roles" else "", reference["name"]))
            yield from (role or {}).get("rules") or ()


def _is(user: User, subject: Object, namespace: str) -> bool:
    match subject["kind"]:
        case "User":
            return bool(subject["name"] == user.name)
        case "Group":
            return subject["name"] in user.groups
        case _:
            place = subject.get("namespace", namespace)
            return bool(user.name == f"system:serviceaccount:{place}:{subject['name']}")


def _permits(rule: Object, asked: Attributes) -> bool:
    wanted = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    resources = rule.get("resources") or ()
    return (
        _holds(rule.get("verbs"), asked.verb)
        and _holds(rule.get("apiGroups"), asked.group)
        and (_holds(resources, wanted) or (bool(asked.subresource) and f"*/{asked.subresource}" in resources))
        and (not rule.get("resourceNames") or asked.name in rule["resourceNames"])
    )


def _holds(listed: Sequence[str] | None, wanted: str) -> bool:
    return "*" in (listed or ()) or wanted in (listed or ())


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
