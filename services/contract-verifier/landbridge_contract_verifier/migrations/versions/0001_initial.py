"""Environments, contract versions, evidence, accounts of the broker, access entries."""

from alembic import op

from landbridge.store.tables import create_message_tables, drop_message_tables

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_STATEMENTS = (
    # One row an environment. `removed` keeps its generation, so that the name used again is another account.
    # `evidence_due`: when its evidence has to be published; null: nothing to tell. `plan_for`: the incarnation of the
    # dispatcher that was last sent the plan.
    """
    create table environment (
        name text primary key,
        removed boolean not null default false,
        registered_at timestamptz not null,
        paused boolean not null default false,
        draining boolean not null default false,
        clock_offset double precision not null default 0,
        plan_for text not null default '',
        evidence_due timestamptz,
        evidence_told timestamptz not null default '1970-01-01T00:00:00Z',
        refresh_at timestamptz not null default '1970-01-01T00:00:00Z',
        phase_due timestamptz
    )
    """,
    "create index environment_evidence_due on environment (evidence_due) where evidence_due is not null",
    "create index environment_phase_due on environment (phase_due) where phase_due is not null",
    """
    create table contract (
        environment text not null references environment (name),
        version integer not null,
        phase text not null,
        sha256 text not null,
        document bytea not null,
        probes bytea not null,
        submitted_by text not null,
        at timestamptz not null,
        until timestamptz,
        primary key (environment, version)
    )
    """,
    # The latest result of each probe about each subject; the newest of a probe counts, the others are history.
    """
    create table evidence (
        environment text not null references environment (name),
        probe text not null,
        subject text not null,
        claim text not null,
        result text not null,
        proven double precision,
        claimed double precision,
        at timestamptz not null,
        expires timestamptz not null,
        detail text not null,
        primary key (environment, probe, subject)
    )
    """,
    # Accounts of the broker. `state`: wanted, ready, ending, ended.
    """
    create table account (
        kind text not null,
        name text not null,
        generation integer not null,
        state text not null,
        since timestamptz not null,
        primary key (kind, name)
    )
    """,
    # Users that were issued: their public keys, never their credentials.
    """
    create table account_user (
        public text primary key,
        kind text not null,
        account text not null,
        generation integer not null,
        name text not null,
        sha256 text not null,
        issued_by text not null,
        issued_at timestamptz not null,
        revoked_at timestamptz
    )
    """,
    "create index account_user_account on account_user (kind, account, generation)",
    """
    create table access (
        name text primary key,
        version integer not null,
        role text not null,
        projects text[] not null,
        token_sha256 text not null,
        issued_by text not null,
        at timestamptz not null,
        deleted boolean not null default false
    )
    """,
)


def upgrade() -> None:
    create_message_tables(op.execute)
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    for table in ("access", "account_user", "account", "evidence", "contract", "environment"):
        op.execute(f"drop table if exists {table}")
    drop_message_tables(op.execute)
