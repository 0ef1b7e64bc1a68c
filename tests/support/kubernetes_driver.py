"""What KubeRay has a head run beside its own program: on these tests' node, with the head's files and variables."""

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.kubernetes import FakeCluster
from support.kubernetes.operators import ENTRYPOINT, EXIT_CODE


@dataclass
class Drivers:
    """Runs what the operator's stand-in has submitted, once for each head."""

    cluster: FakeCluster
    _running: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)
    _done: set[str] = field(default_factory=set)

    async def follow(self, pod: dict[str, Any], home: Path, env: dict[str, str], paths: dict[str, str]) -> None:
        """Start it, and tell how it ended, in the pod's annotations."""
        meta = pod["metadata"]
        entrypoint = (meta.get("annotations") or {}).get(ENTRYPOINT)
        if entrypoint is None or meta["uid"] in self._done:
            return
        process = self._running.get(meta["uid"])
        if process is None:
            self._running[meta["uid"]] = await self._start(entrypoint, home, env, paths)
        elif process.returncode is not None:
            self._done.add(meta["uid"])
            output = home / "output"
            self.cluster.write_log(meta["name"], output.read_text(errors="replace"), namespace=meta["namespace"])
            stored = self.cluster.get("pods", meta["name"], namespace=meta["namespace"])
            if stored is not None:
                stored["metadata"]["annotations"] = {**meta["annotations"], EXIT_CODE: str(abs(process.returncode))}
                self.cluster.put("pods", stored, namespace=meta["namespace"])

    async def _start(
        self, entrypoint: str, home: Path, env: dict[str, str], paths: dict[str, str]
    ) -> asyncio.subprocess.Process:
        # The container's own output stands in a file until it has ended.
        text = entrypoint.replace("/proc/1/fd/1", str(home / "output"))
        for path in sorted(paths, key=len, reverse=True):
            text = text.replace(path, paths[path])
        return await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", text, env=env, cwd=home, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
        )

    async def end(self, uid: str) -> None:
        """Kill what still runs of a head that has ended: a container's processes end with it."""
        process = self._running.pop(uid, None)
        if process is None or process.returncode is not None:
            return
        for pid in descendants(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await process.wait()

    async def end_all(self) -> None:
        for uid in list(self._running):
            await self.end(uid)


def descendants(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for parent in found:
        with suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
    return found
