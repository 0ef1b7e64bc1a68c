"""The environments whose dispatchers run on this machine: one directory each, DIR/environments/NAME."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.layout import DataDirectory
from landbridge_embedded.process import write_private

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class LocalEnvironment:
    """One joined environment. `nats_url` is empty when it uses the NATS of this machine."""

    name: str
    directory: Path
    nats_url: str = ""

    @property
    def service(self) -> str:
        """Name of its dispatcher among the processes."""
        return f"dispatcher-{self.name}"

    @property
    def creds(self) -> Path:
        return self.directory / "dispatcher.creds"

    @property
    def bindings(self) -> Path:
        return self.directory / "bindings.yaml"


def joined(data: DataDirectory) -> list[LocalEnvironment]:
    """All environments that have joined, by name."""
    return [read(data, entry.parent.name) for entry in sorted(data.environments.glob("*/environment.json"))]


def read(data: DataDirectory, name: str) -> LocalEnvironment:
    """One joined environment. EmbeddedError when it has not joined here."""
    directory = data.environments / name
    try:
        found = json.loads((directory / "environment.json").read_text())
    except OSError as error:
        raise EmbeddedError(
            f"environment {name}: has not joined on this machine ({directory} has no environment.json); "
            f"run `landbridge env join {name}`"
        ) from error
    except ValueError as error:
        raise EmbeddedError(f"{directory / 'environment.json'}: expected JSON ({error})") from error
    return LocalEnvironment(name, directory, str(found.get("natsUrl", "")))


def set_aside(data: DataDirectory, name: str) -> Path:
    """Move the directory of a removed environment out of the way, with its logs and outputs; where it is now."""
    target = data.root / "removed" / f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    target.parent.mkdir(exist_ok=True, mode=0o700)
    return (data.environments / name).rename(target)


def write(data: DataDirectory, name: str, *, creds: str, bindings: str, nats_url: str = "") -> LocalEnvironment:
    """Set up the directory of an environment that joined; existing bindings are replaced only by other text."""
    if not _NAME.fullmatch(name):
        raise EmbeddedError(f"environment {name!r}: expected 1 to 63 lower-case letters, digits and hyphens")
    place = LocalEnvironment(name, data.environments / name, nats_url)
    place.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_private(place.creds, creds)
    if bindings:
        write_private(place.bindings, bindings)
    # Last, because it makes the environment count as joined.
    write_private(place.directory / "environment.json", json.dumps({"name": name, "natsUrl": nats_url}) + "\n")
    return place
