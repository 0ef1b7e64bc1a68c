"""Gangs of operations: what was declared by the member that came first, and who is a member."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        create table gang (
            project text not null,
            name text not null,
            declared jsonb not null,
            declared_by uuid not null,
            primary key (project, name)
        )
        """
    )
    op.execute("create table gang_member (operation uuid primary key, project text not null, gang text not null)")
    op.execute("create index gang_member_gang on gang_member (project, gang)")


def downgrade() -> None:
    op.execute("drop table gang_member")
    op.execute("drop table gang")
