"""Charges that were found to be held by nothing, for as long as they are shown."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        create table unowned (
            operation uuid not null,
            round integer not null,
            environment text not null,
            queue text not null,
            project text not null,
            reason text not null,
            released boolean not null,
            since timestamptz not null,
            primary key (operation, round)
        )
        """
    )


def downgrade() -> None:
    op.execute("drop table unowned")
