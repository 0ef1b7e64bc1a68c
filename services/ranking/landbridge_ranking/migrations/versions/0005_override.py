"""Overrides: what people decided about one operation."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table audit add column operation text not null default ''")


def downgrade() -> None:
    op.execute("alter table audit drop column operation")
