"""How PostgreSQL is started by root, which it refuses to run as.

First a user namespace in which root's own id looks like an ordinary one: it needs no other account, and works below a
0700 home. Else another user id, which must be able to reach the binaries and the data.
"""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from landbridge_embedded.errors import EmbeddedError

_NAMESPACE_UID = 1000
_FALLBACK_USERS = ("postgres", "nobody")
_TRY_S = 10.0


@dataclass(frozen=True, slots=True)
class RunAs:
    """Words before the command, and the owner that its files need (None: leave them as they are)."""

    prefix: tuple[str, ...] = ()
    owner: tuple[int, int] | None = None


def choose_user(binaries: Path, root: Path, data: Path) -> RunAs:
    """How to run the server for `data` below our own directory `root`.

    Existing data decides, because its owner must stay the same.

    Raises EmbeddedError naming all that was tried.
    """
    if os.geteuid() != 0:
        return RunAs()
    owner = data.stat().st_uid if data.exists() else 0
    tried: list[str] = []
    if owner == 0:
        found = _namespace(binaries, tried)
        if found is not None:
            return found
    accounts = [pwd.getpwuid(owner)] if owner else _fallback_accounts()
    for account in accounts:
        found = _other_user(binaries, root.parent, account, tried)
        if found is not None:
            return found
    steps = "".join(f"\n  - {item}" for item in tried)
    raise EmbeddedError(
        f"PostgreSQL refuses to run as root and no other way worked:{steps}\n"
        "Run Landbridge as an ordinary user, or set LANDBRIDGE_POSTGRES_DSN to a server of yours."
    )


def _namespace(binaries: Path, tried: list[str]) -> RunAs | None:
    unshare, setpriv = shutil.which("unshare"), shutil.which("setpriv")
    if not unshare or not setpriv:
        tried.append("user namespace: `unshare` or `setpriv` (util-linux) is not installed")
        return None
    uid = str(_NAMESPACE_UID)
    # setpriv repeats the wish to die with the parent: the kernel forgets it when credentials change.
    prefix = (unshare, "--user", f"--map-user={uid}", f"--map-group={uid}", "--", setpriv, "--pdeathsig=SIGINT", "--")
    problem = _trial((*prefix, str(binaries / "postgres"), "--version"))
    if problem:
        tried.append(f"user namespace (unshare --user): {problem}")
        return None
    return RunAs(prefix)


def _fallback_accounts() -> list[pwd.struct_passwd]:
    found = []
    for name in _FALLBACK_USERS:
        try:
            found.append(pwd.getpwnam(name))
        except KeyError:
            continue
    return found


def _other_user(binaries: Path, parent: Path, account: pwd.struct_passwd, tried: list[str]) -> RunAs | None:
    setpriv = shutil.which("setpriv")
    if not setpriv:
        tried.append(f"user {account.pw_name}: `setpriv` (util-linux) is not installed")
        return None
    uid, gid = account.pw_uid, account.pw_gid
    prefix = (setpriv, f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--pdeathsig=SIGINT", "--")
    problem = _trial((*prefix, str(binaries / "postgres"), "--version"))
    problem = problem or _trial((*prefix, "test", "-x", str(parent)), f"cannot enter {parent}")
    if problem:
        tried.append(f"user {account.pw_name} (setpriv --reuid={uid}): {problem}")
        return None
    return RunAs(prefix, (uid, gid))


def _trial(command: tuple[str, ...], meaning: str = "") -> str:
    """Run a harmless command; empty when it worked, else why not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TRY_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return meaning or str(error)
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines()
    return meaning or (lines[-1] if lines else f"exit code {done.returncode}")
