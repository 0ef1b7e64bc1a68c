"""A real cluster as a site: a namespace of its own, an image that its node has, rights, bindings, a kubeconfig.

Everything is in a namespace that was made for it; of what belongs to no namespace, only what was made here is removed.
"""

import contextlib
import os
import socket
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from contract.executors.harness import write_bindings
from contract.executors.real_cluster import RealKubernetesHarness
from landbridge_dispatch.executors.kubernetes.api import Api, Object
from landbridge_embedded.ports import free_port
from support.kubernetes.access_point import image, real_access
from support.object_store import ObjectStore
from support.wait import wait_until

OTHER = "LANDBRIDGE_TEST_KUBECONFIG_B"
"""Names the file of another cluster; without it, that is another namespace of the same one."""
STARTS_S = 120.0
VOLUMES = ("models", "checkpoints")
PLACES = {name: name for name in VOLUMES} | {"broken": "file/below"}
"""Volumes by their place; what lies below a file no runtime can mount."""
OTHER_REGISTRIES = {"misnamed": "registry.site/TEAM", "sandboxes": "registry.k8s.io"}
"""One whose name no runtime can read, and the one whose image of nothing but a program is on most nodes."""


@dataclass
class RealSite:
    """A site whose bindings stand in `home`. `admin`: may do anything in the cluster.

    `reference`: the image as pods name it. `device`: an extended resource that no node has, and that class `device` is.
    """

    home: Path
    admin: Api
    namespace: str
    node: Object
    image: dict[str, str]
    reference: str
    device: str
    run: str
    """A name that nobody else has, for what belongs to no namespace."""

    def path(self, plural: str, name: str = "", *, group: str = "") -> str:
        base = f"/apis/{group}/v1" if group else "/api/v1"
        return f"{base}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    async def has_python(self) -> bool:
        """Whether the image has more than a shell."""
        return bool(await self.on_node("command -v python3 >/dev/termination-log || true"))

    async def hold_keys(self, store: ObjectStore) -> None:
        """Put the keys of a store where the bindings look for them."""
        data = dict(zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), store.keys, strict=True))
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "store-keys"}, "stringData": data}
        await self.admin.create(self.path("secrets"), secret)

    async def on_node(self, script: str, *, sees_all: bool = False) -> str:
        """Run a script as root with the node's /tmp below /h; return what it wrote to its termination log.

        `sees_all`: among all processes of the node.
        """
        api, path = self.admin, self.path("pods")
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"on-node-{uuid.uuid4().hex[:8]}"},
            "spec": {
                "restartPolicy": "Never",
                "hostPID": sees_all,
                "nodeSelector": selector_of(self.node),
                "volumes": [{"name": "h", "hostPath": {"path": "/tmp"}}],
                "containers": [
                    {
                        "name": "c",
                        "image": self.reference,
                        "command": ["sh", "-c", script],
                        "securityContext": {"runAsUser": 0},
                        "volumeMounts": [{"name": "h", "mountPath": "/h"}],
                    }
                ],
            },
        }
        made = await api.create(path, pod)
        name = made["metadata"]["name"]

        async def done() -> Object | None:
            found = await api.get(f"{path}/{name}")
            return found if found is not None and found["status"].get("phase") == "Succeeded" else None

        ended: Object = await wait_until(done, f"{script} has run on the node", timeout_s=STARTS_S, every_s=0.5)
        await api.delete(f"{path}/{name}", uid=made["metadata"]["uid"], grace_s=0)
        return str(ended["status"]["containerStatuses"][0]["state"]["terminated"].get("message") or "")


@contextlib.asynccontextmanager
async def real_site(home: Path, kubeconfig: str = "", *, store_port: int = 0) -> AsyncIterator[RealSite]:
    """The cluster of KUBECONFIG or of another file, with the image of LANDBRIDGE_TEST_IMAGE.

    Who reads the bindings has the rights of the list of permissions, and no others. `store_port`: of an object store
    here, whose keys the site holds once it is told to.
    """
    harness = RealKubernetesHarness(home)
    async with real_access(kubeconfig) as access, contextlib.AsyncExitStack() as stack:
        admin = Api(access.kubeconfig)
        await admin.open()
        stack.push_async_callback(admin.close)
        nodes, _ = await admin.list("/api/v1/nodes")
        node = next(node for node in nodes if _is_ready(node))
        registry, used = _image(node)
        run = f"landbridge-test-{uuid.uuid4().hex[:8]}"
        reference, device = f"{registry}/{used['name']}@{used['digest']}", f"landbridge.io/{run}"
        _write(home, access.namespace, registry, node, device, reference, store_port)
        token = await stack.enter_async_context(harness.account(admin, access.namespace, run, bound=False))
        harness.write_real_kubeconfig(access, token)
        yield RealSite(home, admin, access.namespace, node, used, reference, device, run)


def _is_ready(node: Object) -> bool:
    conditions = {item["type"]: item["status"] for item in node["status"].get("conditions") or ()}
    return conditions.get("Ready") == "True" and "landbridge.io/test-node" not in node["metadata"]["labels"]


def _image(node: Object) -> tuple[str, dict[str, str]]:
    """Return registry and the rest of the image, whose digest the node knows if it was named by a tag."""
    wanted = image()
    if "@" not in wanted:
        repository = wanted.rpartition(":")[0]
        known = [name for each in node["status"].get("images") or () for name in each.get("names") or ()]
        wanted = next(name for name in known if name.startswith(f"{repository}@"))
    place, _, digest = wanted.partition("@")
    registry, _, name = place.rpartition("/")
    return registry, {"registry": "tools", "name": name, "digest": digest}


def _address(node: Object) -> str:
    """Return where pods reach this machine: by the address that faces their node, unless it is said."""
    if said := os.environ.get("LANDBRIDGE_TEST_KEEPER_HOST"):
        return said
    address = next(item["address"] for item in node["status"]["addresses"] if item["type"] == "InternalIP")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))
        return str(probe.getsockname()[0])


def _write(
    home: Path, namespace: str, registry: str, node: Object, device: str, reference: str, store_port: int
) -> None:
    port = free_port()
    keeper = {"url": f"http://{_address(node)}:{port}", "host": "0.0.0.0", "port": port}
    s3 = {"endpoint": f"http://{_address(node)}:{store_port or 9}", "bucket": "shared"}
    write_bindings(
        home,
        {"name": "kubernetes", "startWait": "30s"},
        kubernetes={
            "namespace": namespace,
            "kubeconfig": "kubeconfig.yaml",
            "keeper": keeper,
            "startWithin": "60s",
            "classes": {"device": {"resource": device}, "without-runtime": {"runtimeClass": device.rpartition("/")[2]}},
            "nodeSelector": selector_of(node),
            "probes": {"image": reference},
            "carrier": {"image": reference, "within": "60s"},
        },
        connections={
            "tools": {"options": {"registry": registry}},
            **{name: {"options": {"registry": place}} for name, place in OTHER_REGISTRIES.items()},
            "secret": {"location": "s3://x", "options": {"secretEnv": {"KEY": {"secret": "none", "key": "none"}}}},
            "gone": {"options": {"claim": "none"}},
            **{
                name: {"access": "read-write", "options": {"s3": {**s3, "prefix": "team", "secret": secret}}}
                for name, secret in (("store", "store-keys"), ("keyless", "none"))
            },
            "events": {"options": {"configMap": "none"}},
            **{name: {"access": "read-write", "options": {"claim": f"{name}-data"}} for name in PLACES},
        },
    )


def selector_of(node: Object) -> dict[str, str]:
    """Keep pods on a node; among the others may be some that run nothing."""
    label = "kubernetes.io/hostname"
    return {label: node["metadata"]["labels"][label]} if label in node["metadata"]["labels"] else {}
