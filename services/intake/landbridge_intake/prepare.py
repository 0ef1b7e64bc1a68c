"""From the bytes of a submission to what will be stored, remembered: the same shape comes again and again."""

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256

from landbridge.domain.documents import Catalogue, Document, Refusal, read_document, render
from landbridge_intake.gangs import gang_of
from landbridge_intake.ready import Prepared, Ready, Unfit
from landbridge_intake.templates import Templates

_BYTES_LIMIT = 64 * 1024 * 1024
_KINDS = ("Operation",)


@dataclass(slots=True)
class _Entry:
    read: Document | Refusal
    size: int
    prepared: Prepared | None = None
    revision: int = -1


class Preparer:
    """Reads and renders submissions, with a bounded memory of what it read.

    Reading depends on the bytes alone; rendering also on the catalogue, so it is done again when that has changed.
    """

    def __init__(self, entries: int = 4096) -> None:
        self._entries = entries
        self._memory: OrderedDict[bytes, _Entry] = OrderedDict()
        self._size = 0
        self._templates = Templates()
        self.hits = 0
        self.misses = 0

    def read(self, body: bytes) -> Document | Refusal:
        """Return what the bytes say, whatever the catalogue holds."""
        return self._entry(body, sha256(body).digest()).read

    def project_of(self, body: bytes) -> str | None:
        """Return the project that an acceptable document names by itself; None for what is no such document."""
        known = self._templates.project_of(body)
        if known:
            return known
        read = self.read(body)
        return read.project if isinstance(read, Document) else None

    def prepare(self, body: bytes, catalogue: Catalogue, revision: int) -> Prepared:
        """Return what to store for a body, in the catalogue of that revision."""
        digest = sha256(body).digest()
        entry = self._memory.get(digest)
        if entry is None or entry.revision != revision:
            like_another = self._templates.match(body, revision)
            if like_another is not None:
                self.hits += 1
                return like_another
        entry = self._entry(body, digest)
        if entry.prepared is None or entry.revision != revision:
            entry.prepared = _prepare(entry.read, digest, catalogue)
            entry.revision = revision
            if isinstance(entry.prepared, Ready):
                self._templates.learn(body, revision, lambda other: _long_way(other, catalogue))
        return entry.prepared

    def _entry(self, body: bytes, digest: bytes) -> _Entry:
        entry = self._memory.get(digest)
        if entry is not None:
            self.hits += 1
            self._memory.move_to_end(digest)
            return entry
        self.misses += 1
        entry = _Entry(read_document(body, _KINDS), len(body) + 1024)
        self._memory[digest] = entry
        self._size += entry.size
        while len(self._memory) > self._entries or self._size > _BYTES_LIMIT:
            self._size -= self._memory.popitem(last=False)[1].size
        return entry


def _long_way(body: bytes, catalogue: Catalogue) -> tuple[bytes, Ready] | None:
    """Read and render a body; return its canonical document and what is accepted, if it is."""
    read = read_document(body, _KINDS)
    if isinstance(read, Refusal):
        return None
    prepared = _prepare(read, sha256(body).digest(), catalogue)
    return (read.canonical, prepared) if isinstance(prepared, Ready) else None


def _prepare(read: Document | Refusal, digest: bytes, catalogue: Catalogue) -> Prepared:
    if isinstance(read, Refusal):
        return Unfit(read.problems, read.project)
    document_digest = sha256(read.canonical).digest()
    rendered = render(read, catalogue)
    if isinstance(rendered, tuple):
        return Unfit(rendered, read.project, digest, document_digest)
    effective_digest = sha256(rendered.canonical).digest()
    return Ready(
        read.project,
        read.name,
        rendered.queue,
        digest,
        document_digest,
        rendered.canonical,
        effective_digest,
        digest.hex(),
        effective_digest.hex(),
        gang_of(rendered.value),
    )


__all__ = ["Prepared", "Preparer", "Ready", "Unfit"]
