"""dstack configurations as operations."""

from landbridge.domain.importing.dstack.configuration import import_dstack

__all__ = ["import_dstack"]
