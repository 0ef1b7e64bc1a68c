"""Processes of workloads, launchers and guardians, as the machine shows them."""

import json
import os
import signal
import sys
from typing import Any

from contract.executors.harness import (
    Harness,
)
from contract.executors.probes import slot_directory, work_directory
from landbridge_dispatch.executors.local import procfs, slots
from landbridge_dispatch.executors.local.client import LauncherClient
from support.wait import wait_until

DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.environ.clear()
        open('daemon', 'w').write(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
os.wait()
while not os.path.exists('daemon') or not open('daemon').read():
    time.sleep(0.01)
open('ready', 'w').close()
"""


def python(program: str, *args: str) -> list[str]:
    return [sys.executable, "-S", "-c", program, *args]


async def daemon_of(process: Harness, key: Any) -> int:
    work = work_directory(process, key)
    await wait_until((work / "ready").exists, "the daemon runs")
    return int((work / "daemon").read_text())


def is_gone(pid: int) -> bool:
    return procfs.start_ticks(pid) is None


async def launcher_pid(process: Harness) -> int:
    client = LauncherClient(process.home)
    answer = await client.ask({"do": "ping"})
    await client.close()
    return int(answer["pid"])


def guardian_pid(process: Harness, key: Any) -> int:
    guardian = slots.guardian_of(slot_directory(process, key))
    assert guardian is not None
    return guardian.pid


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def audit(process: Harness) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (process.home / "audit.jsonl").read_text().splitlines()]
