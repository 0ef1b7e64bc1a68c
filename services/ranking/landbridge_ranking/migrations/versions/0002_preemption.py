"""What may be displaced, what is borrowed, when it is expected to end, and who was asked to leave.

Charges from before are never displaced: what they may lose is not known.
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        alter table charge
            add column priority integer not null default 0,
            add column borrowed boolean not null default false,
            add column evictable boolean not null default false,
            add column ends timestamptz,
            add column leaving boolean not null default false
        """
    )


def downgrade() -> None:
    for column in ("leaving", "ends", "evictable", "borrowed", "priority"):
        op.execute(f"alter table charge drop column {column}")
