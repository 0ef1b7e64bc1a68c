"""Runs the supervisor with stand-ins for all services: `python -m support.stand_in_up DIR`."""

import sys

from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.layout import DataDirectory
from landbridge_embedded.services import SERVICES, ServiceSpec
from landbridge_embedded.supervisor import UpOptions
from landbridge_embedded.up import run_here

MODULE = "support.stand_in"


def main() -> int:
    options = UpOptions(
        DataDirectory.locate(sys.argv[1]),
        empty=True,
        services=tuple(ServiceSpec(spec.name, MODULE) for spec in SERVICES),
        dispatcher_module=MODULE,
        keys_module="support.stand_in_keys",
        prepare_module="support.stand_in_prepare",
        preload=(MODULE,),
        connect_s=0,
    )
    try:
        run_here(options, lambda text: print(text, flush=True), lambda _state, link: print(f"READY {link}", flush=True))
    except EmbeddedError as error:
        print(f"ERROR {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
