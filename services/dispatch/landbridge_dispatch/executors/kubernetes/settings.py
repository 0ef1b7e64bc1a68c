"""The site's own policy for a cluster: the section `kubernetes` of the bindings.

    kubernetes:
      site: cluster-a                      # labels what belongs to this dispatcher
      namespace: lb-{project}              # or one for all projects
      keeper: {url: "http://10.96.0.40:8480"}
      wrapper: {image: registry.site/tools/busybox@sha256:…, shell: /bin/busybox}    # absent: images need sh
      classes:
        gpu-80gb: {resource: nvidia.com/gpu, nodeSelector: {gpu: a100}, tolerations: [{key: gpu, operator: Exists}]}
      probes: {image: registry.site/tools/busybox@sha256:…, every: 10m}    # absent: the wrapper's image
      carrier: {image: registry.site/tools/python@sha256:…}    # stores outputs and checkpoints in S3; absent: it cannot
      localQueue: landbridge               # Kueue; absent: none
      route: {host: "{name}.{project}.apps.site", ingressClass: nginx, tlsSecret: apps}    # or gateway: {name: shared}
      operators: [jobset]                  # which ones the dispatcher may use; its rights are made from it

A connection says in its `options` what it is: `claim` (a PersistentVolumeClaim), `csi`, `configMap` or `secret`, which
are mounted, `s3` (an object store), or `registry` (with `pullSecret`); `secretEnv` names variables from Secrets. An
identity names a `serviceAccount`, and an `audience` if workloads are to have a token for somebody.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from landbridge.domain import units

AUDIENCE = "landbridge-keeper"
OPERATORS = frozenset({"jobset", "kubeflow-trainer", "kubeflow-training", "kuberay"})
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_HOST = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_DIGEST = re.compile(r".+@sha256:[0-9a-f]{64}")
_ENDPOINT = re.compile(
    r"https?://[A-Za-z0-9.\-]+(:\d{1,5})?(/[A-Za-z0-9._~/-]*)?|https?://\[[0-9a-fA-F:]+\](:\d{1,5})?/?"
)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_REGION = re.compile(r"[a-z0-9-]{1,40}")


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


class Carrier(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What stores outputs and checkpoints of a pod in object stores: an image with Python 3.11, by digest.

    `within`: how long work waits for it, to begin and at its end.
    """

    image: str = ""
    python: str = "python3"
    within: str = "10m"

    def __post_init__(self) -> None:
        if self.image and not _DIGEST.fullmatch(self.image):
            raise ValueError(f"image: expected a reference with @sha256:…, found {self.image!r}")
        units.parse_duration(self.within)


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


class Gateway(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The Gateway that HTTPRoutes of services are attached to. `https`: whether its listener ends TLS."""

    name: str
    namespace: str = ""
    section_name: str = ""
    https: bool = True


class Route(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How services are reached from outside: by an Ingress, or by an HTTPRoute of the Gateway API.

    `host` is a template with {name}, the route's, and {project}: no project can take another one's address.
    """

    host: str
    ingress_class: str = ""
    gateway: Gateway | None = None
    tls_secret: str = ""
    """Of the work's namespace, for an Ingress; a Gateway has its own."""
    annotations: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        if bool(self.ingress_class) is (self.gateway is not None):
            raise ValueError("expected either ingressClass or gateway")
        if self.gateway is not None and self.tls_secret:
            raise ValueError("tlsSecret: a Gateway's listener has its own certificate")
        told = self.host.replace("{name}", "n", 1).replace("{project}", "p", 1)
        if "{name}" not in self.host or "{project}" not in self.host or not _HOST.fullmatch(told):
            raise ValueError(f"host: expected a host name with {{name}} and {{project}}, found {self.host!r}")

    @property
    def kind(self) -> str:
        """The kind of object that is made."""
        return "Ingress" if self.gateway is None else "HTTPRoute"


class KubernetesSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A cluster as the site lets it be used."""

    site: str = "site"
    namespace: str = "landbridge"
    kubeconfig: str = ""
    """A file of the site; empty: the dispatcher's own service account in the cluster."""
    keeper: Keeper = Keeper()
    wrapper: Wrapper = Wrapper()
    probes: Probes = Probes()
    carrier: Carrier = Carrier()
    classes: Mapping[str, ReachedClass] = {}
    local_queue: str = ""
    route: Route | None = None
    """Absent: services are reached within the cluster only."""
    operators: tuple[str, ...] = ()
    """Which operators the dispatcher has rights for: jobset, kubeflow-trainer, kubeflow-training, kuberay."""
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
        if unknown := set(self.operators) - OPERATORS:
            raise ValueError(f"operators: expected {', '.join(sorted(OPERATORS))}, found {', '.join(sorted(unknown))}")
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


class S3(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A bucket of an S3-compatible store. `secret`: of the work's namespace; the rest names keys in it."""

    endpoint: str
    bucket: str
    secret: str
    prefix: str = ""
    region: str = "us-east-1"
    id_key: str = "AWS_ACCESS_KEY_ID"
    secret_key: str = "AWS_SECRET_ACCESS_KEY"  # noqa: S105 - the name of a key
    token_key: str = ""

    def __post_init__(self) -> None:
        if not _ENDPOINT.fullmatch(self.endpoint):
            raise ValueError("s3.endpoint: expected http:// or https:// with host and port, and no credentials in it")
        if not _BUCKET.fullmatch(self.bucket):
            raise ValueError(f"s3.bucket: expected lower-case letters, digits, dots and hyphens, found {self.bucket!r}")
        if not _REGION.fullmatch(self.region):
            raise ValueError(f"s3.region: expected lower-case letters, digits and hyphens, found {self.region!r}")
        if any(part in ("", ".", "..") for part in self.prefix.split("/")) and self.prefix:
            raise ValueError(f"s3.prefix: expected a path such as team/models, found {self.prefix!r}")

    @property
    def location(self) -> str:
        """What lineage records."""
        return f"s3://{self.bucket}" + (f"/{self.prefix}" if self.prefix else "")

    def keys(self) -> dict[str, str]:
        """Return the keys in the Secret, by what they are."""
        found = {"ID": self.id_key, "SECRET": self.secret_key, "TOKEN": self.token_key}
        return {name: key for name, key in found.items() if key}


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
    s3: S3 | None = None

    def __post_init__(self) -> None:
        kinds = (self.claim, self.csi, self.config_map, self.secret, self.registry, self.s3)
        if sum(map(bool, kinds)) > 1:
            raise ValueError("expected at most one of claim, csi, configMap, secret, s3 and registry")

    @property
    def mounted(self) -> bool:
        """Whether a pod sees files of it."""
        return bool(self.claim or self.csi or self.config_map or self.secret)


def connection_options(options: Mapping[str, Any]) -> ConnectionOptions:
    """Read the options of a connection. Raises msgspec.ValidationError."""
    return msgspec.convert(dict(options), ConnectionOptions)
