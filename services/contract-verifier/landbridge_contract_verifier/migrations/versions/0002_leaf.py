"""Environments whose sites have a NATS of their own."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table account add column leaf boolean not null default false")


def downgrade() -> None:
    op.execute("alter table account drop column leaf")
