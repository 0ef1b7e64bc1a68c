"""Migrations: one Postgres schema per service, alembic revisions beside the service, one lock for all.

`python -m landbridge.store.migrate [SERVICE …]` brings the named services' schemas (default: all) to their newest
revision. The DSN comes from `--dsn` or LANDBRIDGE_POSTGRES_DSN. Services only check (`check_head`), they never migrate.
"""

import argparse
import asyncio
import importlib.util
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from landbridge.store.database import Database, translate
from landbridge.store.errors import SchemaOutOfDateError, StoreError

_PACKAGES = {
    "intake": "landbridge_intake",
    "eligibility": "landbridge_eligibility",
    "ranking": "landbridge_ranking",
    "coordinator": "landbridge_dispatch",
    "contract-verifier": "landbridge_contract_verifier",
    "lineage": "landbridge_lineage",
    "alerting": "landbridge_alerting",
    "dashboard": "landbridge_dashboard",
}
_SCHEMAS = {"coordinator": "dispatch"}
_LOCK_KEY = 0x6C616E6462726467  # "landbrdg"
_REVISION = re.compile(r"^(revision|down_revision)\b[^=\n]*=\s*(?:\"([^\"]*)\"|'([^']*)'|None)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Migrations:
    """Where a service's revisions lie and which schema they build."""

    service: str
    schema: str
    folder: Path


def schema_of(service: str) -> str:
    """Return the Postgres schema of a service."""
    return _SCHEMAS.get(service, service.replace("-", "_"))


def migrations_of(service: str) -> Migrations | None:
    """Return a service's migrations, or None if it keeps nothing in Postgres. Raises StoreError for an unknown name."""
    package = _PACKAGES.get(service)
    if package is None:
        raise StoreError(f"No service is named {service!r}; the services are {', '.join(_PACKAGES)}.")
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "migrations" / "versions"
    return Migrations(service, schema_of(service), folder) if folder.is_dir() else None


def head_of(folder: Path) -> str:
    """Return the one newest revision in a folder, read from the files' text. Raises StoreError unless it is one."""
    heads = _named(folder, "revision") - _named(folder, "down_revision")
    if len(heads) != 1:
        raise StoreError(f"{folder} must have exactly one newest revision; found {sorted(heads) or 'none'}.")
    return heads.pop()


def revisions_of(folder: Path) -> set[str]:
    """Return all revisions that this release knows."""
    return _named(folder, "revision")


def _named(folder: Path, kind: str) -> set[str]:
    return {
        double or single
        for path in sorted(folder.glob("*.py"))
        for key, double, single in _REVISION.findall(path.read_text(encoding="utf-8"))
        if key == kind and (double or single)
    }


async def check_head(db: Database, service: str) -> None:
    """Raise SchemaOutOfDateError unless the service's schema is at this release's newest revision.

    Raises UnavailableError when Postgres does not answer.
    """
    migrations = migrations_of(service)
    if migrations is None:
        return
    wanted = head_of(migrations.folder)
    present = await db.fetchval("select to_regclass($1) is not null", f"{migrations.schema}.alembic_version")
    # The schema's name is one of ours, never input.
    current = f"select version_num from {migrations.schema}.alembic_version"  # noqa: S608
    found = await db.fetchval(current) if present else None
    if found and found not in revisions_of(migrations.folder):
        raise SchemaOutOfDateError(
            f"Postgres schema {migrations.schema} of {service} was migrated by a newer release: this one knows "
            f"revisions up to {wanted}, found {found}. "
            "Next step: start the newer release, or restore a backup from before it"
        )
    if found != wanted:
        raise SchemaOutOfDateError(
            f"Postgres schema {migrations.schema} of {service}: this release needs revision {wanted}, "
            f"found {found or 'none'}. Next step: python -m landbridge.store.migrate {service}"
        )


async def migrate(dsn: str, service: str) -> str | None:
    """Bring one service's schema to its newest revision; return that revision, or None if it has no migrations.

    Waits for another process that migrates. Raises StoreError with the reason if a statement fails; alembic runs a
    revision in one transaction, so nothing is left half done.
    """
    migrations = migrations_of(service)
    return None if migrations is None else await migrate_folder(dsn, migrations)


async def migrate_folder(dsn: str, migrations: Migrations) -> str:
    """Bring `migrations.schema` to the newest revision in `migrations.folder`; see `migrate`."""
    try:
        guard = await asyncpg.connect(dsn, timeout=10)
        try:
            await guard.execute("select pg_advisory_lock($1)", _LOCK_KEY)
            await guard.execute(f"create schema if not exists {migrations.schema}")
            await _run_alembic(dsn, migrations)
        finally:
            await guard.close()
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise translate(error) or StoreError(str(error)) from error
    return head_of(migrations.folder)


async def _run_alembic(dsn: str, migrations: Migrations) -> None:
    # Imported here: only the migrating process pays for SQLAlchemy, services merely compare a revision.
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory
    from sqlalchemy import Connection
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    async def connect() -> Any:
        return await asyncpg.connect(dsn, timeout=10, server_settings={"search_path": migrations.schema})

    config = Config()
    script = ScriptDirectory(str(migrations.folder.parent), version_locations=[str(migrations.folder)])

    def steps(revision: Any, _: MigrationContext) -> Any:
        return script._upgrade_revs("head", revision)  # noqa: SLF001 (what alembic's own `upgrade` command calls)

    def run(connection: Connection) -> None:
        environment.configure(connection=connection, version_table_schema=migrations.schema)
        with environment.begin_transaction():
            environment.run_migrations()

    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, poolclass=NullPool)
    try:
        with EnvironmentContext(config, script, fn=steps, destination_rev="head") as environment:
            async with engine.connect() as connection:
                await connection.run_sync(run)
                await connection.commit()
    except DBAPIError as error:
        raise StoreError(f"Migrating schema {migrations.schema} failed: {error.orig}") from error
    finally:
        await engine.dispose()


async def migrate_all(dsn: str, services: list[str]) -> dict[str, str]:
    """Migrate the named services (none named: all) in order; return the revision of each that has migrations."""
    reached: dict[str, str] = {}
    for service in services or list(_PACKAGES):
        revision = await migrate(dsn, service)
        if revision is not None:
            reached[service] = revision
    return reached


def main() -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m landbridge.store.migrate", description="Update Postgres.")
    parser.add_argument("services", nargs="*", metavar="SERVICE", help=f"of {', '.join(_PACKAGES)}; none means all")
    parser.add_argument("--dsn", default=os.environ.get("LANDBRIDGE_POSTGRES_DSN", ""))
    arguments = parser.parse_args()
    if not arguments.dsn:
        sys.stderr.write("Which Postgres? Set LANDBRIDGE_POSTGRES_DSN or give --dsn postgresql://user@host/database\n")
        return 2
    try:
        reached = asyncio.run(migrate_all(arguments.dsn, arguments.services))
    except StoreError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for service, revision in reached.items():
        sys.stdout.write(f"{service}: {schema_of(service)} is at {revision}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
