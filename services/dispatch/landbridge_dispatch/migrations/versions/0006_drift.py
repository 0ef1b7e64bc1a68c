"""Differences between what runs in an environment and what is recorded."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # `confirmed`: two surveys in a row have shown it.
    op.execute(
        """
        create table drift (
            environment text not null,
            kind text not null,
            operation text not null,
            epoch text not null,
            wanted text not null,
            found text not null,
            first_seen timestamptz not null,
            confirmed boolean not null,
            primary key (environment, kind, operation, epoch)
        )
        """
    )


def downgrade() -> None:
    op.execute("drop table drift")
