"""`plan`, and what `explain` says of now: read in five seconds, and by scripts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.fake_api import FakeApi
from unit.cli.conftest import Run

ID = "0d6f3c1e-6f4b-5d0c-9a53-3f1a2b4c5d6e"
DOCUMENT = """
apiVersion: landbridge/v1
kind: Operation
metadata: {name: churn, project: retail-eu}
spec:
  type: job
  queue: training
  command: [python3, train.py]
  resources: {requests: {cpu: "1", memory: 1Gi}}
  lifecycle: {expectedDuration: 1m, timeout: 1h, disconnection: {policy: continue}}
"""
HARDWARE = {
    "constraint": "hardware",
    "reason": "count-exceeds-capacity",
    "kind": "never",
    "wanted": "8 of class gpu-80gb",
    "found": "4 claimed",
}
CHANGE = {
    "text": "ask for at most 4 devices instead of 8",
    "path": "spec.resources.accelerator.count",
    "value": "4",
}
ELIGIBLE = {
    "environment": "onprem-a",
    "contractVersion": 2,
    "eligible": True,
    "violations": [],
    "change": None,
    "changes": [],
    "chosen": True,
    "rank": 1,
    "score": 0.75,
    "measurements": [
        {"preference": "cost", "value": 0.00005, "unit": "EUR", "source": "s", "normalised": 0.5, "weight": 1.0}
    ],
}
MISSED = {
    **ELIGIBLE,
    "environment": "cloud-b",
    "eligible": False,
    "violations": [HARDWARE],
    "change": CHANGE,
    "changes": [CHANGE],
    "chosen": False,
    "rank": None,
    "score": None,
    "measurements": [],
}
GOOD = {
    "name": "churn",
    "project": "retail-eu",
    "queue": "training",
    "eligible": True,
    "condition": "",
    "likely": {"environment": "onprem-a", "equals": [], "route": "preferred", "full": []},
    "environments": [ELIGIBLE, MISSED],
    "nearestMiss": None,
    "place": {"place": 1, "length": 1},
    "waits": None,
    "forecast": {
        "text": "it would be placed at once; onprem-a then starts it in about 12 s (mean of the last 20 starts)"
    },
}
BAD = {
    **GOOD,
    "eligible": False,
    "condition": "unplaceable",
    "likely": None,
    "environments": [MISSED],
    "nearestMiss": {"environment": "cloud-b", "hope": "never", "violations": [HARDWARE], "changes": [CHANGE]},
    "forecast": {"text": "it cannot start as things stand: somebody has to change something"},
}
WAITS = {
    **GOOD,
    "waits": {"reason": "concurrency", "message": "queue training runs 2 of at most 2 operations"},
    "place": {"place": 3, "length": 7},
    "forecast": {"text": "its turn comes in about 4 min (2 min to 9 min, by how long the last 20 operations lasted)"},
}


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "operation.yaml"
    path.write_text(DOCUMENT)
    return str(path)


def test_the_first_lines_say_where_and_when_and_the_table_why_not_elsewhere(api: FakeApi, run: Run, file: str) -> None:
    api["POST", "/v1/plan"] = (200, GOOD)
    ran = run("plan", file)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].split() == ["Operation", "churn", "project", "retail-eu,", "queue", "training"]
    assert lines[1].endswith("onprem-a, the only one that can run it")
    assert "in about 12 s (mean of the last 20 starts)" in lines[2]
    assert "wanted 8 of class gpu-80gb, found 4 claimed (never)" in ran.out
    assert "-> would fit: ask for at most 4 devices instead of 8" in ran.out
    assert "0.00005 EUR → 0.50" in ran.out
    assert api.asked[0].body == DOCUMENT.encode()


@pytest.mark.parametrize(("likely", "told"), [
    (
        {"environment": "cloud-b", "route": "overflow", "full": ["onprem-a/gpu-48gb", "onprem-a/gpu-80gb"]},
        "cloud-b, because onprem-a (class gpu-48gb), onprem-a (class gpu-80gb) has no room",
    ),
    (
        {"environment": "onprem-a", "servedBy": "gpu-80gb", "route": "preferred", "full": ["onprem-a/gpu-48gb"]},
        "onprem-a (class gpu-80gb), the only one that can run it; onprem-a (class gpu-48gb) has no room",
    ),
], ids=["another environment", "another class"])  # fmt: skip
def test_what_has_no_room_is_named_as_people_write_it(
    api: FakeApi, run: Run, file: str, likely: dict[str, Any], told: str
) -> None:
    api["POST", "/v1/plan"] = (200, {**GOOD, "likely": {"equals": [], **likely}})
    assert run("plan", file).out.splitlines()[1].endswith(told)


def test_what_none_can_run_ends_with_three_and_names_the_change(api: FakeApi, run: Run, file: str) -> None:
    api["POST", "/v1/plan"] = (200, BAD)
    ran = run("plan", file)
    assert ran.code == 3
    assert "nowhere: no environment can run it as things stand" in ran.out
    assert "Nearest: cloud-b; would fit after one change: ask for at most 4 devices instead of 8" in ran.out


def test_what_has_to_wait_its_turn_is_no_failure(api: FakeApi, run: Run, file: str) -> None:
    api["POST", "/v1/plan"] = (200, WAITS)
    ran = run("plan", file)
    assert ran.code == 0
    assert "concurrency: queue training runs 2 of at most 2 operations" in ran.out
    assert "3 of 7 in queue training" in ran.out
    assert "2 min to 9 min" in ran.out


def test_the_command_line_changes_what_is_planned(api: FakeApi, run: Run, file: str) -> None:
    api["POST", "/v1/plan"] = (200, GOOD)
    run("plan", file, "--queue", "urgent", "--set", "resources.requests.cpu=4", "--preset", "big@2", "-p", "other")
    document = api.asked[0].json
    assert document["metadata"]["project"] == "other"
    assert (document["spec"]["queue"], document["spec"]["presets"]) == ("urgent", ["big@2"])
    assert document["spec"]["resources"]["requests"]["cpu"] == 4


def test_an_invalid_one_ends_with_two_and_does_not_hide_the_others(api: FakeApi, run: Run, tmp_path: Path) -> None:
    problems = [{"path": "spec.queue", "code": "unknown-queue", "message": "no queue", "suggestion": "name one"}]

    def answer(asked: Any) -> tuple[int, Any]:
        if b"\n---\n" in asked.body:
            return 200, {"items": [{"name": "churn", "project": "retail-eu", "problems": problems}, BAD]}
        return 422, {"title": "Refused", "problems": problems}

    api["POST", "/v1/plan"] = answer
    for name, text in (("a.yaml", DOCUMENT.replace("training", "nosuch")), ("b.yaml", DOCUMENT)):
        (tmp_path / name).write_text(text)
    ran = run("plan", str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml"))
    assert ran.code == 2
    assert "spec.queue: no queue; name one" in ran.err
    assert "nowhere" in ran.out
    assert run("plan", str(tmp_path / "a.yaml")).code == 2
    (tmp_path / "c.yaml").write_text(DOCUMENT.replace("type: job", "type: jobb"))
    ran = run("plan", str(tmp_path / "c.yaml"))
    assert ran.code == 2
    assert "job" in ran.err


def test_several_are_asked_about_together_and_a_line_for_each_stands_first(
    api: FakeApi, run: Run, tmp_path: Path
) -> None:
    likely = {"environment": "cloud-b", "servedBy": "gpu-80gb", "equals": [], "route": "preferred", "full": []}
    elsewhere = {**GOOD, "name": "serve", "likely": likely}
    api["POST", "/v1/plan"] = (200, {"items": [WAITS, elsewhere, BAD]})
    names = [str(tmp_path / name) for name in ("a.yaml", "b.yaml", "c.yaml")]
    for name in names:
        Path(name).write_text(DOCUMENT)
    ran = run("plan", *names)
    assert ran.code == 3
    [asked] = api.asked
    assert asked.body == b"\n---\n".join([DOCUMENT.encode()] * 3)
    lines = ran.out.splitlines()
    assert lines[0].split() == ["OPERATION", "GOES", "TO", "WAITS", "FOR", "WHEN"]
    assert lines[1].startswith("churn      onprem-a                  concurrency  its turn comes in about 4 min")
    assert lines[2].startswith("serve      cloud-b (class gpu-80gb)               it would be placed at once")
    assert "nowhere" in lines[3]
    assert "unplaceable" in lines[3]
    assert [line for line in lines if line.startswith("Goes to")][1].endswith("the only one that can run it")
    found = json.loads(run("plan", *names, "-o", "json").out)
    assert [each["name"] for each in found] == ["churn", "serve", "churn"]


def test_programs_get_the_answer_as_it_came(api: FakeApi, run: Run, file: str) -> None:
    api["POST", "/v1/plan"] = (200, BAD)
    ran = run("plan", file, "-o", "json")
    assert ran.code == 3
    assert json.loads(ran.out) == BAD
    api["POST", "/v1/plan"] = (200, {"items": [BAD, GOOD]})
    assert json.loads(run("plan", file, file, "-o", "json").out) == [BAD, GOOD]


def test_a_narrow_terminal_shows_it_whole(
    api: FakeApi, run: Run, file: str, on_a_terminal: Callable[[int], None]
) -> None:
    api["POST", "/v1/plan"] = (200, BAD)
    on_a_terminal(80)
    ran = run("plan", file)
    assert all(len(line) <= 80 for line in ran.out.splitlines())
    assert "4 devices instead of 8" in " ".join(ran.out.split())


SHARE = {"preference": "reliability", "unit": "share of attempts", "value": 0.005, "normalised": 0.38, "weight": 1.0}
PRICE = {"preference": "transfer-time", "unit": "s", "value": 12.5, "normalised": 0.75, "weight": 1.0}


@pytest.mark.parametrize(("width", "shown"), [(60, 1), (80, 2), (140, 3), (200, 5)])
def test_scores_are_shown_whole_for_as_many_environments_as_fit(
    api: FakeApi, run: Run, file: str, on_a_terminal: Callable[[int], None], width: int, shown: int
) -> None:
    names = [f"site-{number}" for number in range(5)]
    sites = [{**ELIGIBLE, "environment": name, "measurements": [SHARE, PRICE]} for name in names]
    api["POST", "/v1/plan"] = (200, {**GOOD, "environments": sites})
    on_a_terminal(width)
    ran = run("plan", file)
    assert all(len(line) <= width for line in ran.out.splitlines())
    [line] = [line for line in ran.out.splitlines() if line.startswith("reliability")]
    assert line.count("0.5 % of attempts → 0.38") == shown
    [line] = [line for line in ran.out.splitlines() if line.startswith("transfer-time")]
    assert line.count("12.5 s → 0.75") == shown
    assert ("more; -o json has all" in ran.out) is (shown < len(names))


def test_each_broken_rule_begins_a_line_of_its_own(
    api: FakeApi, run: Run, file: str, on_a_terminal: Callable[[int], None]
) -> None:
    second = {**HARDWARE, "constraint": "residency", "wanted": "jurisdictions EU", "found": "jurisdictions US"}
    api["POST", "/v1/plan"] = (200, {**BAD, "environments": [{**MISSED, "violations": [HARDWARE, second]}]})
    on_a_terminal(80)
    told = run("plan", file).out.splitlines()
    assert [line.split("- ")[1].split(":")[0] for line in told if " - " in line] == ["hardware", "residency"]


# -- explain ----------------------------------------------------------------------------------------------------------


def explained(api: FakeApi, **more: Any) -> None:
    found = {"operation": ID, "phase": "queued", "environments": [], "decision": None, **more}
    api["GET", f"/v1/operations/{ID}/explanation"] = (200, found)
    api["GET", f"/v1/operations/{ID}"] = (200, {"operation": ID, "name": "churn", "project": "retail-eu"})


def test_waiting_work_is_explained_as_it_stands_now(api: FakeApi, run: Run) -> None:
    told = {"reason": "no-eligible-environment", "message": "an old message", "condition": "not-now"}
    explained(api, waiting=told, environments=[MISSED], now=WAITS)
    ran = run("explain", ID)
    assert ran.code == 0
    assert "concurrency: queue training runs 2 of at most 2 operations" in ran.out
    assert "an old message" not in ran.out
    assert "3 of 7 in queue training" in ran.out
    assert "about 4 min" in ran.out


def test_unplaceable_work_names_the_change_and_its_reason(api: FakeApi, run: Run) -> None:
    told = {
        "reason": "incompatible",
        "message": "no environment is eligible; nearest is cloud-b",
        "condition": "unplaceable",
    }
    explained(api, waiting=told, environments=[MISSED], now=BAD)
    ran = run("explain", ID)
    assert "unplaceable: no environment can run it as things stand" in ran.out
    assert "Nearest: cloud-b; would fit after one change: ask for at most 4 devices instead of 8" in ran.out


def test_placed_work_keeps_its_record_and_tells_what_differs_today(api: FakeApi, run: Run) -> None:
    decision = {"environment": "onprem-a", "route": "preferred", "at": "2026-11-30T10:00:00Z", "policyVersion": "p@1"}
    today = {**ELIGIBLE, "eligible": False, "violations": [HARDWARE]}
    explained(
        api,
        phase="running",
        decision=decision,
        environments=[ELIGIBLE, MISSED],
        now={**BAD, "environments": [today, MISSED]},
    )
    ran = run("explain", ID)
    assert "Judged again now:" in ran.out
    assert "onprem-a: never, was eligible (hardware: wanted 8 of class gpu-80gb" in ran.out
    assert "cloud-b: never, was" not in ran.out
    explained(api, phase="running", decision=decision, environments=[ELIGIBLE, MISSED], now=GOOD)
    assert "Judged again" not in run("explain", ID).out


def test_where_ranking_is_away_what_is_recorded_is_shown_and_why_it_is_not_newer(api: FakeApi, run: Run) -> None:
    explained(
        api,
        waiting={"reason": "quota", "message": "told before"},
        environments=[MISSED],
        now=None,
        nowMissing="no replica of ranking is in charge",
    )
    ran = run("explain", ID)
    assert "quota: told before" in ran.out
    assert "no replica of ranking is in charge" in ran.out


def test_a_refused_submission_is_explained_with_every_problem(api: FakeApi, run: Run) -> None:
    problem = {
        "path": "spec.queue",
        "code": "unknown-queue",
        "message": "there is no queue x",
        "suggestion": "use y",
        "line": 7,
    }
    refusal = {"id": "0199-abc", "submission": "batch-7", "source": "app", "project": "p", "at": "2026-11-30T10:00:00Z"}
    api["GET", "/v1/operations"] = (200, {"items": []})
    api["GET", "/v1/refusals"] = (200, {"items": [{**refusal, "problems": [problem]}]})
    for name in ("0199", "batch-7"):
        ran = run("explain", name)
        assert ran.code == 0
        assert "spec.queue line 7" in ran.out
        assert "there is no queue x" in ran.out
        assert "use y" in ran.out
    assert run("explain", "nothing").code == 1


# -- replay-decision --------------------------------------------------------------------------------------------------


def replayed(api: FakeApi, *same: bool | None) -> None:
    checks = [
        {
            "what": f"part {n}",
            "recorded": {"a": n},
            "again": {"a": 9} if each is False else {"a": n},
            "same": each,
            "how": "x",
        }
        for n, each in enumerate(same)
    ]
    found = {
        "operation": ID,
        "round": 1,
        "decision": "d" * 32,
        "at": "2026-11-30T10:00:00Z",
        "environment": "onprem-a",
        "route": "preferred",
        "policyVersion": "p@1",
        "inputs": {"eligibility": {"catalogue": "4"}, "ranking": {"observed": "7"}},
        "checks": checks,
        "same": False not in same,
        "complete": None not in same,
        "notRecorded": ["evidence as it was"],
    }
    api["GET", f"/v1/operations/{ID}/replay"] = (200, found)


def test_a_decision_that_gives_the_same_again_ends_with_nought(api: FakeApi, run: Run) -> None:
    replayed(api, True, True)
    ran = run("replay-decision", ID)
    assert ran.code == 0
    assert "The recorded inputs give the recorded decision." in ran.out
    assert "Not recorded: evidence as it was." in ran.out
    assert "observed 7" in ran.out


def test_what_is_not_kept_any_more_is_said_so_and_is_no_failure(api: FakeApi, run: Run) -> None:
    replayed(api, True, None)
    ran = run("replay-decision", ID, "--round", "1")
    assert ran.code == 0
    assert "the rest is not kept any more" in ran.out
    assert api.asked[0].query == "round=1"


def test_a_decision_that_differs_ends_with_one_and_shows_both(api: FakeApi, run: Run) -> None:
    replayed(api, True, False)
    ran = run("replay-decision", ID)
    assert ran.code == 1
    assert 'part 1: recorded {"a": 1}, again {"a": 9}' in ran.out


def test_a_decisions_own_id_will_do(api: FakeApi, run: Run) -> None:
    replayed(api, True)
    api["GET", f"/v1/ranking/decisions/{'d' * 32}"] = (200, {"operations": [{"operation": ID}]})
    assert run("replay-decision", "d" * 32).code == 0
    api["GET", f"/v1/ranking/decisions/{'e' * 32}"] = (200, {"operations": []})
    ran = run("replay-decision", "e" * 32)
    assert ran.code == 1
    assert "name the operation and its --round" in ran.err
