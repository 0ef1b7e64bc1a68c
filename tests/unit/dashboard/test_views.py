"""What pages show of the API's answers."""

from typing import Any

from landbridge_dashboard import places, views
from landbridge_dashboard.text import clock, duration, number, size

OPERATION: dict[str, Any] = {
    "operation": "11111111-2222-3333-4444-555555555555",
    "project": "retail-eu",
    "name": "train",
    "queue": "training",
    "phase": "completed",
    "environment": "onprem-a",
    "attempt": 2,
    "conditions": [],
    "acceptedAt": "2026-11-30T10:00:00Z",
    "changedAt": "2026-11-30T10:00:10Z",
    "endedAt": "2026-11-30T10:00:10Z",
    "attempts": [
        {"attempt": 1, "startedAt": "2026-11-30T10:00:01Z", "finishedAt": "2026-11-30T10:00:03Z", "outcome": "failed"},
        {
            "attempt": 2,
            "startedAt": "2026-11-30T10:00:05Z",
            "finishedAt": "2026-11-30T10:00:10Z",
            "outcome": "completed",
            "exitCode": 0,
            "metrics": {"auc": 0.81234},
            "outputs": {"model": {"connection": "models", "path": "a/b", "bytes": 2048}},
            "resolved": {"principal": "trainer", "costPerHour": 0.09, "currency": "EUR", "contractVersion": 3},
        },
    ],
}


def test_a_row_prefers_a_condition_over_a_waiting_reason() -> None:
    waiting = {**OPERATION, "phase": "queued", "waiting": {"condition": "not-now"}}
    assert views.operation_row(waiting)["condition"] == "not-now"
    held = {**waiting, "conditions": [{"type": "control-lost"}]}
    assert views.operation_row(held)["condition"] == "control-lost"


def test_facts_are_those_of_the_last_attempt_and_leave_out_what_is_unknown() -> None:
    found = dict(views.facts(OPERATION))
    assert found["Attempts"] == "2"
    assert found["Ran for"] == "5.0 s"
    assert found["Exit code"] == "0"
    assert found["Metric auc"] == "0.812"
    assert found["Cost"] == "0.09 EUR an hour"
    assert found["Contract"] == "version 3"
    assert "Signal" not in found
    assert "Image" not in found


def test_bars_of_attempts_lie_inside_the_picture_and_in_order() -> None:
    placements = [{**each, "offeredAt": each["startedAt"]} for each in OPERATION["attempts"]]
    found = views.gantt({**OPERATION, "placements": placements})
    assert found is not None
    bars = [bar for row in found["rows"] for bar in row["bars"]]
    assert [bar["tone"] for bar in bars] == ["line", "bad", "line", "good"]
    assert all(bar["x"] >= 0 and bar["x"] + bar["width"] <= 1000 for bar in bars)
    assert [bar["x"] for bar in bars] == sorted(bar["x"] for bar in bars)


def test_there_is_no_picture_before_anything_was_placed() -> None:
    assert views.gantt({**OPERATION, "placements": []}) is None


def test_a_verdict_shows_unknown_as_unknown_and_never_as_zero() -> None:
    explained = {
        "round": 1,
        "decision": {"environment": "a", "route": "preferred"},
        "waiting": None,
        "nearestMiss": None,
        "environments": [
            {
                "environment": "a",
                "eligible": True,
                "chosen": True,
                "score": 0.5,
                "violations": [],
                "measurements": [
                    {"preference": "cost", "value": 0.0, "unit": "EUR", "source": "none", "unknown": True, "weight": 1},
                    {
                        "preference": "delay",
                        "value": 0.0,
                        "unit": "s",
                        "source": "queue",
                        "unknown": False,
                        "weight": 1,
                    },
                ],
            }
        ],
    }
    shown = views.placement(explained)["environments"][0]["measurements"]
    assert [each["value"] for each in shown] == ["unknown", "0 s"]


def test_a_condition_in_the_timeline_names_itself_and_says_its_message_once() -> None:
    event = {
        "event": "condition",
        "at": "2026-11-30T10:00:00Z",
        "data": {"message": "why", "condition": {"type": "unplaceable", "status": True, "message": "why"}},
    }
    assert views.timeline([event])[0]["title"] == "Unplaceable holds"
    assert views.timeline([event])[0]["text"] == "why"
    waits = {"event": "waiting", "at": "2026-11-30T10:00:00Z", "data": {"condition": "unplaceable"}}
    assert views.timeline([waits])[0]["title"] == "Waits: unplaceable"


def test_an_environment_that_is_silent_says_since_when_and_what_becomes_of_its_work() -> None:
    item = {
        "environment": "edge",
        "link": {"state": "lost", "since": "2026-11-30T09:00:00Z"},
        "evidence": {"proven": 1, "failed": 0, "unknown": 1},
        "versions": [{"version": 4}],
    }
    card = places.environment_card(item)
    assert card["state"] == "control lost"
    assert "09:00:00" in card["note"]
    assert card["evidence_tone"] == "warn"


def test_a_draft_is_named_beside_the_contract_in_force_whose_claims_are_shown() -> None:
    versions = [
        {"version": 4, "phase": "active", "document": "spec: {workloads: [job]}"},
        {"version": 5, "phase": "draft", "document": "spec: {workloads: [service]}"},
    ]
    item = {"environment": "edge", "versions": versions}
    card = places.environment_card(item)
    assert (card["version"], card["versions"], card["beside"]) == (4, "v4 active, v5 draft", "v5 draft")
    assert ("Workloads", "job") in places.contract_facts(item)
    alone = places.environment_card({**item, "versions": versions[1:]})
    assert (alone["version"], alone["beside"]) == (5, "")


def test_failed_evidence_stands_first() -> None:
    claims = [{"claim": "a", "result": "proven"}, {"claim": "b", "result": "failed"}, {"claim": "c"}]
    rows = places.evidence_rows({"claims": claims})
    assert [(row["claim"], row["result"]) for row in rows] == [("b", "failed"), ("c", "unknown"), ("a", "proven")]


def test_times_and_numbers_read_well() -> None:
    assert clock("2026-11-30T10:21:05+02:00") == "30 Nov 08:21:05"
    assert clock(None) == "—"
    assert [duration(x) for x in (0.85, 12.34, 250, 11100)] == ["850 ms", "12.3 s", "4 min 10 s", "3 h 5 min"]
    assert [size(x) for x in (12, 2048, 3 * 1024**3)] == ["12 B", "2.0 KiB", "3.0 GiB"]
    assert [number(x) for x in (3, 3.0, 0.123456, 12345.6)] == ["3", "3", "0.123", "12346"]


def test_waiting_work_shows_its_turn_and_the_verdicts_of_now_and_placed_work_its_record() -> None:
    old = {"environment": "onprem-a", "eligible": False, "chosen": False, "violations": [], "measurements": []}
    new = {**old, "change": {"text": "ask for less"}, "violations": []}
    miss = {"environment": "onprem-a", "violations": [], "hope": "never", "changes": [{"text": "ask for less"}]}
    explained = {
        "round": 1,
        "waiting": {"reason": "quota", "message": "told before"},
        "decision": None,
        "environments": [old],
        "nearestMiss": {**miss, "changes": None},
        "now": {
            "queue": "training",
            "place": {"place": 2, "length": 5},
            "waits": {"reason": "concurrency", "message": "2 of 2 run"},
            "forecast": {"text": "its turn comes in about 4 min"},
            "environments": [new],
            "nearestMiss": miss,
        },
    }
    found = views.placement(explained)
    assert found["summary"] == "Waits: concurrency: 2 of 2 run. Nearest miss: onprem-a (0 rules broken, never)."
    assert found["turn"] == ["Place 2 of 5 in queue training.", "Its turn comes in about 4 min."]
    assert found["changes"] == ["ask for less"]
    assert found["environments"][0]["change"] == "ask for less"
    alone = views.placement({**explained, "now": None})
    assert alone["summary"].startswith("Waits: told before")
    assert (alone["turn"], alone["changes"]) == ([], [])
    placed = views.placement({**explained, "waiting": None, "decision": {"environment": "x", "route": "preferred"}})
    assert placed["turn"] == []
    assert placed["environments"][0]["change"] == ""
