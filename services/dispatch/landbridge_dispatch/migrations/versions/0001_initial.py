"""Operations with their placements, environments with their leases, timers, inventories, and the centre's own state.

Moments are milliseconds since 1970 on the coordinator's wall clock: they time offers, queues and retries, where a wrong
clock harms nobody. How long a lease has been silent is measured in memory, on a boot clock.
"""

from alembic import op

from landbridge.store.tables import create_message_tables, drop_message_tables

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_STATEMENTS = (
    # Rendered specifications, each kept once; insert only.
    """
    create table content (
        sha256 bytea primary key,
        body bytea not null
    )
    """,
    # One narrow row per operation. `active` (an environment may know of the current epoch) is the only indexed column
    # that changes, and it changes twice: all other updates stay on their page. `rest` holds what seldom changes.
    # `stop_ms` is how long self-stopping work needs to be surely dead; null for work that goes on.
    """
    create table operation (
        id uuid primary key,
        project text not null,
        spec_sha256 bytea not null,
        stop_ms integer,
        phase text not null,
        op_seq integer not null,
        round integer not null,
        epoch_generation integer not null,
        epoch_counter integer not null,
        environment text not null,
        placement text not null,
        active boolean not null,
        grant_term bigint not null,
        concluded boolean not null,
        attempts integer not null,
        timer text not null,
        due_at bigint not null,
        queue_due bigint not null,
        decision_id text not null,
        contract_version integer not null,
        valid_until bigint not null,
        rest bytea not null
    ) with (fillfactor = 55)
    """,
    "create index operation_active on operation (environment) where active",
    # A batch's timers that end in the same second are one row; `operations` are ids, joined by commas. Whether one of
    # them still waits is told by the operation's own row.
    """
    create table timer (
        id bigint generated always as identity primary key,
        due_at bigint not null,
        operations text not null
    )
    """,
    "create index timer_due on timer (due_at)",
    """
    create table environment (
        environment text primary key,
        generation integer not null,
        incarnation text not null,
        displaced text not null,
        term bigint not null,
        held_term bigint not null,
        held_n bigint not null,
        asked_term bigint not null,
        asked_n bigint not null,
        previous_term bigint not null,
        previous_n bigint not null,
        grants bigint not null,
        term_since bigint not null,
        link text not null,
        link_since bigint not null,
        reconciled_term bigint not null,
        restored boolean not null,
        features text[] not null,
        executor text not null
    ) with (fillfactor = 70)
    """,
    # The parts of the newest inventory of each environment, until it is complete; after a restore of the centre until
    # all environments have shown theirs.
    """
    create table inventory_part (
        environment text not null,
        part integer not null,
        parts integer not null,
        incarnation text not null,
        term bigint not null,
        body bytea not null,
        primary key (environment, part)
    )
    """,
    # What the latest comparison with each environment found, for people.
    """
    create table reconciliation (
        environment text primary key,
        term bigint not null,
        incarnation text not null,
        restored boolean not null,
        at timestamptz not null default now(),
        outcome jsonb not null
    )
    """,
    # One row: the generation, whether the centre still recovers from a restore, and who times leases.
    """
    create table centre (
        single boolean primary key default true check (single),
        generation integer not null default 1,
        recovering boolean not null default false,
        expirer text not null default '',
        fence bigint not null default 0,
        seen timestamptz not null default now(),
        held_since timestamptz,
        lifted bigint not null default 0
    )
    """,
    "insert into centre default values",
)


def upgrade() -> None:
    create_message_tables(op.execute)
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    for table in ("centre", "reconciliation", "inventory_part", "environment", "timer", "operation", "content"):
        op.execute(f"drop table {table}")
    drop_message_tables(op.execute)
