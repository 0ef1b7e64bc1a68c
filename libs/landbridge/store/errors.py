"""What can go wrong between a service and Postgres, in the only three ways that callers treat differently."""


class StoreError(Exception):
    """Any failure of the store. Raised as such only for programming errors (wrong SQL, broken constraint)."""


class TransientStoreError(StoreError):
    """The same transaction may succeed when it is tried again; nothing of it was kept.

    `retry_after_s` is a hint in seconds.
    """

    retry_after_s: float = 0.0


class ContentionError(TransientStoreError):
    """Serialisation failure, deadlock or lock timeout: try again at once."""


class UnavailableError(TransientStoreError):
    """Postgres is stopped, starting, out of connections or unreachable: try again when it answers.

    If the connection broke during COMMIT, the transaction may have been kept. Callers are idempotent (inbox), so
    trying again is right in both cases.
    """

    retry_after_s = 1.0


class SchemaOutOfDateError(StoreError):
    """The tables in Postgres are not at the revision that this release was written for."""
