"""Declarations of other systems brought in as operations, with a report that accounts for every field (I8).

Pure: bytes and names in, an operation and a report out. One package a format; what they share stands beside them.
"""

from landbridge.domain.importing.formats import FORMATS, detect
from landbridge.domain.importing.read import import_declarations
from landbridge.domain.importing.report import Imported, Mapped, Missing, Unmapped, Why

__all__ = ["FORMATS", "Imported", "Mapped", "Missing", "Unmapped", "Why", "detect", "import_declarations"]
