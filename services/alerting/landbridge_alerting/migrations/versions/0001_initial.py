"""What waits, what did not start, dead letters; alerts, silences, notifications."""

from alembic import op

from landbridge.store.tables import create_message_tables, drop_message_tables

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_STATEMENTS = (
    # Which project and queue an assessment was about; waiting operations name their assessment only.
    """
    create table asked (
        assessment text primary key,
        project text not null,
        queue text not null,
        at timestamptz not null
    )
    """,
    # Operations that are not placed, one row each.
    """
    create table waiting (
        operation uuid primary key,
        project text not null,
        queue text not null,
        reason text not null,
        eligible boolean not null,
        since timestamptz not null
    )
    """,
    # Operations that were placed or ended in the last minutes, one row a batch: what is delivered again after a crash
    # comes behind them.
    """
    create table gone (
        at timestamptz not null,
        operations uuid[] not null
    )
    """,
    "create index gone_at on gone (at)",
    # Counts by minute: placements and starts that failed, by environment and reason; dead letters by service.
    """
    create table start_count (
        minute timestamptz not null,
        environment text not null,
        reason text not null,
        count bigint not null,
        primary key (minute, environment, reason)
    )
    """,
    """
    create table dead_letter_count (
        minute timestamptz not null,
        service text not null,
        count bigint not null,
        last_error text not null,
        primary key (minute, service)
    )
    """,
    """
    create table advisory (
        about text primary key,
        text text not null,
        at timestamptz not null
    )
    """,
    """
    create table alert (
        fingerprint text primary key,
        rule text not null,
        severity text not null,
        labels jsonb not null,
        summary text not null,
        description text not null,
        state text not null,
        since timestamptz not null,
        seen_at timestamptz not null,
        starts_at timestamptz,
        ends_at timestamptz
    )
    """,
    "create index alert_state on alert (state)",
    """
    create table silence (
        id uuid primary key,
        matchers jsonb not null,
        starts_at timestamptz not null,
        ends_at timestamptz not null,
        created_by text not null,
        comment text not null
    )
    """,
    # What still has to be sent: one row a receiver and rule. `changed` counts the reasons to send, so that one that
    # comes while another is being sent is not lost. `due` is moved ahead while somebody sends.
    """
    create table notification (
        receiver text not null,
        rule text not null,
        due timestamptz not null,
        changed bigint not null default 1,
        attempts integer not null default 0,
        last_error text not null default '',
        primary key (receiver, rule)
    )
    """,
    # What each receiver was told last: it is told of an end only if it was told of the beginning.
    """
    create table told (
        receiver text not null,
        fingerprint text not null,
        state text not null,
        at timestamptz not null,
        primary key (receiver, fingerprint)
    )
    """,
)


def upgrade() -> None:
    create_message_tables(op.execute)
    for statement in _STATEMENTS:
        op.execute(statement)


_TABLES = (
    *("told", "notification", "silence", "alert", "advisory", "dead_letter_count", "start_count"),
    *("gone", "waiting", "asked"),
)


def downgrade() -> None:
    for table in _TABLES:
        op.execute(f"drop table if exists {table}")
    drop_message_tables(op.execute)
