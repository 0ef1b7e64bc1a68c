"""What becomes of the bytes of a submission: ready to be accepted, or unfit."""

from dataclasses import dataclass

from landbridge.domain.errors import Problem
from landbridge_intake.gangs import NO_GANG, Gang


@dataclass(frozen=True, slots=True)
class Ready:
    """A submission that can be accepted in the catalogue it was rendered with. Digests are raw, texts are hex."""

    project: str
    name: str
    queue: str
    written_sha256: bytes
    document_sha256: bytes
    effective: bytes
    effective_sha256: bytes
    written_hex: str
    effective_hex: str
    gang: Gang = NO_GANG


@dataclass(frozen=True, slots=True)
class Unfit:
    """A submission that cannot be accepted.

    If the document by itself is fine, its digests tell whether it was accepted before, in another catalogue.
    """

    problems: tuple[Problem, ...]
    project: str = ""
    written_sha256: bytes = b""
    document_sha256: bytes = b""


Prepared = Ready | Unfit
