"""What waits to be placed for the first time, of projects that limit it."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("create table queued (operation uuid primary key, project text not null)")
    op.execute("create index queued_project on queued (project)")


def downgrade() -> None:
    op.execute("drop table queued")
