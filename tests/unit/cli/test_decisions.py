"""Decisions of people: shown before they are made, with a reason, and only with a consent."""

from collections.abc import Callable
from typing import Any

import pytest

from support.fake_api import Asked, FakeApi

from .conftest import Run

ID = "6f1c2d3e-0000-5000-8000-00000000000a"
TEXT = "Environment onprem-a is declared off: 1 operation(s) there are freed; its old grants are void."
CHANGE = {
    "operation": ID,
    "name": "sums",
    "environment": "onprem-a",
    "epoch": "1.1",
    "policy": "continue",
    "phase": "running",
    "becomes": "judged and placed again",
}
ENTRY = {
    "environment": "onprem-a",
    "operation": ID,
    "epoch": "1.2",
    "slot": "running",
    "why": "unknown here",
    "state": "open",
    "known": False,
    "foundAt": "2026-11-30T10:00:00Z",
}


def deciding(api: FakeApi, path: str, **more: Any) -> list[Asked]:
    """The instance answers a decision and its preview; the real ones are returned."""
    made: list[Asked] = []

    def answer(asked: Asked) -> tuple[int, Any]:
        preview = "dryRun=true" in asked.query
        if not preview:
            made.append(asked)
        return 200, {"text": [TEXT], "changes": [CHANGE], "dryRun": preview, **more}

    api["POST", path] = answer
    return made


DEAD = ("env", "declare-dead", "onprem-a")
MOVE = ("move", ID, "--to", "cloud-b")
OVERRIDE = ("release", ID, "--override")
LIFT = ("hold", "lift")
ADOPT = ("quarantine", "adopt", ID[:8])
STOP = ("quarantine", "stop", ID[:8])
PAUSE = ("queue", "pause", "training")
RESUME = ("queue", "resume", "training")
DRAIN = ("queue", "drain", "training")
FORCE = ("override", ID, "--to", "cloud-b")
PAUSE_CLASS = ("env", "pause", "onprem-a", "--class", "gpu-80gb")
RESUME_NODES = ("env", "resume", "onprem-a", "--node-selector", "pool=gpu")
TO_QUEUE = ("queue", "move", ID, "--to", "fast")
TO_CLASS = ("queue", "prioritise", ID, "--class", "urgent")
PATHS = {
    DEAD: "/v1/environments/onprem-a/declare-dead",
    MOVE: f"/v1/operations/{ID}/move",
    OVERRIDE: f"/v1/operations/{ID}/override",
    LIFT: "/v1/expiry/lift",
    ADOPT: f"/v1/quarantine/onprem-a/{ID}/1.2/adopt",
    STOP: f"/v1/quarantine/onprem-a/{ID}/1.2/stop",
    PAUSE: "/v1/ranking/queues/training/pause",
    RESUME: "/v1/ranking/queues/training/resume",
    DRAIN: "/v1/ranking/queues/training/drain",
    FORCE: f"/v1/ranking/operations/{ID}/override",
    PAUSE_CLASS: "/v1/environments/onprem-a/control/pause",
    RESUME_NODES: "/v1/environments/onprem-a/control/resume",
    TO_QUEUE: f"/v1/operations/{ID}/queue",
    TO_CLASS: f"/v1/operations/{ID}/queue",
}
every_decision = pytest.mark.parametrize("words", PATHS, ids=lambda words: " ".join(words[:2]))


@pytest.fixture
def made(api: FakeApi) -> Callable[[tuple[str, ...]], list[Asked]]:
    api["GET", f"/v1/operations/{ID}"] = (200, {"operation": ID, "phase": "running"})
    api["GET", "/v1/quarantine"] = (200, {"items": [ENTRY]})
    return lambda words: deciding(api, PATHS[words])


Made = Callable[[tuple[str, ...]], list[Asked]]


@every_decision
def test_a_dry_run_shows_what_would_change_and_changes_nothing(run: Run, made: Made, words: tuple[str, ...]) -> None:
    decided = made(words)
    ran = run(*words, "--dry-run")
    assert ran.code == 0, ran.err
    assert TEXT in ran.out
    assert "judged and placed again" in ran.out
    assert decided == []


@every_decision
def test_a_decision_needs_a_reason(run: Run, made: Made, words: tuple[str, ...]) -> None:
    decided = made(words)
    ran = run(*words, "--yes")
    assert ran.code == 2
    assert "--reason TEXT is needed" in ran.err
    assert decided == []


@every_decision
def test_without_a_terminal_to_ask_it_takes_a_yes(run: Run, made: Made, words: tuple[str, ...]) -> None:
    decided = made(words)
    ran = run(*words, "--reason", "fire")
    assert (ran.code, decided) == (2, [])
    assert TEXT in ran.out
    assert "--yes" in ran.err


@every_decision
def test_a_decision_is_made_with_its_reason(run: Run, made: Made, words: tuple[str, ...]) -> None:
    decided = made(words)
    ran = run(*words, "--reason", "fire in the hall", "--yes")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[-1] == "done"
    assert [asked.json["reason"] for asked in decided] == ["fire in the hall"]


def test_who_is_asked_and_says_no_changes_nothing(run: Run, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    decided = made(DEAD)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda _: False)
    ran = run(*DEAD, "--reason", "fire")
    assert (ran.code, decided) == (1, [])
    assert "nothing was changed" in ran.err


def test_a_move_names_its_target_or_takes_it_back(run: Run, made: Made) -> None:
    decided = made(MOVE)
    assert run("move", ID).code == 2
    assert run("move", ID, "--to", "b", "--anywhere").code == 2
    assert run("move", ID, "--anywhere", "--reason", "changed my mind", "--yes").code == 0
    assert [asked.json["environment"] for asked in decided] == [""]


def test_a_move_warns_of_what_stands_against_its_target(run: Run, api: FakeApi, made: Made) -> None:
    made(MOVE)
    broken = {"constraint": "residency", "wanted": "EU", "found": "US"}
    judged = {"environments": [{"environment": "cloud-b", "eligible": False, "violations": [broken]}]}
    api["GET", f"/v1/operations/{ID}/explanation"] = (200, judged)
    ran = run(*MOVE, "--dry-run")
    assert "cloud-b was not eligible" in ran.out
    assert "residency: wanted EU, found US" in ran.out


def test_release_without_override_says_what_else_frees_it(run: Run, api: FakeApi, made: Made) -> None:
    decided = made(OVERRIDE)
    said = "Unknown since 30 Nov 10:00:00 UTC: environment onprem-a is not heard."
    api["GET", f"/v1/operations/{ID}/ownership"] = (200, {"phase": "running", "text": [said]})
    ran = run("release", ID, "--reason", "x", "--yes")
    assert (ran.code, decided) == (2, [])
    assert said in ran.out
    assert "--override" in ran.err


def test_a_refused_decision_is_told(run: Run, api: FakeApi, made: Made) -> None:
    made(MOVE)
    detail = f"operation {ID}: it is declared must-finish; wait for its end, or cancel it with force"
    api["POST", PATHS[MOVE]] = (409, {"title": "Cannot be moved", "status": 409, "detail": detail})
    ran = run(*MOVE, "--reason", "x", "--yes")
    assert ran.code == 1
    assert "must-finish" in ran.err


def test_what_fits_several_slots_in_quarantine_is_asked_for_more(run: Run, api: FakeApi) -> None:
    api["GET", "/v1/quarantine"] = (200, {"items": [ENTRY, {**ENTRY, "epoch": "1.3"}]})
    ran = run(*STOP, "--reason", "x", "--yes")
    assert ran.code == 2
    assert "add --env and --epoch" in ran.err


def test_quarantine_lists_each_slot_with_why(run: Run, api: FakeApi) -> None:
    api["GET", "/v1/quarantine"] = (200, {"items": [ENTRY]})
    ran = run("quarantine", "list")
    for word in (ID, "onprem-a", "1.2", "running", "unknown here"):
        assert word in ran.out


def test_an_empty_quarantine_says_so_beside_standard_output(run: Run, api: FakeApi) -> None:
    api["GET", "/v1/quarantine"] = (200, {"items": []})
    ran = run("quarantine", "list")
    assert "no unknown work" in ran.out + ran.err


def test_the_hold_is_shown_with_what_waits_for_it(run: Run, api: FakeApi) -> None:
    waiting = {
        "operation": ID,
        "name": "sums",
        "environment": "onprem-a",
        "policy": "stop-after-grace",
        "text": "waits",
    }
    told = {"held": True, "silent": ["onprem-a", "cloud-b"], "heard": [], "waiting": [waiting], "text": ["Held since"]}
    api["GET", "/v1/expiry"] = (200, told)
    ran = run("hold", "show")
    for word in ("Held since", "onprem-a, cloud-b", "waits"):
        assert word in ran.out


def test_reconciliation_tells_what_was_found(run: Run, api: FakeApi) -> None:
    found = {
        "environment": "onprem-a",
        "at": "2026-11-30T10:00:00Z",
        "term": 7,
        "restored": True,
        "slots": 4,
        "adopted": 2,
        "settledOrStopped": 1,
        "missing": [],
        "quarantined": [{"operation": ID, "epoch": "1.2"}],
    }
    before = {"at": "2026-11-30T09:00:00Z", "term": 6, "slots": 35, "adopted": 30, "settledOrStopped": 5, "missing": []}
    api["GET", "/v1/environments/onprem-a/reconciliation"] = (200, {**found, "earlier": [before]})
    ran = run("env", "reconciliation", "onprem-a")
    for word in ("term 7", "lost or repeated records", "Adopted", ID, "landbridge quarantine list"):
        assert word in ran.out
    [row] = [line.split() for line in ran.out.splitlines() if " 35 " in line]
    assert row[-6:] == ["6", "35", "30", "5", "0", "0"]


# -- a cut ------------------------------------------------------------------------------------------------------------


def test_a_lost_environment_says_since_when_and_what_becomes_of_its_work(run: Run, api: FakeApi) -> None:
    lost = {"environment": "onprem-a", "link": {"state": "lost", "since": "2026-11-30T10:00:00Z"}, "evidence": {}}
    told = {
        "text": ["Not heard since 30 Nov 10:00:00 UTC: nothing new starts there."],
        "operations": [
            {"operation": ID, "name": "sums", "notBefore": "", "text": "declared continue: it runs on"},
            {
                "operation": ID,
                "name": "tune",
                "notBefore": "2026-11-30T10:01:00Z",
                "text": "declared stop-after-grace: it stops",
            },
        ],
    }
    api["GET", "/v1/environments/onprem-a"] = (200, lost)
    api["GET", "/v1/environments/onprem-a/disconnection"] = (200, told)
    ran = run("get", "environment", "onprem-a")
    for word in ("Not heard since 30 Nov 10:00:00 UTC", "it runs on", "2026-11-30T10:01:00Z"):
        assert word in ran.out


def test_an_operation_out_of_reach_says_unknown_since(run: Run, api: FakeApi) -> None:
    row = {"operation": ID, "phase": "running", "conditions": [{"type": "control-lost"}], "environment": "onprem-a"}
    api["GET", f"/v1/operations/{ID}"] = (200, row)
    said = "Unknown since 30 Nov 10:00:00 UTC: environment onprem-a is not heard."
    api["GET", f"/v1/operations/{ID}/ownership"] = (200, {"text": [said]})
    ran = run("get", "operation", ID)
    assert said in ran.out
