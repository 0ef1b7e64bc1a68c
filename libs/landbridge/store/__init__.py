"""Postgres per service schema (state, event log, inbox, migrations) and rebuildable read models in Redis."""

from landbridge.store.database import Database
from landbridge.store.errors import (
    ContentionError,
    SchemaOutOfDateError,
    StoreError,
    TransientStoreError,
    UnavailableError,
)
from landbridge.store.tx import Tx

__all__ = [
    "ContentionError",
    "Database",
    "SchemaOutOfDateError",
    "StoreError",
    "TransientStoreError",
    "Tx",
    "UnavailableError",
]
