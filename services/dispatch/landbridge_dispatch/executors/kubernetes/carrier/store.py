"""An S3-compatible store: objects put, got, listed, deleted; large ones in parts; what fails is tried again."""

import hashlib
import http.client
import io
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO, Protocol
from urllib.parse import urlsplit

from .signing import Keys, encoded, query_text, signed

PART_BYTES = 16 << 20
"""One request carries at most so much, which is all that is held in memory; a file has at most 10,000 parts."""
PARTS_MAX = 9_000
TIMEOUT_S = 20.0
TRIES = 5
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})


class Writer(Protocol):
    """Whatever takes an object's bytes."""

    def write(self, piece: bytes, /) -> int:
        """Take a piece."""


class StoreError(Exception):
    """The store refused, or could not be reached (`status` 0). Its text holds no address and no name of a bucket."""

    def __init__(self, status: int, told: str) -> None:
        super().__init__(told)
        self.status = status

    @property
    def forbidden(self) -> bool:
        """Whether the store knows who asks and does not let them."""
        return self.status in (401, 403)


@dataclass(frozen=True)
class Item:
    """An object of a store. `modified`: as the store tells it, in ISO 8601, so that texts compare as times."""

    key: str
    size: int
    modified: str


@dataclass(frozen=True)
class Place:
    """Where a store is. Keys of objects are below `prefix`."""

    endpoint: str
    bucket: str
    prefix: str = ""
    region: str = "us-east-1"


class Store:
    """One bucket, or what is below a prefix of it. `sleep` waits between tries."""

    def __init__(self, place: Place, keys: Keys, *, sleep: Callable[[float], None] = time.sleep) -> None:
        address = urlsplit(place.endpoint)
        self._place = place
        self._keys = keys
        self._sleep = sleep
        self._secure = address.scheme == "https"
        self._host = address.netloc
        self._base = address.path.rstrip("/")

    def put(self, key: str, file: BinaryIO, size: int) -> None:
        """Store a file of that size under a key. Raises StoreError, OSError."""
        part = max(PART_BYTES, -(-size // PARTS_MAX))
        if size <= part:
            self._ask("PUT", key, body=_read(file, size))
            return
        begun = self._ask("POST", key, {"uploads": ""})
        upload = _text(_parsed(begun), "UploadId")
        try:
            etags = []
            for number, offset in enumerate(range(0, size, part), start=1):
                query = {"partNumber": str(number), "uploadId": upload}
                etags.append(self._ask("PUT", key, query, body=_read(file, min(part, size - offset)), header="etag"))
            told = "".join(
                f"<Part><PartNumber>{number}</PartNumber><ETag>{etag.decode()}</ETag></Part>"
                for number, etag in enumerate(etags, start=1)
            )
            body = f"<CompleteMultipartUpload>{told}</CompleteMultipartUpload>".encode()
            # The answer may say after all that it failed, under status 200.
            if _local(_parsed(self._ask("POST", key, {"uploadId": upload}, body=body)).tag) == "Error":
                raise StoreError(500, "the store could not put the parts of an object together")
        except BaseException:
            self._forget(key, upload)
            raise

    def _forget(self, key: str, upload: str) -> None:
        try:
            self._ask("DELETE", key, {"uploadId": upload})
        except (StoreError, OSError):
            return

    def get(self, key: str, file: Writer, *, at_most: int = 1 << 62) -> int:
        """Write an object into a file, piece by piece, and return its size. Raises StoreError, OSError."""
        size = 0
        while True:
            wanted = min(PART_BYTES, at_most - size)
            try:
                piece = self._ask("GET", key, headers={"range": f"bytes={size}-{size + wanted - 1}"})
            except StoreError as error:
                if error.status == 416:  # nothing lies behind the last byte
                    return size
                raise
            if len(piece) > wanted:
                raise StoreError(502, "the store answered with more than it was asked for")
            file.write(piece)
            size += len(piece)
            if len(piece) < wanted or size >= at_most:
                return size

    def read(self, key: str, at_most: int) -> bytes:
        """Return an object's bytes, at most so many. Raises StoreError, OSError."""
        body = io.BytesIO()
        self.get(key, body, at_most=at_most)
        return body.getvalue()

    def write(self, key: str, body: bytes) -> None:
        """Store bytes. Raises StoreError."""
        self._ask("PUT", key, body=body)

    def delete(self, key: str) -> None:
        """Delete an object; one that is not there is deleted already. Raises StoreError."""
        try:
            self._ask("DELETE", key)
        except StoreError as error:
            if error.status != 404:
                raise

    def list(self, below: str, *, at_most: int = 1 << 62) -> Iterator[Item]:
        """Yield the objects whose keys begin with `below`. Raises StoreError."""
        root = self._key("")
        query = {"list-type": "2", "prefix": self._key(below)}
        while at_most > 0:
            found = _parsed(self._ask("GET", None, {**query, "max-keys": str(min(at_most, 1000))}))
            for entry in _all(found, "Contents"):
                at_most -= 1
                key = _text(entry, "Key").removeprefix(root)
                yield Item(key, int(_text(entry, "Size")), _text(entry, "LastModified"))
            token = _text(found, "NextContinuationToken")
            if not token:
                return
            query["continuation-token"] = token

    # -- requests --------------------------------------------------------------------------------------------------

    def _key(self, key: str) -> str:
        prefix = self._place.prefix.strip("/")
        return f"{prefix}/{key}" if prefix else key

    def _ask(
        self,
        method: str,
        key: str | None,
        query: Mapping[str, str] | None = None,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        header: str = "",
    ) -> bytes:
        """Return the answer's body, or its `header`. `key` None: about the bucket. Raises StoreError."""
        path = f"{self._base}/{self._place.bucket}"
        path = encoded(path if key is None else f"{path}/{self._key(key)}")
        for left in reversed(range(TRIES)):
            try:
                return self._once(method, path, query or {}, body, headers or {}, header)
            except StoreError as error:
                if error.status not in _AGAIN or not left:
                    raise
            except (OSError, http.client.HTTPException) as error:
                if not left:
                    raise StoreError(0, f"the store cannot be reached ({type(error).__name__})") from None
            self._sleep(0.25 * 2 ** (TRIES - 1 - left))
        raise AssertionError("a last try returns or raises")

    def _once(
        self, method: str, path: str, query: Mapping[str, str], body: bytes, headers: Mapping[str, str], header: str
    ) -> bytes:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, timeout=TIMEOUT_S)
        sent = signed(
            method, self._host, path, query, headers, digest=hashlib.sha256(body).hexdigest(), keys=self._keys,
            region=self._place.region, at=datetime.now(UTC),
        )  # fmt: skip
        try:
            connection.request(
                method, f"{path}?{query_text(query)}" if query else path, body=body or None, headers=sent
            )
            answer = connection.getresponse()
            told = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise StoreError(answer.status, f"the store answered {answer.status} {_code(told)}".rstrip())
        return (answer.getheader(header) or "").encode() if header else told


def _read(file: BinaryIO, size: int) -> bytes:
    """Read exactly so many bytes: a file that shrinks meanwhile is no file to keep. Raises OSError."""
    body = file.read(size)
    if len(body) != size:
        raise OSError(0, "the file changed while it was stored")
    return body


def _parsed(body: bytes) -> ET.Element:
    try:
        return ET.fromstring(body)  # noqa: S314 - the site's own store
    except ET.ParseError:
        raise StoreError(502, "the store answered with something else than S3 does") from None


def _code(body: bytes) -> str:
    """Return a store's word for what is wrong, such as AccessDenied; nothing else of its answer is told."""
    try:
        word = _text(_parsed(body), "Code")
    except StoreError:
        return ""
    return word if word.isalnum() and len(word) < 60 else ""


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _all(element: ET.Element, name: str) -> Iterator[ET.Element]:
    return (child for child in element if _local(child.tag) == name)


def _text(element: ET.Element, name: str) -> str:
    return next((child.text or "" for child in _all(element, name)), "")
