"""`landbridge site`: an environment asked on its own machine."""

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from landbridge.client.site import short_path

from .conftest import Run

ID = "6f1c2d3e-0000-5000-8000-00000000000a"
Answers = dict[str, Callable[[dict[str, Any]], dict[str, Any]]]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, Answers]]:
    """The directory of an environment whose dispatcher answers from a table."""
    home = tmp_path / ".landbridge" / "environments" / "onprem-a"
    home.mkdir(parents=True)
    (home / "environment.json").write_text("{}")
    answers: Answers = {}

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            request = json.loads(self.rfile.readline())
            known = answers.get(request["do"])
            answer = known(request) if known else {"error": "no"}
            self.wfile.write(json.dumps(answer).encode() + b"\n")

    with socketserver.UnixStreamServer(short_path(home / "site.sock"), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield home, answers
        server.shutdown()
        thread.join()


def test_the_only_environment_here_needs_no_name(run: Run, site: tuple[Path, Answers]) -> None:
    site[1]["status"] = lambda _: {"ok": True, "link": {"state": "lost", "leaseUsable": False}, "slotsUsed": 2}
    ran = run("site", "status")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines() == [
        *("Environment        onprem-a", "Link state         lost", "Link lease usable  no", "Slots used         2")
    ]


def test_what_is_here_is_listed(run: Run, site: tuple[Path, Answers]) -> None:
    slot = {"operation": ID, "project": "retail", "state": "running", "policy": "continue", "epoch": "1.2"}
    site[1]["operations"] = lambda request: {"ok": True, "operations": [slot] if request["all"] else []}
    assert "nothing runs here" in run("site", "operations").err
    assert ID in run("site", "operations", "--all").out


def test_stopping_sends_reason_and_grace(run: Run, site: tuple[Path, Answers]) -> None:
    asked: list[dict[str, Any]] = []

    def stop(request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request)
        return {"ok": True, "operation": ID}

    site[1]["stop"] = stop
    ran = run("site", "stop", "6f1c", "--reason", "smoke", "--grace", "1m")
    assert ran.out == f"{ID}  asked to stop\n"
    assert asked == [{"do": "stop", "operation": "6f1c", "reason": "smoke", "graceSeconds": 60, "force": False}]


def test_a_refusal_is_told_in_the_sites_words(run: Run, site: tuple[Path, Answers]) -> None:
    site[1]["stop"] = lambda _: {"error": "operation x is declared must-finish; stop it with force"}
    ran = run("site", "stop", ID)
    assert ran.code == 1
    assert "onprem-a: operation x is declared must-finish" in ran.err


def test_logs_are_read_to_their_end(run: Run, site: tuple[Path, Answers]) -> None:
    pieces = {0: ("one\n", 4, False), 4: ("two\n", 8, True)}

    def logs(request: dict[str, Any]) -> dict[str, Any]:
        text, following, end = pieces[request["offset"]]
        return {"ok": True, "text": text, "nextOffset": following, "end": end}

    site[1]["logs"] = logs
    assert run("site", "logs", ID, "--follow").out == "one\ntwo\n"


def test_several_environments_need_a_name(run: Run, site: tuple[Path, Answers]) -> None:
    other = site[0].parent / "cloud-b"
    other.mkdir()
    (other / "environment.json").write_text("{}")
    ran = run("site", "status")
    assert ran.code == 2
    assert "cloud-b, onprem-a" in ran.err
    silent = run("site", "status", "--environment", "cloud-b")
    assert silent.code == 1
    assert "its dispatcher does not answer" in silent.err


def test_where_none_has_joined_that_is_said(run: Run) -> None:
    ran = run("site", "operations")
    assert ran.code == 2
    assert "no environment has joined on this machine" in ran.err
