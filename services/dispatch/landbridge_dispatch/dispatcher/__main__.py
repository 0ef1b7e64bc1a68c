"""`landbridge-dispatcher`: run one environment's dispatcher until it is told to stop."""

import sys

from landbridge.runtime.runner import EXIT_SETTINGS, run_service
from landbridge_dispatch.dispatcher.service import Dispatcher
from landbridge_dispatch.dispatcher.settings import DispatcherSettings
from landbridge_dispatch.executors.bindings import BindingsError


def main() -> int:
    """Return the exit code: 2 for settings or bindings that cannot be used."""
    try:
        return run_service(Dispatcher, DispatcherSettings, "dispatcher", needs=("environment", "data_dir"))
    except BindingsError as error:
        sys.stderr.write(f"The bindings cannot be used:\n{error}\n")
        return EXIT_SETTINGS


if __name__ == "__main__":
    sys.exit(main())
