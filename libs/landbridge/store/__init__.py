"""Postgres per service schema (state, event log, inbox, migrations) and rebuildable read models in Redis."""

from landbridge.store.database import Database, Tx
from landbridge.store.errors import (
    ContentionError,
    SchemaOutOfDateError,
    StoreError,
    TransientStoreError,
    UnavailableError,
)

__all__ = [
    "ContentionError",
    "Database",
    "SchemaOutOfDateError",
    "StoreError",
    "TransientStoreError",
    "Tx",
    "UnavailableError",
]
