"""Projections of operations, what they refer to, and who looked at what."""

from alembic import op

from landbridge.store.tables import create_message_tables, drop_message_tables

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_STATEMENTS = (
    # What happened, one row a fact and operation. Only ever inserted: everything else can be folded from it again.
    # `number` counts events (lane 0) or rounds (all others), see landbridge_lineage.fold.
    """
    create table fact (
        operation uuid not null,
        lane smallint not null,
        number bigint not null,
        ref text not null,
        project text not null,
        event text not null,
        id uuid not null,
        body bytea not null,
        primary key (operation, lane, number, ref)
    )
    """,
    # The folded state, one row an operation; `version` guards it against two writers.
    """
    create table operation (
        id uuid primary key,
        project text not null,
        queue text not null,
        environment text not null,
        phase text not null,
        name text not null,
        accepted_at timestamptz,
        version bigint not null,
        state bytea not null
    )
    """,
    "create index operation_accepted on operation (accepted_at, id)",
    "create index operation_project on operation (project, accepted_at, id)",
    "create index operation_queue on operation (queue, accepted_at, id)",
    "create index operation_environment on operation (environment, accepted_at, id) where environment <> ''",
    # Most operations end well; looking for the others must not walk past them.
    "create index operation_phase on operation (phase, accepted_at, id) where phase <> 'completed'",
    """
    create table tally (
        project text not null,
        queue text not null,
        environment text not null,
        phase text not null,
        operations bigint not null,
        primary key (project, queue, environment, phase)
    ) with (fillfactor = 50)
    """,
    """
    create table assessment (
        id text primary key,
        requirement_class text not null,
        at timestamptz not null,
        body bytea not null
    )
    """,
    """
    create table class_verdict (
        requirement_class text primary key,
        assessment_id text not null,
        project text not null,
        message_id uuid not null,
        at timestamptz not null,
        eligible boolean not null,
        condition text not null
    )
    """,
    """
    create table decision (
        id text primary key,
        assessment_id text not null,
        at timestamptz not null,
        body bytea not null
    )
    """,
    """
    create table refusal (
        id uuid primary key,
        project text not null,
        source text not null,
        submission text not null,
        at timestamptz not null,
        body bytea not null
    )
    """,
    "create index refusal_project on refusal (project, at, id)",
    "create index refusal_at on refusal (at, id)",
    """
    create table audit (
        id uuid primary key,
        at timestamptz not null,
        principal text not null,
        role text not null,
        action text not null,
        project text not null,
        operation text not null,
        environment text not null,
        detail text not null,
        outcome text not null
    )
    """,
    "create index audit_operation on audit (operation, at)",
)


def upgrade() -> None:
    create_message_tables(op.execute)
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    for table in ("audit", "refusal", "decision", "class_verdict", "assessment", "tally", "operation", "fact"):
        op.execute(f"drop table if exists {table}")
    drop_message_tables(op.execute)
