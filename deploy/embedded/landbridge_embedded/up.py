"""`landbridge up` and its background form.

In the background form a second process runs the supervisor and reports over a pipe, a line of JSON each, until it is
ready or has failed; the first process shows that and returns.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.layout import AlreadyRunningError, DataDirectory
from landbridge_embedded.logtail import log_tail
from landbridge_embedded.process import open_log
from landbridge_embedded.servers import External
from landbridge_embedded.supervisor import Supervisor, UpOptions

Note = Callable[[str], None]
Ready = Callable[[dict[str, Any], str], None]  # state, sign-in link


def options_for(data: DataDirectory, *, empty: bool, ports: Mapping[str, int]) -> UpOptions:
    """Options of `up` with the servers that settings name.

    LANDBRIDGE_RESTART_CALM_SECONDS: a process that lived so long is started again at once, as if it had never ended.
    """
    calm_s = float(os.environ.get("LANDBRIDGE_RESTART_CALM_SECONDS") or UpOptions.calm_s)
    return UpOptions(data, empty=empty, fixed_ports=dict(ports), external=External.from_environ(), calm_s=calm_s)


def run_here(options: UpOptions, note: Note, ready: Ready) -> None:
    """Run in this process until Ctrl-C, SIGTERM, SIGHUP or `landbridge down`. EmbeddedError when it cannot start."""
    asyncio.run(_run(options, note, ready))


async def _run(options: UpOptions, note: Note, ready: Ready) -> None:
    supervisor = Supervisor(options, note)
    loop = asyncio.get_running_loop()

    def on_signal(name: str) -> None:
        note(f"{name}: stopping")
        supervisor.request_stop()

    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(signum, on_signal, signum.name)
    await supervisor.run(lambda state: ready(state, supervisor.sign_in_url()))


def run_detached(options: UpOptions, note: Note, ready: Ready) -> None:
    """Start in the background and return when ready. EmbeddedError with the reason when it cannot start."""
    data = options.data
    data.create()
    if data.is_held():
        raise AlreadyRunningError(data)
    read_end, write_end = os.pipe()
    log = data.log_of("supervisor")
    command = [sys.executable, "-m", "landbridge_embedded.up", "--data", str(data.root), "--report", str(write_end)]
    command += ["--empty"] if options.empty else []
    command += [word for name, port in options.fixed_ports.items() for word in ("--port", f"{name}={port}")]
    with open_log(log) as output:
        process = subprocess.Popen(  # noqa: S603 - the command is ours
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[write_end],
            start_new_session=True,
        )
    os.close(write_end)
    began: dict[str, Any] | None = None
    try:
        with open(read_end, encoding="utf-8") as reports:  # noqa: PTH123 - a descriptor
            for line in reports:
                message = json.loads(line)
                if "note" in message:
                    with contextlib.suppress(BrokenPipeError):  # nobody reads any more (`| head`); starting goes on
                        note(message["note"])
                elif "error" in message:
                    raise EmbeddedError(message["error"])
                else:
                    began = message
    except BaseException:
        # Also on Ctrl-C while waiting: what was started ends in order.
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        process.wait(timeout=60)
        raise
    if began is not None:
        ready(began["state"], began["signIn"])
        return
    code = process.wait(timeout=60)
    raise EmbeddedError(f"the supervisor ended with code {code} while starting; {log} says:\n{log_tail(log)}")


def main() -> int:
    """Run as the background process of `run_detached`."""
    parser = argparse.ArgumentParser(prog="python -m landbridge_embedded.up")
    parser.add_argument("--data", required=True)
    parser.add_argument("--report", type=int, required=True)
    parser.add_argument("--empty", action="store_true")
    parser.add_argument("--port", action="append", default=[])
    arguments = parser.parse_args()
    ports = {name: int(port) for name, _, port in (item.partition("=") for item in arguments.port)}
    options = options_for(DataDirectory.locate(arguments.data), empty=arguments.empty, ports=ports)
    reports = _Reports(arguments.report)
    try:
        run_here(
            options,
            reports.note,
            lambda state, link: reports.send({"state": state, "signIn": link}, last=True),
        )
    except EmbeddedError as error:
        reports.send({"error": str(error)}, last=True)
        sys.stdout.write(f"{error}\n")
        return 1
    return 0


class _Reports:
    """The pipe to the waiting process; afterwards only the log is written."""

    def __init__(self, descriptor: int) -> None:
        self._out = os.fdopen(descriptor, "w", buffering=1)

    def note(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        self.send({"note": text})

    def send(self, message: dict[str, Any], *, last: bool = False) -> None:
        if self._out.closed:
            return
        try:
            self._out.write(json.dumps(message) + "\n")
            if last:
                self._out.close()
        except OSError:
            # The waiting process was killed; what runs goes on.
            with contextlib.suppress(OSError):
                self._out.close()


if __name__ == "__main__":
    raise SystemExit(main())
