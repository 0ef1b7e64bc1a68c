"""The API itself, without HTTP: one call is one transaction."""

import copy
import secrets
import uuid
from dataclasses import dataclass, field
from typing import Any

from support.kubernetes import defaults, deletion, ownership, patches, pod_security, reviews, validation
from support.kubernetes.access import ADMIN, Access, Attributes, User
from support.kubernetes.errors import (
    ApiError,
    Object,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
)
from support.kubernetes.resources import Resource, Served
from support.kubernetes.store import Key, Store

APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True)
class Call:
    """Who asks for what in which way."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    user: User = ADMIN
    manager: str = "unknown"
    dry_run: bool = False
    force: bool = False
    content_type: str = ""

    @property
    def key(self) -> Key:
        return self.resource.store_key, self.namespace, self.name

    def attributes(self, verb: str) -> Attributes:
        item = self.resource
        # The namespace of a namespace is itself.
        place = self.name if item.store_key == ("", "namespaces") else self.namespace
        return Attributes(verb, item.group, item.plural, self.subresource, place, self.name)


@dataclass
class Api:
    """Reads and writes of objects."""

    store: Store = field(default_factory=Store)
    served: Served = field(default_factory=Served)
    access: Access = field(init=False)
    enforce_pod_security: bool = True
    """Off: what the labels of namespaces ask for is not enforced, as where that plug-in is switched off."""
    forbidden_images: tuple[str, ...] = ()
    """Prefixes of images that an admission policy refuses."""

    def __post_init__(self) -> None:
        self.access = Access(self.store)

    def get(self, call: Call) -> Object:
        found = self.store.get(call.key)
        if found is None:
            raise not_found(call.resource.qualified, call.name)
        return found

    def create(self, call: Call, body: Object) -> Object:
        resource = call.resource
        if resource.create_only:
            return reviews.answer(self.access, call.user, resource, body)
        item = _typed(resource, body, call.namespace)
        meta = item["metadata"]
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = f"{meta['generateName'][:58]}{secrets.token_hex(3)[:5]}"
        if meta.get("resourceVersion"):
            raise ApiError(500, "InternalError", "resourceVersion should not be set on objects to be created")
        self._namespace_takes(call, str(meta.get("name") or ""))
        key = (resource.store_key, call.namespace, str(meta.get("name") or ""))
        if key in self.store.objects:
            raise already_exists(resource.qualified, meta["name"])
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"):
            meta.pop(name, None)
        meta.update(uid=str(uuid.uuid4()), creationTimestamp=ownership.now())
        item = self._completed(call, item)
        ownership.note_update(resource, None, item, call.manager, "")
        return self._write(call, key, item)

    def _completed(self, call: Call, item: Object) -> Object:
        """A new object with its defaults, checked and admitted."""
        resource = call.resource
        if "spec" in item or resource.custom:
            item["metadata"]["generation"] = 1
        if not item["metadata"].get("name"):
            validation.check_new(resource, item)
        _whole(resource, item)
        defaults.fill_in(resource, item)
        defaults.first_status(resource, item)
        validation.check_new(resource, item)
        self._admit(call, item)
        return item

    def update(self, call: Call, body: Object) -> Object:
        """PUT."""
        old = self.get(call)
        new = _typed(call.resource, body, call.namespace)
        if new["metadata"].get("name") != call.name:
            raise bad_request("the name of the object does not match the name on the URL")
        return self._replace(call, old, new)

    def patch(self, call: Call, body: Any) -> Object:
        if call.content_type.startswith("application/apply-patch"):
            return self._apply(call, body)
        old = self.get(call)
        match call.content_type:
            case "application/merge-patch+json":
                new = patches.merge_patch(old, body)
            case "application/strategic-merge-patch+json" if not call.resource.custom:
                new = patches.strategic_merge_patch(old, body)
            case "application/json-patch+json":
                new = patches.json_patch(old, body)
            case other:
                raise ApiError(
                    415, "UnsupportedMediaType", f"the body of the request was in an unknown format: {other}"
                )
        if new["metadata"].get("uid") not in (None, old["metadata"]["uid"]):
            why = f'Invalid value: "{new["metadata"]["uid"]}": field is immutable'
            raise invalid(call.resource.kind, call.resource.group, call.name, [("metadata.uid", why)])
        return self._replace(call, old, new)

    def _replace(self, call: Call, old: Object, new: Object) -> Object:
        _same_object(call.resource, old, new)
        new = _only_its_part(call, old, copy.deepcopy(new))
        new["metadata"]["managedFields"] = old["metadata"].get("managedFields") or []
        return self._changed(call, old, new, traced=False)

    def _apply(self, call: Call, body: Object) -> Object:
        if not call.manager or call.manager == "unknown":
            raise ApiError(
                422,
                "Invalid",
                "PatchOptions.meta.k8s.io is invalid: fieldManager: Required value: is required for apply patch",
            )
        if (body.get("metadata") or {}).get("managedFields"):
            raise bad_request("metadata.managedFields must be nil")
        applied = _typed(call.resource, body, call.namespace)
        if applied["metadata"].setdefault("name", call.name) != call.name:
            raise bad_request("the name of the object does not match the name on the URL")
        live = self.store.get(call.key)
        if live is None:
            if call.subresource:
                raise not_found(call.resource.qualified, call.name)
            return self._apply_new(call, applied)
        _same_object(call.resource, live, applied)
        part = _only_its_part(call, {}, applied)
        new = ownership.apply(call.resource, live, part, call.manager, force=call.force, subresource=call.subresource)
        new["metadata"] = {**new["metadata"], **_system(live)}
        return self._changed(call, live, new, traced=True)

    def _apply_new(self, call: Call, applied: Object) -> Object:
        self.access.check(call.user, call.attributes("create"))
        self._namespace_takes(call, call.name)
        if applied["metadata"].get("uid"):
            why = f"Precondition failed: UID in precondition: {applied['metadata']['uid']}, UID in object meta: "
            raise conflict(call.resource.qualified, call.name, why)
        if "status" in call.resource.subresources:
            applied.pop("status", None)
        item = ownership.apply(call.resource, None, applied, call.manager, force=False, subresource="")
        item["metadata"].update(uid=str(uuid.uuid4()), creationTimestamp=ownership.now())
        return self._write(call, call.key, self._completed(call, item))

    def _changed(self, call: Call, old: Object, new: Object, *, traced: bool) -> Object:
        """Write a changed object, unless nothing has changed."""
        _whole(call.resource, new)
        defaults.fill_in(call.resource, new)
        validation.check_update(call.resource, old, new)
        if _content(old) != _content(new) and "generation" in old["metadata"]:
            new["metadata"]["generation"] = old["metadata"]["generation"] + 1
        if not traced:
            ownership.note_update(call.resource, old, new, call.manager, call.subresource)
        written = self._write(call, call.key, new)
        if not call.dry_run:
            deletion.finish_if_free(self.store, call.key)
        return written

    def delete(self, call: Call, options: Object) -> tuple[Object, bool]:
        self.get(call)
        item, gone = deletion.delete(self.store, call.resource, call.key, options, dry_run=call.dry_run)
        if gone and not call.dry_run and call.resource.plural == "customresourcedefinitions":
            self.served.undefine(item)
            for key in [
                key for key in self.store.objects if key[0] == (item["spec"]["group"], item["spec"]["names"]["plural"])
            ]:
                self.store.delete(key)
        return item, gone

    def _write(self, call: Call, key: Key, item: Object) -> Object:
        if call.dry_run:
            return item
        written = self.store.put(key, item)
        if call.resource.plural == "customresourcedefinitions":
            self.served.define(written)
        return written

    def _namespace_takes(self, call: Call, name: str) -> None:
        if not call.resource.namespaced:
            return
        namespace = self.store.objects.get((("", "namespaces"), "", call.namespace))
        if namespace is None:
            raise not_found("namespaces", call.namespace)
        if namespace["metadata"].get("deletionTimestamp"):
            raise validation.namespace_ends(call.resource.qualified, name, call.namespace)

    def _admit(self, call: Call, item: Object) -> None:
        """Plug-ins that judge pods; templates are judged when their pods are made."""
        if call.resource.store_key != ("", "pods"):
            return
        name, spec = item["metadata"]["name"], item["spec"]
        account = spec["serviceAccountName"]
        if (("", "serviceaccounts"), call.namespace, account) not in self.store.objects:
            why = f'error looking up service account {call.namespace}/{account}: serviceaccount "{account}" not found'
            raise forbidden("pods", name, why)
        labels = self.store.objects[("", "namespaces"), "", call.namespace]["metadata"].get("labels") or {}
        level = labels.get(pod_security.ENFORCE, "privileged") if self.enforce_pod_security else "privileged"
        if found := pod_security.violations(spec, level):
            raise forbidden("pods", name, f'violates PodSecurity "{level}:latest": {", ".join(found)}')
        for container in spec["containers"]:
            if str(container["image"]).startswith(self.forbidden_images or ("\0",)):
                why = f"ValidatingAdmissionPolicy 'images' denied request: image {container['image']} is not allowed"
                raise forbidden("pods", name, why)


def _typed(resource: Resource, body: Any, namespace: str) -> Object:
    if not isinstance(body, dict):
        raise bad_request("the object provided is unrecognized (must be of type Object)")
    for name, wanted in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if body.get(name) not in (None, "", wanted):
            raise bad_request(f"the {name} in the data ({body[name]}) does not match the expected ({wanted})")
    item = copy.deepcopy(body)
    item["apiVersion"], item["kind"] = resource.api_version, resource.kind
    meta = item["metadata"] = item.get("metadata") or {}
    if resource.namespaced and meta.get("namespace") not in (None, "", namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if resource.namespaced:
        meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)
    return item


def _whole(resource: Resource, item: Object) -> None:
    """Parts without which no default can be filled in are there, empty."""
    if resource.store_key in (("batch", "jobs"), ("apps", "deployments")):
        item.setdefault("spec", {}).setdefault("template", {}).setdefault("spec", {})
    elif resource.store_key in (("", "pods"), ("", "persistentvolumeclaims")):
        item.setdefault("spec", {})


def _same_object(resource: Resource, old: Object, new: Object) -> None:
    """The object that was meant is the one that is there, and as it was read."""
    uid, revision = new["metadata"].get("uid"), new["metadata"].get("resourceVersion")
    if uid and uid != old["metadata"]["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}"
        raise conflict(resource.qualified, old["metadata"]["name"], why)
    if revision and revision != old["metadata"]["resourceVersion"]:
        raise conflict(resource.qualified, old["metadata"]["name"])


def _system(old: Object) -> Object:
    names = (
        "uid",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
    )
    return {name: old["metadata"][name] for name in names if name in old["metadata"]}


def _only_its_part(call: Call, old: Object, new: Object) -> Object:
    """The status is written through its subresource only, and nothing else is."""
    if old:
        new["metadata"] = {
            **{key: value for key, value in new["metadata"].items() if key not in _SYSTEM},
            **_system(old),
        }
    if call.subresource in ("status", "finalize"):
        part = {"status": "status", "finalize": "spec"}[call.subresource]
        kept = {name: value for name, value in (old or new).items() if name != part}
        if not old:
            kept = {name: kept[name] for name in ("apiVersion", "kind", "metadata")}
        return {**kept, **({part: new[part]} if part in new else {})}
    if "status" in call.resource.subresources:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
    return new


_SYSTEM = frozenset(
    ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion")
)


def _content(item: Object) -> Object:
    return {name: value for name, value in item.items() if name not in ("metadata", "status")}
