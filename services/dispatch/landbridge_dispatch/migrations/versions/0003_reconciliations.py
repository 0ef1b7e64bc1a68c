"""What earlier comparisons with an environment found, beside the latest one."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        create table reconciliation_past (
            environment text not null,
            term bigint not null,
            incarnation text not null,
            restored boolean not null,
            at timestamptz not null default now(),
            outcome jsonb not null,
            primary key (environment, term)
        )
        """
    )
    op.execute(
        """
        insert into reconciliation_past
        select environment, term, incarnation, restored, at, outcome from reconciliation
        """
    )


def downgrade() -> None:
    op.execute("drop table reconciliation_past")
