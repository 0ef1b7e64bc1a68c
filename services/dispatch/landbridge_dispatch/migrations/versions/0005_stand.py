"""Taking over the generation in force, and keeping it in force, in one round trip: every transaction begins with it."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Volatile, so that each of its statements sees what was committed before it began: the row is read behind the lock.
    op.execute(
        """
        create function stand(lock bigint, alone boolean) returns table (generation integer, recovering boolean)
        language plpgsql volatile as $$
        begin
            if alone then
                perform pg_advisory_xact_lock(lock);
            else
                perform pg_advisory_xact_lock_shared(lock);
            end if;
            return query select c.generation, c.recovering from centre c;
        end
        $$
        """
    )


def downgrade() -> None:
    op.execute("drop function stand(bigint, boolean)")
