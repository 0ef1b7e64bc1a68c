"""Which Landbridge a command speaks to: one on this machine, or a remote one by its context."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from landbridge.cli.exits import CliError, Exit
from landbridge.cli.files import write_private

_DEFAULT = ".landbridge"


@dataclass(frozen=True, slots=True)
class Instance:
    """Address and token; `data` is set for an instance on this machine."""

    url: str
    token: str
    name: str
    data: Path | None = None


def data_directory(given: Path | None, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the data directory of this machine's instance: the option, LANDBRIDGE_DATA, or `.landbridge` here."""
    return Path(given or environ.get("LANDBRIDGE_DATA") or _DEFAULT).expanduser().resolve()


def find(data: Path | None, context: str, environ: Mapping[str, str] = os.environ) -> Instance:
    """Find the instance to speak to.

    In this order: --data, --context, LANDBRIDGE_URL with LANDBRIDGE_TOKEN, LANDBRIDGE_CONTEXT, LANDBRIDGE_DATA, an
    instance that runs in `.landbridge` here, the context in use. CliError (unreachable) says what was looked at.
    """
    if data is not None:
        return _local(data_directory(data, environ))
    if context:
        return _remote(context)
    if environ.get("LANDBRIDGE_URL"):
        return Instance(environ["LANDBRIDGE_URL"], environ.get("LANDBRIDGE_TOKEN", ""), "LANDBRIDGE_URL")
    if environ.get("LANDBRIDGE_CONTEXT"):
        return _remote(environ["LANDBRIDGE_CONTEXT"])
    here = data_directory(None, environ)
    if environ.get("LANDBRIDGE_DATA") or _runs(here):
        return _local(here)
    used = Contexts.load().used
    if used:
        return _remote(used)
    raise CliError(
        f"no Landbridge found: none runs on {here}, and no context is in use.\n"
        "Start one here with `landbridge up`, name one with --data DIR, or add a remote one with "
        "`landbridge context add NAME URL`.",
        Exit.UNREACHABLE,
    )


def _runs(directory: Path) -> bool:
    from landbridge_embedded.layout import DataDirectory

    return DataDirectory(directory).is_held()


def _local(directory: Path) -> Instance:
    try:
        state = json.loads((directory / "state.json").read_text())
        token = (directory / "tokens" / "admin").read_text().strip()
        url = str(state["urls"]["dashboard"])
    except FileNotFoundError as error:
        raise CliError(
            f"no Landbridge runs on {directory} ({Path(error.filename).name} is not there); start it with "
            f"`landbridge up{_data_option(directory)}`",
            Exit.UNREACHABLE,
        ) from error
    except PermissionError as error:
        raise CliError(
            f"{error.filename}: not readable for this user; use the account that runs Landbridge, or a context with a "
            "token of your own",
            Exit.UNREACHABLE,
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise CliError(f"{directory / 'state.json'}: not readable ({error})", Exit.UNREACHABLE) from error
    if not _runs(directory):
        raise CliError(
            f"no Landbridge runs on {directory} (process {state.get('pid')} is gone); start it again with "
            f"`landbridge up{_data_option(directory)}`",
            Exit.UNREACHABLE,
        )
    return Instance(url, token, str(directory), directory)


def _data_option(directory: Path) -> str:
    return "" if directory == data_directory(None) else f" --data {directory}"


def _remote(name: str) -> Instance:
    found = Contexts.load().all.get(name)
    if found is None:
        known = ", ".join(sorted(Contexts.load().all)) or "none"
        raise CliError(
            f"context {name}: not known (there are: {known}); add it with `landbridge context add {name} URL`",
            Exit.INVALID,
        )
    return Instance(found["url"], found.get("token", ""), name)


@dataclass
class Contexts:
    """The file of remote instances, private because it holds tokens."""

    path: Path
    all: dict[str, dict[str, str]]
    used: str = ""

    @classmethod
    def load(cls, environ: Mapping[str, str] = os.environ) -> "Contexts":
        home = environ.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
        path = Path(home) / "landbridge" / "contexts.json"
        try:
            found = json.loads(path.read_text())
            return cls(path, dict(found.get("contexts") or {}), str(found.get("used") or ""))
        except FileNotFoundError:
            return cls(path, {})
        except (OSError, ValueError, AttributeError) as error:
            raise CliError(f"{path}: expected the contexts as JSON ({error}); correct or remove it") from error

    def save(self) -> None:
        write_private(self.path, json.dumps({"used": self.used, "contexts": self.all}, indent=2) + "\n")
