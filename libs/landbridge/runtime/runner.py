"""Running an async main: uvloop where there is one, settings refused in plain words, exit codes for supervisors."""

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from landbridge.runtime import failpoints, logs
from landbridge.runtime.settings import S, SettingsError, load

EXIT_FAILED = 1
EXIT_SETTINGS = 2
# Allocation is mostly short-lived messages: look for cycles rarely.
GC_THRESHOLD = (50_000, 20, 50)


def run(main: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run `main` on a fresh event loop and return its exit code."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    try:
        import uvloop
    except ImportError:  # Windows: the plain loop will do
        pass
    else:
        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main())


def load_or_exit(kind: type[S], *, needs: tuple[str, ...] = ()) -> S:
    """Read settings; print every problem and exit with code 2 if there is one."""
    try:
        settings = load(kind, needs=needs)
        failpoints.enable(settings.failpoints)
    except (SettingsError, ValueError) as error:
        sys.stderr.write(f"The settings cannot be used:\n  {str(error).replace(chr(10), chr(10) + '  ')}\n")
        raise SystemExit(EXIT_SETTINGS) from None
    return settings


def run_service(make: Callable[[S], Any], kind: type[S], name: str, *, needs: tuple[str, ...] = ()) -> int:
    """Read settings, set up logs, run the service that `make` returns until it is told to stop."""
    settings = load_or_exit(kind, needs=needs)
    logs.configure(name, level=settings.log_level, form=settings.log_format, instance=settings.instance)
    gc.set_threshold(*GC_THRESHOLD)

    async def main() -> int:
        try:
            service: Awaitable[int] = make(settings).run()
            return await service
        except Exception:  # noqa: BLE001 - logged with its stack, then the supervisor starts anew
            logs.get(__name__).exception("the service ended because a part of it failed")
            return EXIT_FAILED

    return run(main)


def settle_memory() -> None:
    """Take what start-up built out of the garbage collector's sight."""
    gc.collect()
    gc.freeze()
