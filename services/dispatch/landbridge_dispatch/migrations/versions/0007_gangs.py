"""Which operations are members of which gang."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        create table gang_member (
            operation uuid primary key,
            project text not null,
            gang text not null
        )
        """
    )
    op.execute("create index gang_member_gang on gang_member (project, gang)")


def downgrade() -> None:
    op.execute("drop table gang_member")
