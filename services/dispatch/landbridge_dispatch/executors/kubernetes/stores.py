"""What a workload is told of object stores that it reads, and which work can write to them. Pure.

Keys are named, never read: the kubelet takes them out of the Secret. A workload gets those of stores that it reads
through a client of its own; those of stores for its outputs and checkpoints only the carrier has.
"""

from collections.abc import Mapping
from typing import Final

from landbridge_dispatch.executors.kubernetes.settings import S3, KubernetesSettings
from landbridge_dispatch.executors.local.build import variable
from landbridge_dispatch.executors.protocol import RefusalCode, RefusedError
from landbridge_dispatch.specification import Spec

_STANDARD: Final = {
    "ID": "AWS_ACCESS_KEY_ID",
    "SECRET": "AWS_SECRET_ACCESS_KEY",
    "TOKEN": "AWS_SESSION_TOKEN",
}
"""What S3 clients look for."""

SecretRefs = dict[str, tuple[str, str]]
"""Secret and key by variable."""


def check_carried(site: KubernetesSettings, spec: Spec, connections: list[str]) -> None:
    """Raise RefusedError where outputs and checkpoints of such work cannot be stored in an object store here."""
    named = ", ".join(connections)
    if not site.carrier.image:
        raise RefusedError(
            RefusalCode.CONNECTION_UNAVAILABLE,
            f"connection {named} is an object store, and nothing here writes to it: set kubernetes.carrier.image in "
            "the site's bindings",
        )
    if spec.type != "job":
        raise RefusedError(
            RefusalCode.WORKLOAD,
            f"connection {named} is an object store, where only work of type job can write: members of a gang need a "
            "volume of all of them",
        )


def variables(read: Mapping[str, S3]) -> tuple[dict[str, str], SecretRefs]:
    """Return plain variables and Secrets' keys of the stores that a workload reads by itself.

    Each store has variables of its own; a single one also those that every S3 client looks for.
    """
    env: dict[str, str] = {}
    secret_env: SecretRefs = {}
    for name, store in sorted(read.items()):
        own = f"S3_{variable(name)}"
        env |= {f"{own}_ENDPOINT": store.endpoint, f"{own}_BUCKET": store.bucket, f"{own}_REGION": store.region}
        env[f"{own}_PREFIX"] = store.prefix
        secret_env |= {f"{own}_{_STANDARD[kind][4:]}": (store.secret, key) for kind, key in store.keys().items()}
    if len(read) == 1:
        [store] = read.values()
        env |= {
            "AWS_ENDPOINT_URL": store.endpoint,
            "AWS_ENDPOINT_URL_S3": store.endpoint,
            "AWS_REGION": store.region,
            "AWS_DEFAULT_REGION": store.region,
        }
        secret_env |= {_STANDARD[kind]: (store.secret, key) for kind, key in store.keys().items()}
    return env, secret_env
