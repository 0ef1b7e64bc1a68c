"""Polyaxonfiles as operations."""

from landbridge.domain.importing.polyaxon.operation import import_polyaxon

__all__ = ["import_polyaxon"]
