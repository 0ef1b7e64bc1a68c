"""Parts of environments that get no new work, and who decided what about which environment."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_STATEMENTS = (
    "alter table environment add column control_by text not null default ''",
    "alter table environment add column control_reason text not null default ''",
    # One row a part that is paused: a capability class, or the label of nodes; the other one is empty.
    """
    create table hold (
        environment text not null references environment (name),
        capability_class text not null,
        node_selector text not null,
        by text not null,
        reason text not null,
        at timestamptz not null,
        primary key (environment, capability_class, node_selector)
    )
    """,
    """
    create table audit (
        id bigint generated always as identity primary key,
        at timestamptz not null,
        action text not null,
        environment text not null,
        part text not null,
        by text not null,
        reason text not null
    )
    """,
    "create index audit_environment on audit (environment, id)",
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    op.execute("drop table audit")
    op.execute("drop table hold")
    op.execute("alter table environment drop column control_reason")
    op.execute("alter table environment drop column control_by")
