"""The sample of a first start: projects, queues, two environments and the data that their connections name.

Registered through the API like anything else, once: an empty data directory gets it, unless `--empty` was asked for.
"""

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from landbridge_embedded import environments
from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.keeper import Note
from landbridge_embedded.layout import DataDirectory
from landbridge_embedded.process import write_private
from landbridge_embedded.services import admin_token

if TYPE_CHECKING:
    from landbridge.client import HttpClient

_BINDINGS = ".bindings.yaml"
_JOIN_S = 20.0
_POLL_S = 0.1


def wanted(data: DataDirectory, *, empty: bool) -> bool:
    """Tell whether this start registers the sample."""
    return not empty and not _marker(data).exists() and not environments.joined(data)


async def register(
    data: DataDirectory, *, empty: bool, api: str, start: Callable[[str], Awaitable[None]], note: Note
) -> bool:
    """Register the sample if this is the first start; tell whether it was. Later starts leave everything as it is."""
    if not wanted(data, empty=empty):
        _remember(data)
        return False
    from landbridge.client import HttpClient, LandbridgeError

    root = sample_root()
    try:
        async with HttpClient(api, admin_token(data)) as client:
            for path in sorted((root / "projects").glob("*.yaml")):
                await _apply_all(client, path.name, path.read_bytes())
            contracts = [item for item in sorted((root / "environments").glob("*.yaml")) if _is_contract(item)]
            await asyncio.gather(*(_join(data, client, root, path, start) for path in contracts))
    except LandbridgeError as error:
        raise EmbeddedError(f"registering the sample environments: {error}") from error
    _remember(data)
    note(f"sample environments: {', '.join(path.stem for path in contracts)}")
    return True


def sample_root() -> Path:
    """Return where the sample lies: in the package, or in the source tree. EmbeddedError when it is nowhere."""
    here = Path(__file__).resolve()
    places = [here.parent / "sample", here.parents[3] / "examples"]
    for place in places:
        if (place / "environments").is_dir() and (place / "projects").is_dir():
            return place
    raise EmbeddedError(
        f"the sample environments are missing (looked in {', '.join(map(str, places))}); start with --empty"
    )


def _is_contract(path: Path) -> bool:
    return not path.name.endswith(_BINDINGS)


async def _apply_all(client: "HttpClient", name: str, body: bytes) -> None:
    """Apply each document of a file by itself."""
    from landbridge.domain.documents import Document, read_documents

    for found in read_documents(body):
        if not isinstance(found, Document):
            raise EmbeddedError(found.text(name))
        await client.apply(found.body)


async def _join(
    data: DataDirectory, client: "HttpClient", root: Path, contract: Path, start: Callable[[str], Awaitable[None]]
) -> None:
    """Register one environment, let it join, fill its connections, start its dispatcher."""
    name = contract.stem
    body, bindings = _read(contract)
    await _apply_all(client, contract.name, body)
    answer = await _joined(client, name)
    place = environments.write(data, name, creds=str(answer["creds"]), bindings=bindings)
    await asyncio.to_thread(fill_connections, root, place.directory, bindings)
    await start(name)


def _read(contract: Path) -> tuple[bytes, str]:
    """Return a contract and the bindings beside it."""
    return contract.read_bytes(), contract.with_name(contract.stem + _BINDINGS).read_text()


async def _joined(client: "HttpClient", name: str) -> dict[str, Any]:
    """Join as soon as the verifier knows the contract, which it learns from the stream."""
    from landbridge.client import NotFoundError

    deadline = time.monotonic() + _JOIN_S
    while True:
        try:
            return await client.join(name)
        except NotFoundError:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(_POLL_S)


def fill_connections(root: Path, directory: Path, bindings: str) -> None:
    """Make the directories that bindings name, relative ones only, with the sample's data where it has some.

    What exists is left alone.
    """
    import yaml

    for binding in ((yaml.safe_load(bindings) or {}).get("connections") or {}).values():
        text = str(binding.get("directory") or "")
        if not text or Path(text).is_absolute():
            continue
        target = directory / text
        if target.exists():
            continue
        source = next((place for place in (root / "data" / target.name, root / target.name) if place.is_dir()), None)
        if source is None:
            target.mkdir(parents=True, mode=0o700)
        else:
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))


def _marker(data: DataDirectory) -> Path:
    return data.root / "started"


def _remember(data: DataDirectory) -> None:
    if not _marker(data).exists():
        write_private(_marker(data), "This directory was set up; the sample is not registered again.\n")
