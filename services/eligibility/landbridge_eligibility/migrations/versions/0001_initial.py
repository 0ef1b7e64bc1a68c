"""Known requirement classes, and the operations that wait because no environment is eligible for their class."""

from alembic import op

from landbridge.store.tables import create_message_tables, drop_message_tables

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_STATEMENTS = (
    # `body` is the canonical JSON of the requirements, `announced` a hash of what readers were last told.
    """
    create table requirement_class (
        key text primary key,
        project text not null,
        body bytea not null,
        announced text not null,
        seen_at timestamptz not null default now(),
        keep_until timestamptz not null
    )
    """,
    "create index requirement_class_seen on requirement_class (seen_at)",
    """
    create table waiting (
        operation uuid primary key,
        round integer not null,
        class text not null,
        reason text not null,
        condition text not null,
        since timestamptz not null default now(),
        keep_until timestamptz not null
    )
    """,
    "create index waiting_class on waiting (class)",
)


def upgrade() -> None:
    create_message_tables(op.execute)
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    for table in ("waiting", "requirement_class"):
        op.execute(f"drop table {table}")
    drop_message_tables(op.execute)
