"""What people decided, unknown work found in environments, and signs that the centre was restored."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_STATEMENTS = (
    # Who did what, when and why. Insert only.
    """
    create table audit (
        id bigint generated always as identity primary key,
        at timestamptz not null default now(),
        action text not null,
        by text not null,
        reason text not null,
        environment text not null default '',
        operation text not null default '',
        details jsonb not null default '{}'
    )
    """,
    "create index audit_operation on audit (operation) where operation <> ''",
    # Slots that no operation here accounts for. `state`: open until a person decides, adopted, stopping, then stopped
    # once the environment has said so, gone if an inventory lacks it. Rows stay.
    """
    create table quarantine (
        environment text not null,
        operation text not null,
        generation integer not null,
        counter integer not null,
        why text not null,
        slot text not null,
        term bigint not null,
        final text not null default '',
        outcome text not null default '',
        exit_code integer,
        reason text not null default '',
        message text not null default '',
        checkpoint text not null default '',
        report bytea not null default '',
        state text not null default 'open',
        found_at timestamptz not null default now(),
        seen_at timestamptz not null default now(),
        decided_by text not null default '',
        decided_at timestamptz,
        primary key (environment, operation, generation, counter)
    )
    """,
    "create index quarantine_operation on quarantine (operation) where state = 'open'",
    "alter table environment add column quarantined integer not null default 0",
    # The term that an environment holds although this database has never granted it: the sign of a restore.
    "alter table environment add column ahead_term bigint not null default 0",
    "alter table environment add column ahead_at timestamptz",
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    op.execute("drop table quarantine")
    op.execute("drop table audit")
    for column in ("quarantined", "ahead_term", "ahead_at"):
        op.execute(f"alter table environment drop column {column}")
