"""Accepted operations, the contents they refer to, and the documents of the catalogue."""

from alembic import op

from landbridge.store.tables import create_message_tables, drop_message_tables

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_STATEMENTS = (
    # Specifications and rendered operations, each kept once: applications submit the same shape many times.
    """
    create table content (
        sha256 bytea primary key,
        body bytea not null
    )
    """,
    # What was accepted. The id derives from project and key, so the primary key is the idempotency key, for as long as
    # the operation is remembered. `written` is the bytes as sent, `document` their meaning, `effective` what is run.
    """
    create table operation (
        id uuid primary key,
        project text not null,
        key text not null,
        name text not null,
        queue text not null,
        written_sha256 bytea not null,
        document_sha256 bytea not null,
        effective_sha256 bytea not null,
        source text not null,
        submitted_by text not null,
        retry_of uuid,
        at timestamptz not null
    )
    """,
    "create index operation_retry_of on operation (retry_of) where retry_of is not null",
    # Every version of every document, deletions included (they have no document).
    """
    create table document (
        kind text not null,
        name text not null,
        version integer not null,
        revision bigint not null,
        deleted boolean not null,
        written bytea not null,
        document bytea not null,
        applied_by text not null,
        at timestamptz not null,
        primary key (kind, name, version)
    )
    """,
    "create index document_revision on document (revision)",
    # One row: counts changes of the catalogue, and puts those who change it in a line.
    """
    create table catalogue (
        single boolean primary key default true check (single),
        revision bigint not null
    )
    """,
    "insert into catalogue (revision) values (0)",
)


def upgrade() -> None:
    create_message_tables(op.execute)
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    for table in ("catalogue", "document", "operation", "content"):
        op.execute(f"drop table {table}")
    drop_message_tables(op.execute)
