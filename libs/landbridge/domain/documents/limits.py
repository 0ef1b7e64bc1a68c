"""Bounds on what is read: they make hostile input cheap to refuse."""

from typing import Final

MAX_DOCUMENT_BYTES: Final = 256 * 1024
MAX_STREAM_BYTES: Final = 8 * 1024 * 1024  # several documents in one body
MAX_DEPTH: Final = 20
MAX_NODES: Final = 5_000  # values of one document, at about 6 us each
MAX_DOCUMENTS: Final = 1_000
MAX_PROBLEMS: Final = 100  # told at once; nobody reads more, and hostile input could produce a million
INT_MAX: Final = 2**63 - 1
