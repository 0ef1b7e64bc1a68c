"""The ledger, the operations that wait for admission, decision records, and who may admit."""

from alembic import op

from landbridge.store.tables import create_message_tables, drop_message_tables

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_STATEMENTS = (
    # One row: the fencing number of the admitter. Whoever charges holds it for the length of a transaction.
    """
    create table admitter (
        sole boolean primary key default true check (sole),
        fence bigint not null,
        holder text not null,
        since timestamptz not null default now()
    )
    """,
    "insert into admitter (fence, holder) values (0, '')",
    # The ledger. A row outlives its charge: it keeps a late message from placing what has ended, or ended a round.
    """
    create table charge (
        operation uuid primary key,
        round integer not null,
        environment text not null,
        queue text not null,
        project text not null,
        amounts text not null,
        decision text not null,
        previous text not null,
        held_out boolean not null,
        at timestamptz not null,
        held boolean not null,
        closed boolean not null
    )
    """,
    "create index charge_held on charge (operation) where held",
    "create index charge_at on charge (at) where not held",
    """
    create table waiting (
        operation uuid primary key,
        round integer not null,
        class text not null,
        queue text not null,
        project text not null,
        priority integer not null,
        position bigint not null,
        previous text not null,
        reason text not null,
        since timestamptz not null
    )
    """,
    "create index waiting_queue on waiting (queue, priority desc, position)",
    # The newest verdict about each class in which operations wait.
    """
    create table requirement_class (
        key text primary key,
        assessment bytea not null
    )
    """,
    """
    create table decision (
        id text primary key,
        record bytea not null,
        at timestamptz not null
    )
    """,
    "create index decision_at on decision (at)",
    # What was seen lately of each environment's work.
    """
    create table observation (
        environment text primary key,
        seen bytea not null
    )
    """,
)


def upgrade() -> None:
    create_message_tables(op.execute)
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    for table in ("observation", "decision", "requirement_class", "waiting", "charge", "admitter"):
        op.execute(f"drop table {table}")
    drop_message_tables(op.execute)
