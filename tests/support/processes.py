"""Looking at processes through /proc."""

import os
from pathlib import Path

from landbridge_embedded.process import lives


def processes_of(root: Path) -> dict[int, str]:
    """Command lines of all running processes that mention a directory, by process id; not our own."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode()
            except OSError:
                continue
            if str(root) in command and lives(int(entry.name)):
                found[int(entry.name)] = command
    return found
