"""Secrets of a running instance stand in their own private files and nowhere else, in no spelling."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest

from fixtures.instance import EXAMPLES, Instance
from support.processes import processes_of

pytestmark = pytest.mark.xdist_group("instance")

# Where secrets are kept; whoever can read these files may have them.
KEPT = ("keys", "creds", "tokens")
SERVERS = frozenset({"nats", "postgres", "redis"})  # not ours, and no HTTP
SEED = re.compile(rb"\bS[OAUCNX][A-Z2-7]{56}\b")


def secrets_of(instance: Instance) -> set[bytes]:
    """The administrator's token, a token made now, and every private key."""
    made = instance.json("access", "create", "canary", "--role", "submitter", "--project", "analytics")
    found = {instance.token.encode(), str(made["token"]).encode()}
    for folder in KEPT:
        for path in (instance.data / folder).rglob("*"):
            if path.is_file():
                found |= set(SEED.findall(path.read_bytes()))
    return found


def spellings(secret: bytes) -> Iterator[bytes]:
    yield secret
    yield secret.hex().encode()
    yield quote(secret, safe="").encode()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for shift in range(3):  # inside a longer text its letters depend on where it begins
            yield encode(b"x" * shift + secret)[4 * (shift > 0) : -4]


def elsewhere(instance: Instance) -> Iterator[Path]:
    for path in instance.data.rglob("*"):
        inside = path.relative_to(instance.data).parts
        if path.is_file() and inside[0] not in KEPT and not path.name.endswith(".creds"):
            yield path


def test_no_secret_is_in_a_log_a_stream_a_table_a_metric_or_a_command_line(instance: Instance) -> None:
    instance.run("submit", str(EXAMPLES / "operations" / "3-sales-summary.yaml"), "--wait")
    wanted = {spelling for secret in secrets_of(instance) for spelling in spellings(secret)}
    assert len(wanted) > 50
    needle = re.compile(b"|".join(re.escape(spelling) for spelling in sorted(wanted, key=len, reverse=True)))

    found = [str(path) for path in elsewhere(instance) if needle.search(path.read_bytes())]
    assert found == []
    for name, service in instance.state["services"].items():
        if service.get("port") and name not in SERVERS:
            metrics = httpx2.get(f"http://127.0.0.1:{service['port']}/metrics", timeout=10)
            assert not needle.search(metrics.content)
    commands = processes_of(instance.data).values()
    assert commands
    assert not any(needle.search(command.encode()) for command in commands)
