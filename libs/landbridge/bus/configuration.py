"""Configurations of nats-server: of the centre, alone or as a cluster, and of a site with its own NATS.

Texts that begin with `$` are variables of the NATS configuration and are written as they are, so that the same function
writes the files in `deploy/nats` and those of a running instance.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from landbridge.bus.jwt import Key, Role, new_key
from landbridge.bus.permissions import site_permissions

MAX_PAYLOAD_BYTES = 8 * 1024 * 1024
CENTRE_DOMAIN = "hub"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """How a server finds the others of its cluster. `routes`: their addresses for it, its own may be among them."""

    listen: str
    routes: Sequence[str] | str
    name: str = "landbridge"
    user: str = ""
    password: str = ""


@dataclass(frozen=True, slots=True)
class CentreSettings:
    """One server of the centre. `accounts`: who is who, as text of the configuration. `leaf_listen`: for sites.

    `leaf_cert` and `leaf_key`: files with which it shows sites who it is; empty: no TLS.
    """

    accounts: str
    name: str = "landbridge"
    listen: str = "127.0.0.1:4222"
    monitor: str = "127.0.0.1:8222"
    store: str = "jetstream"
    domain: str = CENTRE_DOMAIN
    sync: str = "always"
    max_payload_bytes: int = MAX_PAYLOAD_BYTES
    leaf_listen: str = ""
    leaf_cert: str = ""
    leaf_key: str = ""
    cluster: ClusterSettings | None = None


def centre_config(settings: CentreSettings) -> str:
    """Return the whole configuration of a server of the centre."""
    jetstream = f"store_dir: {_text(settings.store)}, domain: {settings.domain}, sync_interval: {settings.sync}"
    lines = [
        f"server_name: {_text(settings.name)}",
        f"listen: {_text(settings.listen)}",
        f"http: {_text(settings.monitor)}",
        f"max_payload: {settings.max_payload_bytes}",
        "max_pending: 268435456",
        "write_deadline: 10s",
        f"jetstream {{ {jetstream} }}",
    ]
    if settings.leaf_listen:
        files = f"cert_file: {_text(settings.leaf_cert)}, key_file: {_text(settings.leaf_key)}"
        tls = f", tls {{ {files} }}" if settings.leaf_cert else ""
        lines.append(f"leafnodes {{ listen: {_text(settings.leaf_listen)}, no_advertise: true{tls} }}")
    if settings.cluster is not None:
        lines.append(_cluster(settings.cluster))
    return "\n".join([*lines, settings.accounts, ""])


def _cluster(cluster: ClusterSettings) -> str:
    routes = cluster.routes if isinstance(cluster.routes, str) else json.dumps(list(cluster.routes))
    secret = f"user: {_text(cluster.user)}, password: {_text(cluster.password)}"
    authorization = f", authorization {{ {secret} }}" if cluster.user else ""
    parts = f"name: {_text(cluster.name)}, listen: {_text(cluster.listen)}, routes: {routes}"
    return f"cluster {{ {parts}, no_advertise: true{authorization} }}"


@dataclass(frozen=True, slots=True)
class LeafSettings:
    """Where a site's NATS listens, keeps its data and finds the centre. `user`: the dispatcher's public key.

    What may pass the link is settled at the centre, by the leaf's credentials; what may be said at the site, here.
    """

    environment: str
    hub_url: str
    user: str
    listen: str = "127.0.0.1:4222"
    monitor: str = "127.0.0.1:8222"
    store: str = "jetstream"
    creds: str = "leaf.creds"
    tls_ca: str = ""

    @property
    def domain(self) -> str:
        return site_domain(self.environment)


def site_domain(environment: str) -> str:
    """Return the JetStream domain of a site's own NATS."""
    return f"site-{environment}"


def new_user() -> Key:
    """Make the key by which a dispatcher shows its site's NATS who it is."""
    return new_key(Role.USER)


def leaf_config(settings: LeafSettings) -> str:
    """Return the whole configuration; it holds no secret, but names the file that does."""
    granted = site_permissions(settings.environment)
    tls = f", tls: {{ ca_file: {_text(settings.tls_ca)} }}" if settings.tls_ca else ""
    return f"""\
# The NATS of the site {settings.environment}: a leaf node of the centre's. Start: nats-server --config FILE
server_name: {_text(settings.domain)}
listen: {_text(settings.listen)}
http: {_text(settings.monitor)}
max_payload: {MAX_PAYLOAD_BYTES}
# A route that was lost in silence is noticed within half a minute.
ping_interval: "10s"
ping_max: 2

# Always synchronised: what the dispatcher was told is stored, is stored.
jetstream {{ store_dir: {_text(settings.store)}, domain: {_text(settings.domain)}, sync_interval: always }}

leafnodes {{
  reconnect: "1s"
  remotes: [
    {{ url: {_text(settings.hub_url)}, account: SITE, credentials: {_text(settings.creds)}{tls} }}
  ]
}}

accounts {{
  SITE {{
    jetstream: enabled
    users: [
      {{
        nkey: {_text(settings.user)}
        permissions {{
          publish: {{ allow: {_list(granted.publish)} }}
          subscribe: {{ allow: {_list(granted.subscribe)} }}
        }}
      }}
    ]
  }}
}}
"""


def _text(value: str | Path) -> str:
    text = str(value)
    return text if text.startswith("$") else json.dumps(text)


def _list(subjects: Sequence[str]) -> str:
    lines = "".join(f"            {json.dumps(subject)}\n" for subject in subjects)
    return f"[\n{lines}          ]"
