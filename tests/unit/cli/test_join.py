"""`env join --leaf`: the files of a site with its own NATS."""

import stat
from pathlib import Path

from landbridge.bus.jwt import key_from_seed
from support.fake_api import FakeApi

from .conftest import Run

JOIN = ("POST", "/v1/environments/edge-1/join")
ANSWER = {"environment": "edge-1", "creds": "the leaf's credentials", "leafUrl": "nats-leaf://hub.example.org:7422"}


def test_the_files_of_a_site_with_its_own_nats_are_written(api: FakeApi, run: Run, tmp_path: Path) -> None:
    api[JOIN] = (200, ANSWER)
    ran = run("env", "join", "edge-1", "--leaf", "--into", "site")

    assert ran.code == 0, ran.err
    assert api.asked[-1].json == {"replace": False, "leaf": True}
    place = tmp_path / "site"
    assert sorted(path.name for path in place.iterdir()) == [
        *("dispatcher.env", "dispatcher.nkey", "leaf.creds", "nats.conf"),
    ]
    for secret in ("dispatcher.nkey", "leaf.creds"):
        assert stat.S_IMODE((place / secret).stat().st_mode) == 0o600
    config = (place / "nats.conf").read_text()
    assert '"nats-leaf://hub.example.org:7422"' in config
    assert key_from_seed((place / "dispatcher.nkey").read_text()).public in config
    assert "LANDBRIDGE_NATS_DOMAIN=site-edge-1" in (place / "dispatcher.env").read_text()
    assert "nats-server --config nats.conf" in ran.out


def test_joining_again_replaces_credentials_and_keeps_what_people_change(
    api: FakeApi, run: Run, tmp_path: Path
) -> None:
    api[JOIN] = (200, ANSWER)
    run("env", "join", "edge-1", "--leaf")
    place = tmp_path / "edge-1"
    seed = (place / "dispatcher.nkey").read_text()
    (place / "nats.conf").write_text("changed by hand")
    api[JOIN] = (200, {**ANSWER, "creds": "newer"})
    ran = run("env", "join", "edge-1", "--leaf", "--replace")

    assert api.asked[-1].json == {"replace": True, "leaf": True}
    assert (place / "leaf.creds").read_text() == "newer"
    assert (place / "nats.conf").read_text() == "changed by hand"
    assert (place / "dispatcher.nkey").read_text() == seed
    assert "stays as it is" in ran.out


def test_a_refusal_is_told_and_nothing_is_written(api: FakeApi, run: Run, tmp_path: Path) -> None:
    api[JOIN] = (409, {"title": "Not offered", "detail": "this instance takes no sites with their own NATS"})
    ran = run("env", "join", "edge-1", "--leaf")

    assert ran.code != 0
    assert "takes no sites with their own NATS" in ran.err
    assert not (tmp_path / "edge-1").exists()
