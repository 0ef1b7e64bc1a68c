"""What operations that wait were told, so that another sentence under the same code is told too."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table waiting add column told text not null default ''")


def downgrade() -> None:
    op.execute("alter table waiting drop column told")
