"""Reviews: questions that are answered and not kept."""

from support.kubernetes.access import Access, Attributes, User
from support.kubernetes.errors import Object, bad_request
from support.kubernetes.resources import Resource


def answer(access: Access, user: User, resource: Resource, body: Object) -> Object:
    status: Object
    if resource.kind == "SelfSubjectReview":
        status = {"userInfo": {"username": user.name, "groups": list(user.groups), "uid": user.uid}}
    elif resource.kind == "TokenReview":
        spec = body.get("spec") or {}
        status = access.review(spec.get("token", ""), spec.get("audiences") or ())
    else:
        asked = (body.get("spec") or {}).get("resourceAttributes")
        path = (body.get("spec") or {}).get("nonResourceAttributes")
        if not asked and not path:
            raise bad_request("exactly one of resourceAttributes and nonResourceAttributes must be specified")
        status = {"allowed": access.may(user, _attributes(asked or {}, path or {}))}
        if not status["allowed"]:
            status["reason"] = ""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"creationTimestamp": None},
        "spec": body.get("spec") or {},
        "status": status,
    }


def _attributes(asked: Object, path: Object) -> Attributes:
    return Attributes(
        asked.get("verb") or path.get("verb", ""),
        asked.get("group", ""),
        asked.get("resource", ""),
        asked.get("subresource", ""),
        asked.get("namespace", ""),
        asked.get("name", ""),
        path.get("path", ""),
    )
