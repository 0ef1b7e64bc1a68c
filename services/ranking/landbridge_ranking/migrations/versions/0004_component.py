"""What held operations are instances of, so that runs of one component can be compared."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table charge add column component text not null default ''")


def downgrade() -> None:
    op.execute("alter table charge drop column component")
