"""The site's own policy for a cluster: the section `kubernetes` of the bindings.

    kubernetes:
      site: cluster-a                      # labels what belongs to this dispatcher
      namespace: lb-{project}              # or one for all projects
      keeper: {url: "http://10.96.0.40:8480"}
      wrapper: {image: registry.site/tools/busybox@sha256:…, shell: /bin/busybox}    # absent: images need sh
      classes:
        gpu-80gb: {resource: nvidia.com/gpu, nodeSelector: {gpu: a100}, tolerations: [{key: gpu, operator: Exists}]}
      probes: {image: registry.site/tools/busybox@sha256:…, every: 10m}    # absent: the wrapper's image
      localQueue: landbridge               # Kueue; absent: none

A connection says in its `options` what it is: `claim` (a PersistentVolumeClaim), `csi`, `configMap` or `secret`, which
are mounted, or `registry` (with `pullSecret`); `secretEnv` names variables from keys of Secrets. An identity names a
`serviceAccount`, and an `audience` if workloads are to have a token for somebody.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from landbridge.domain import units

AUDIENCE = "landbridge-keeper"
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DIGEST = re.compile(r".+@sha256:[0-9a-f]{64}")


class Keeper(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Where pods ask for the lease. `url`: as pods reach it; `host` and `port`: where the dispatcher listens."""

    url: str = "http://landbridge-dispatcher:8480"
    host: str = "0.0.0.0"  # noqa: S104 - pods come from other machines; every request needs a pod's own token
    port: int = 8480
    audience: str = AUDIENCE
    token_lifetime: str = "1h"  # noqa: S105 - a duration

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(f"url: expected http:// or https://, found {self.url!r}")
        if self.token_seconds < 600:
            raise ValueError(f"tokenLifetime: expected at least 10m, found {self.token_lifetime}")

    @property
    def token_seconds(self) -> int:
        """How long a projected token lives; Kubernetes allows no less than ten minutes."""
        return units.parse_duration(self.token_lifetime) // 1000


class Wrapper(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Where the wrapper's shell comes from: a static one out of `image`, so that any image can be wrapped."""

    image: str = ""
    shell: str = "/bin/busybox"

    def __post_init__(self) -> None:
        if self.image and not _DIGEST.fullmatch(self.image):
            raise ValueError(f"image: expected a reference with @sha256:…, found {self.image!r}")


class Probes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What probes run. `image`: one with a shell, by digest; empty: that of the wrapper.

    `every` is how often a node is tried again that has not changed; `images` are what is pulled to prove a registry,
    by the name of its connection.
    """

    image: str = ""
    shell: str = "/bin/sh"
    every: str = "10m"
    images: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        for image in filter(None, (self.image, *self.images.values())):
            if not _DIGEST.fullmatch(image):
                raise ValueError(f"image: expected a reference with @sha256:…, found {image!r}")
        if self.every_seconds < 60:
            raise ValueError(f"every: expected at least 1m, found {self.every}")

    @property
    def every_seconds(self) -> int:
        """How long a proof about a node counts."""
        return units.parse_duration(self.every) // 1000


class Toleration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """A taint that is tolerated, as in Kubernetes."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class ReachedClass(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How a capability class is reached: an extended resource, or a device class (DRA), or a template made before."""

    resource: str = ""
    device_class: str = ""
    claim_template: str = ""
    node_selector: Mapping[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    runtime_class: str = ""

    def __post_init__(self) -> None:
        if sum(map(bool, (self.resource, self.device_class, self.claim_template))) > 1:
            raise ValueError("expected one of resource, deviceClass and claimTemplate")


class KubernetesSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A cluster as the site lets it be used."""

    site: str = "site"
    namespace: str = "landbridge"
    kubeconfig: str = ""
    """A file of the site; empty: the dispatcher's own service account in the cluster."""
    keeper: Keeper = Keeper()
    wrapper: Wrapper = Wrapper()
    probes: Probes = Probes()
    classes: Mapping[str, ReachedClass] = {}
    local_queue: str = ""
    node_selector: Mapping[str, str] = {}
    """Of all work, such as the nodes of one jurisdiction."""
    tolerations: tuple[Toleration, ...] = ()
    run_as_user: int = 65532
    run_as_group: int = 65532
    work_size: str = "10Gi"
    """How much a workload may write into its own directory."""
    start_within: str = "10m"
    """How long a pod may be unable to start (image, mounts) before the placement is given up."""

    def __post_init__(self) -> None:
        if not _NAMESPACE.fullmatch(self.namespace.replace("{project}", "p")):
            raise ValueError(f"namespace: expected a name, perhaps with {{project}}, found {self.namespace!r}")
        if not _NAMESPACE.fullmatch(self.site) or len(self.site) > 63:
            raise ValueError(f"site: expected lower-case letters, digits and hyphens, found {self.site!r}")
        if self.run_as_user < 1 or self.run_as_group < 1:
            raise ValueError("runAsUser, runAsGroup: expected another than root")
        units.parse_duration(self.start_within)
        units.parse_bytes(self.work_size)

    def namespace_of(self, project: str) -> str:
        """Return the namespace of a project's work."""
        return self.namespace.replace("{project}", project)


class SecretKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key of a Secret in the work's namespace."""

    secret: str
    key: str


class Csi(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An ephemeral volume of a CSI driver."""

    driver: str
    attributes: Mapping[str, str] = {}
    node_publish_secret: str = ""
    fs_type: str = ""


class ConnectionOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What a connection is in the cluster."""

    claim: str = ""
    sub_path: str = ""
    csi: Csi | None = None
    config_map: str = ""
    secret: str = ""
    registry: str = ""
    pull_secret: str = ""
    secret_env: Mapping[str, SecretKey] = {}

    def __post_init__(self) -> None:
        kinds = (self.claim, self.csi, self.config_map, self.secret, self.registry)
        if sum(map(bool, kinds)) > 1:
            raise ValueError("expected at most one of claim, csi, configMap, secret and registry")

    @property
    def mounted(self) -> bool:
        """Whether a pod sees files of it."""
        return bool(self.claim or self.csi or self.config_map or self.secret)


def connection_options(options: Mapping[str, Any]) -> ConnectionOptions:
    """Read the options of a connection. Raises msgspec.ValidationError."""
    return msgspec.convert(dict(options), ConnectionOptions)
