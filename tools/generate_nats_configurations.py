"""Write the configurations in deploy/nats from the code that configures a running instance's own NATS.

`--check` writes nothing and fails when a file differs.
"""

import sys
from pathlib import Path

from landbridge.bus.configuration import CentreSettings, ClusterSettings, LeafSettings, centre_config, leaf_config

FOLDER = Path(__file__).parents[1] / "deploy" / "nats"
ENVIRONMENT = "edge-1"
_ACCOUNTS = 'include "accounts.conf"'
_CENTRE = (
    "# Written by tools/generate_nats_configurations.py. Variables are taken from the environment: see README.md.\n"
)


def files() -> dict[str, str]:
    """Return every file by name."""
    secret = "$NATS_ROUTE_PASSWORD"  # noqa: S105 - the name of a variable
    routes = ClusterSettings("$NATS_CLUSTER_LISTEN", "$NATS_ROUTES", user="$NATS_ROUTE_USER", password=secret)
    return {
        "single.conf": _CENTRE + centre_config(_server()),
        "hub.conf": _CENTRE + centre_config(_server(leaf_listen="$NATS_LEAF_LISTEN")),
        "cluster.conf": _CENTRE + centre_config(_server(leaf_listen="$NATS_LEAF_LISTEN", cluster=routes)),
        "leaf.conf": _CENTRE
        + leaf_config(
            LeafSettings(
                ENVIRONMENT,
                "$NATS_HUB_URL",
                "$DISPATCHER_KEY",
                listen="$NATS_LISTEN",
                monitor="$NATS_MONITOR",
                store="$NATS_STORE",
            )
        ),
    }


def _server(*, leaf_listen: str = "", cluster: ClusterSettings | None = None) -> CentreSettings:
    return CentreSettings(
        _ACCOUNTS,
        name="$NATS_NAME",
        listen="$NATS_LISTEN",
        monitor="$NATS_MONITOR",
        store="$NATS_STORE",
        leaf_listen=leaf_listen,
        cluster=cluster,
    )


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = []
    for name, text in files().items():
        path = FOLDER / name
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if not check:
                FOLDER.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    print(f"{'stale' if check else 'written'}: {', '.join(stale) or 'nothing'}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
