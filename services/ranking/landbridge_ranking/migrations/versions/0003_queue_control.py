"""What people decided about queues, and what holds of it now."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_STATEMENTS = (
    """
    create table queue_control (
        queue text primary key,
        version bigint not null,
        paused boolean not null,
        draining timestamptz
    )
    """,
    # Who did what, when and why. Insert only.
    """
    create table audit (
        id bigint generated always as identity primary key,
        at timestamptz not null default now(),
        action text not null,
        by text not null,
        reason text not null,
        queue text not null
    )
    """,
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    for table in ("audit", "queue_control"):
        op.execute(f"drop table {table}")
