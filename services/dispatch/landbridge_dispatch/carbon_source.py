"""Where a site reads the carbon intensity of its power: a file with a time series, or an HTTP source that tells it.

In the bindings, beside the other physical sides, which never leave the environment:

    carbon: {file: data/carbon.csv}
    carbon: {url: "https://grid.example/intensity", name: "grid operator", timeout: 10s, tokenFile: secrets/grid}

Of an answer at most 64 KiB are read; redirects are not followed. https goes anywhere, http to this machine only.
"""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx2
import msgspec

from landbridge.domain import units
from landbridge.domain.carbon import Point, Told, point_at, read_answer, read_series
from landbridge.domain.tables import MOST_BYTES

MOST_ANSWER_BYTES: Final = 64 * 1024
MOST_TOKEN_BYTES: Final = 16 * 1024
_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class CarbonSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Either a file or a URL; `name` is what explanations call it."""

    file: str = ""
    url: str = ""
    name: str = ""
    timeout: str = "10s"
    token_file: str = ""

    def __post_init__(self) -> None:
        if bool(self.file) is bool(self.url):
            raise ValueError("expected either file or url")
        if self.token_file and not self.url:
            raise ValueError("tokenFile: expected with url only")
        try:
            if units.parse_duration(self.timeout) < 1:
                raise ValueError("expected more than nothing")
        except ValueError as error:
            raise ValueError(f"timeout: {error}") from error
        if self.url:
            _check(self.url)

    @property
    def called(self) -> str:
        """How explanations name it."""
        return f"carbon source {self.name or ('file' if self.file else 'HTTP')}"


class SourceError(Exception):
    """There is no intensity to be had now; the text says why, without the physical place."""


def _check(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ValueError(f"url: expected https://…, found scheme {parts.scheme or 'none'!r}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("url: expected no user and no password in it; give a token by tokenFile")
    if parts.scheme == "http" and parts.hostname not in _HERE:
        raise ValueError("url: expected https; http is for this machine only")


async def read(source: CarbonSource, home: Path, now: datetime) -> Told:
    """Return the intensity that holds now. Raises SourceError."""
    if source.file:
        return Told(await asyncio.to_thread(_from_file, home / source.file, now))
    found = read_answer(await _fetch(source, home), now)
    if isinstance(found, str):
        raise SourceError(found)
    return found


def _from_file(path: Path, now: datetime) -> Point:
    series = read_series(_bytes(path, MOST_BYTES))
    if series.problems:
        first = series.problems[0].text("the file")
        more = f" (and {len(series.problems) - 1} more problems)" if len(series.problems) > 1 else ""
        raise SourceError(f"{first}{more}")
    found = point_at(series.points, now)
    if found is None:
        last = max((point.until for point in series.points), default=None)
        told = "it has no rows" if last is None else f"its last point ends at {last:%Y-%m-%d %H:%MZ}"
        raise SourceError(f"the file tells no intensity of now: {told}")
    return found


def _bytes(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise SourceError(f"the file cannot be read: {error.strerror or type(error).__name__}") from error


async def _fetch(source: CarbonSource, home: Path) -> bytes:
    headers = {"Accept": "application/json"}
    if source.token_file:
        token = _bytes(home / source.token_file, MOST_TOKEN_BYTES).decode("ascii", "replace").strip()
        headers["Authorization"] = f"Bearer {token}"
    timeout_s = units.parse_duration(source.timeout) / 1000
    try:
        # The client's own limit is for one wait; a source that sends a byte now and then must end as well.
        async with (
            asyncio.timeout(timeout_s),
            httpx2.AsyncClient(timeout=timeout_s, follow_redirects=False, trust_env=False) as client,
            client.stream("GET", source.url, headers=headers) as response,
        ):
            if response.status_code != httpx2.codes.OK:
                raise SourceError(f"HTTP status {response.status_code}")
            return await _body(response)
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise SourceError(f"no answer within {source.timeout}") from error
    except (httpx2.HTTPError, OSError, ValueError) as error:
        raise SourceError(f"no answer: {type(error).__name__}") from error


async def _body(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > MOST_ANSWER_BYTES:
            raise SourceError(f"expected an answer of at most {MOST_ANSWER_BYTES // 1024} KiB")
    return bytes(body)
