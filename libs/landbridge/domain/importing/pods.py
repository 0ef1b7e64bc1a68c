"""What a Kubernetes pod says beside its containers, as Jobs and Polyaxonfiles have it."""

from collections.abc import Mapping
from typing import Any, Final

from landbridge.domain.documents.places import Path
from landbridge.domain.importing.hardware import take_product
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.sheet import Sheet
from landbridge.domain.importing.variables import SECRET
from landbridge.domain.importing.wishes import PLACEMENT, PULL_SECRET, REGION, take_mount

_CONFINED: Final = Left(
    Why.DECISION,
    "the environment decides as whom and how confined work runs",
    "name a role in spec.identity, and controls in spec.constraints.controls",
)
_NETWORK: Final = Left(Why.NO_COUNTERPART, "the network of a pod, which the environment keeps")
POD: Final[dict[str, Left]] = {
    "restartPolicy": Left(Why.NOT_NEEDED, "spec.lifecycle.retries says what follows a failure"),
    "affinity": PLACEMENT,
    "tolerations": PLACEMENT,
    "topologySpreadConstraints": PLACEMENT,
    "nodeName": PLACEMENT,
    "schedulerName": PLACEMENT,
    "runtimeClassName": PLACEMENT,
    "imagePullSecrets": PULL_SECRET,
    "securityContext": _CONFINED,
    "automountServiceAccountToken": _CONFINED,
    "hostNetwork": _CONFINED,
    "hostPID": _CONFINED,
    "hostIPC": _CONFINED,
    "hostUsers": _CONFINED,
    "shareProcessNamespace": _CONFINED,
    "hostAliases": _NETWORK,
    "dnsPolicy": _NETWORK,
    "dnsConfig": _NETWORK,
    "hostname": _NETWORK,
    "subdomain": _NETWORK,
    "setHostnameAsFQDN": _NETWORK,
    "enableServiceLinks": _NETWORK,
    "priority": Left(Why.DECISION, "a number of the cluster", "spec.priority names a class of the queue"),
    "preemptionPolicy": Left(Why.NOT_NEEDED, "the queue says whether work may displace other work"),
    "os": PLACEMENT,
    "resourceClaims": Left(Why.NAME, "a device claim of the cluster", "ask for a capability class"),
    "initContainers": Left(
        Why.NO_COUNTERPART, "an operation has one container", "prepare in the command, or name what it fetches as input"
    ),
    "ephemeralContainers": Left(Why.NO_COUNTERPART, "an operation has one container"),
    "overhead": Left(Why.NOT_NEEDED, "the environment counts it"),
    "readinessGates": Left(Why.NO_COUNTERPART, "conditions of the cluster's own"),
    "schedulingGates": Left(Why.NO_COUNTERPART, "conditions of the cluster's own"),
}
_ARCHITECTURE: Final = "kubernetes.io/arch"
_REGIONS: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
_PRODUCTS: Final = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "gpu.nvidia.com/class")
_INSTANCES: Final = ("node.kubernetes.io/instance-type",)


def take_pod(sheet: Sheet, base: Path) -> None:
    """Account for everything of a pod but its containers and volumes."""
    _selector(sheet, (*base, "nodeSelector"))
    account = sheet.text(*base, "serviceAccountName") or sheet.text(*base, "serviceAccount")
    for field in ("serviceAccountName", "serviceAccount"):
        if sheet.has(*base, field):
            _identity(sheet, (*base, field), account)
    if sheet.has(*base, "priorityClassName"):
        _priority(sheet, (*base, "priorityClassName"))
    sheet.leave_known(base, POD)


def _identity(sheet: Sheet, source: Path, account: str) -> None:
    role = sheet.named(account)
    if role:
        sheet.put(source, ("spec", "identity"), role, f"{account} is the role {role}")
        return
    left = Left(
        Why.NAME, "an account of one cluster; an operation names a role", "give the role that each environment maps"
    )
    sheet.leave(source, left, found=account, answer=account)


def _priority(sheet: Sheet, source: Path) -> None:
    name = sheet.text(*source)
    known = sheet.named(name)
    if known:
        sheet.put(source, ("spec", "priority"), known, f"{name} is the queue's class {known}")
        return
    left = Left(Why.NAME, "a class of the cluster; an operation names one of its queue", "give the queue's class")
    sheet.leave(source, left, found=name, answer=name)


def _selector(sheet: Sheet, base: Path) -> None:
    for key in sheet.map(*base):
        path, value = (*base, key), sheet.text(*base, key)
        if key == _ARCHITECTURE:
            sheet.put(path, ("spec", "constraints", "architectures"), [value])
        elif key in _REGIONS:
            sheet.leave(path, REGION)
        elif key in _PRODUCTS or key in _INSTANCES:
            take_product(sheet, path, value)
        else:
            sheet.leave(path, PLACEMENT)


# -- volumes -----------------------------------------------------------------------------------------------------------


def take_volumes(sheet: Sheet, volumes: Path, mounts: Path) -> None:
    """Map what a container mounts of a pod's volumes; volumes that it does not mount are told as such."""
    named = {
        sheet.text(*volumes, index, "name"): (*volumes, index)
        for index in range(len(sheet.list(*volumes)))
        if sheet.text(*volumes, index, "name")
    }
    for index, mount in enumerate(sheet.list(*mounts)):
        path: Path = (*mounts, index)
        volume = named.get(sheet.text(*path, "name"))
        if volume is None or not isinstance(mount, Mapping):
            sheet.leave(path, Left(Why.DECISION, "mounts a volume that is not declared", "name its connection"))
            continue
        _mount(sheet, volume, path, mount)
    sheet.leave_rest(volumes, Left(Why.NOT_NEEDED, "the work mounts nothing of it"))


def _mount(sheet: Sheet, volume: Path, path: Path, mount: Mapping[str, Any]) -> None:
    found = sheet.map(*volume)
    where = sheet.text(*path, "mountPath")
    claim = sheet.text(*volume, "persistentVolumeClaim", "claimName")
    if "emptyDir" in found:
        reason = "scratch space, which every workload has; spec.resources.requests.ephemeral-storage says how much"
        for part in (path, volume):
            sheet.leave(part, Left(Why.NOT_NEEDED, reason), found=f"emptyDir at {where}")
    elif claim:
        read_only = bool(mount.get("readOnly") or sheet.at(*volume, "persistentVolumeClaim", "readOnly"))
        before = len(sheet.mapped), len(sheet.unmapped)
        take_mount(
            sheet, path, claim, where, what="a volume claim of the cluster",
            path=sheet.text(*path, "subPath"), read_only=read_only,
        )  # fmt: skip
        _same(sheet, volume, before)
    elif "secret" in found or "projected" in found:
        for part in (path, volume):
            sheet.leave(part, SECRET, found=f"at {where}")
    else:
        kind = next((key for key in found if key != "name"), "volume")
        left = Left(
            Why.NAME,
            f"{kind}: an object or a path of the cluster",
            "put it into the image, or name a connection for it",
        )
        for part in (path, volume):
            sheet.leave(part, left, found=f"{kind} at {where}")


def _same(sheet: Sheet, volume: Path, before: tuple[int, int]) -> None:
    """Account for a volume as for its mount."""
    if len(sheet.mapped) > before[0]:
        sheet.note(volume, sheet.mapped[before[0]].target, "the volume of that mount")
    else:
        last = sheet.unmapped[before[1]]
        sheet.leave(volume, last.left, found=last.found, answer=last.answer)
