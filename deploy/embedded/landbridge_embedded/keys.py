"""Keys and credentials of the broker: keys are made at the first start, credentials at every start.

`LANDBRIDGE_DATA=DIR python -m landbridge_embedded.keys` makes them for servers of yours, too: the services' credentials
in DIR/creds, and DIR/nats/accounts.conf, which every server includes. LANDBRIDGE_NATS_RESOLVER_DIR is where those
servers keep accounts, as they see it.
"""

import os
import sys
from pathlib import Path

from landbridge.bus import accounts
from landbridge_embedded.layout import DataDirectory
from landbridge_embedded.process import write_private


def main() -> int:
    """Make what is missing in LANDBRIDGE_DATA; exit code 1 with the reason.

    A process of its own, so that the supervisor never holds a key.
    """
    try:
        make_accounts(DataDirectory.locate(os.environ["LANDBRIDGE_DATA"]))
    except (ValueError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def make_accounts(data: DataDirectory) -> None:
    """Write one credentials file per service and the broker's configuration.

    Credentials are made anew, so that a service gets the permissions of this release. Raises ValueError for a damaged
    key, which a person has to restore.
    """
    keys = accounts.load_or_create_keys(data.keys)
    for service in accounts.SERVICES:
        write_private(data.creds / f"{service}.creds", accounts.service_user(keys, service).credentials)
    resolver = os.environ.get("LANDBRIDGE_NATS_RESOLVER_DIR", "")
    kept = Path(resolver) if resolver else data.root / "nats" / "accounts"
    write_private(data.broker_accounts, accounts.server_config(keys, kept))


if __name__ == "__main__":
    raise SystemExit(main())
