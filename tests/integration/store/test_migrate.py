"""Migrations: once, together, with a clear word when they are missing."""

import asyncio
from pathlib import Path

import pytest

from landbridge.store import Database, SchemaOutOfDateError, StoreError
from landbridge.store import migrate as migrations
from landbridge.store.migrate import Migrations, check_head, head_of, migrate_folder, schema_of

CREATE = "create table t (n integer)"


def step(revision: str, down_revision: str | None, *statements: str) -> str:
    body = "".join(f"    op.execute({statement!r})\n" for statement in statements)
    head = f'"""A step."""\nfrom alembic import op\n\nrevision: str = "{revision}"\ndown_revision = {down_revision!r}\n'
    return f"{head}\n\ndef upgrade():\n{body}"


FIRST = step("0001", None, CREATE)
SECOND = step("0002", "0001", "insert into t values (1)")
BROKEN = step("0003", "0002", "insert into t values (2)", CREATE)


def write(folder: Path, *texts: str) -> Migrations:
    versions = folder / "migrations" / "versions"
    versions.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(texts, 1):
        (versions / f"{number:04d}_step.py").write_text(text)
    return Migrations("ranking", "ranking", versions)


async def rows(dsn: str) -> list[int]:
    db = await Database.open(dsn, "ranking")
    try:
        return [row[0] for row in await db.fetch("select n from t order by n")]
    finally:
        await db.close()


async def test_steps_run_once_even_when_several_processes_migrate(postgres_dsn: str, tmp_path: Path) -> None:
    found = write(tmp_path, FIRST, SECOND)
    assert await asyncio.gather(*(migrate_folder(postgres_dsn, found) for _ in range(3))) == ["0002"] * 3
    assert await rows(postgres_dsn) == [1]


async def test_a_release_with_a_further_step_continues(postgres_dsn: str, tmp_path: Path) -> None:
    await migrate_folder(postgres_dsn, write(tmp_path, FIRST))
    assert await rows(postgres_dsn) == []
    await migrate_folder(postgres_dsn, write(tmp_path, FIRST, SECOND))
    assert await rows(postgres_dsn) == [1]


async def test_a_step_that_fails_leaves_nothing_half_done(postgres_dsn: str, tmp_path: Path) -> None:
    await migrate_folder(postgres_dsn, write(tmp_path, FIRST, SECOND))
    with pytest.raises(StoreError, match="already exists"):
        await migrate_folder(postgres_dsn, write(tmp_path, FIRST, SECOND, BROKEN))
    assert await rows(postgres_dsn) == [1]


async def test_a_service_says_which_command_is_missing(
    postgres_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = write(tmp_path, FIRST)
    monkeypatch.setattr(migrations, "migrations_of", lambda _: found)
    db = await Database.open(postgres_dsn, "ranking")
    with pytest.raises(SchemaOutOfDateError, match=r"found none.*python -m landbridge.store.migrate ranking"):
        await check_head(db, "ranking")
    await migrate_folder(postgres_dsn, found)
    await check_head(db, "ranking")
    write(tmp_path, FIRST, SECOND)
    with pytest.raises(SchemaOutOfDateError, match="needs revision 0002, found 0001"):
        await check_head(db, "ranking")
    await db.execute("update ranking.alembic_version set version_num = '0099'")
    with pytest.raises(SchemaOutOfDateError, match=r"newer release.*up to 0002, found 0099.*start the newer release"):
        await check_head(db, "ranking")
    await db.close()


def test_two_newest_revisions_are_refused(tmp_path: Path) -> None:
    found = write(tmp_path, FIRST, FIRST.replace("0001", "0009"))
    with pytest.raises(StoreError, match=r"exactly one newest revision; found \['0001', '0009'\]"):
        head_of(found.folder)


def test_schemas_are_named_after_services() -> None:
    assert schema_of("contract-verifier") == "contract_verifier"
    assert schema_of("coordinator") == "dispatch"


async def test_migrating_tells_when_postgres_is_away(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not available"):
        await migrate_folder("postgresql://landbridge@127.0.0.1:1/x", write(tmp_path, FIRST))
