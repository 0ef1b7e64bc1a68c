"""Documents that people write: bytes to typed documents, or all problems at once, with place and suggestion.

Pure: no clock, no I/O. What a document means among others (does the queue exist, what do presets add) is in `render`.
"""

from landbridge.domain.documents.canonical import canonical_json, digest
from landbridge.domain.documents.catalogue import Catalogue
from landbridge.domain.documents.kinds import API_VERSION, KINDS, Kind, find_kind
from landbridge.domain.documents.read import Document, Refusal, read_document, read_documents
from landbridge.domain.documents.render import Rendered, render

__all__ = [
    "API_VERSION",
    "KINDS",
    "Catalogue",
    "Document",
    "Kind",
    "Refusal",
    "Rendered",
    "canonical_json",
    "digest",
    "find_kind",
    "read_document",
    "read_documents",
    "render",
]
