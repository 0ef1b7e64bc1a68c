"""What was seen of the stream of operations last, and since when messages of it are known to be lost."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        alter table centre
            add column stream_created text not null default '',
            add column stream_last bigint not null default 0,
            add column stream_lost_at timestamptz
        """
    )


def downgrade() -> None:
    op.execute("alter table centre drop column stream_created, drop column stream_last, drop column stream_lost_at")
