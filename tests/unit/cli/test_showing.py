"""Lists, explanations, events and logs, for people and for programs."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from support.fake_api import Asked, FakeApi
from unit.cli.samples import ID, row

from .conftest import Run


def test_lists_for_programs_have_whole_values_in_fixed_columns(run: Run, api: FakeApi) -> None:
    api["GET", "/v1/operations"] = (200, {"items": [row()], "cursor": ""})
    ran = run("get", "operations", "--phase", "running", "--limit", "5")
    head, line = ran.out.splitlines()
    assert head.split() == ["ID", "NAME", "PROJECT", "QUEUE", "PHASE", "ENVIRONMENT", "ATTEMPT", "AGE", "WHY"]
    assert line.split()[:7] == [ID, "sums", "analytics", "batch", "running", "onprem-a", "1"]
    assert "phase=running" in api.asked[0].query
    assert "\x1b" not in ran.out


def test_lists_as_json_are_what_the_instance_said(run: Run, api: FakeApi) -> None:
    api["GET", "/v1/operations"] = (200, {"items": [row()], "cursor": ""})
    assert json.loads(run("get", "ops", "-o", "json").out) == [row()]
    assert yaml.safe_load(run("get", "ops", "-o", "yaml").out) == [row()]


@pytest.mark.parametrize(
    ("kind", "path", "told"),
    [
        ("operations", "/v1/operations", "no operations yet; submit one"),
        ("environments", "/v1/environments", "no environments yet; register one"),
        ("presets", "/v1/documents/preset", "no preset documents yet; make one"),
    ],
)
def test_an_empty_list_says_what_to_do_beside_standard_output(
    run: Run, api: FakeApi, kind: str, path: str, told: str
) -> None:
    api["GET", path] = (200, {"items": [], "cursor": ""})
    ran = run("get", kind)
    assert (ran.code, ran.out) == (0, "")
    assert told in ran.err


EXPLANATION = {
    "operation": ID,
    "phase": "running",
    "round": 1,
    "decision": {"environment": "onprem-a", "route": "preferred", "at": "2026-11-30T10:00:00Z", "policyVersion": "3"},
    "waiting": None,
    "environments": [
        {
            "environment": "onprem-a",
            "contractVersion": 1,
            "eligible": True,
            "chosen": True,
            "score": 0.8125,
            "violations": [],
            "measurements": [
                {
                    "preference": "cost",
                    "value": 0.09,
                    "unit": "EUR/h",
                    "source": "contract",
                    "normalised": 0.5,
                    "weight": 2,
                },
                {"preference": "carbon", "value": None, "unknown": True, "normalised": 0.0, "weight": 1},
            ],
        },
        {
            "environment": "cloud-b",
            "contractVersion": 4,
            "eligible": False,
            "chosen": False,
            "score": None,
            "violations": [
                {"constraint": "jurisdictions", "kind": "never", "wanted": "EU", "found": "US"},
                {"constraint": "evidence", "kind": "misconfigured", "wanted": "proven within 1h", "found": "3h old"},
            ],
            "measurements": [],
        },
    ],
    "nearestMiss": None,
}


def explaining(api: FakeApi) -> None:
    api["GET", f"/v1/operations/{ID}/explanation"] = (200, EXPLANATION)
    api["GET", f"/v1/operations/{ID}"] = (200, row())


def test_explain_tells_each_rule_with_wanted_found_and_kind(run: Run, api: FakeApi) -> None:
    explaining(api)
    ran = run("explain", ID)
    assert ran.code == 0, ran.err
    assert "preferred: no environment ranked higher" in ran.out
    assert "jurisdictions: wanted EU, found US (never)" in ran.out
    assert "evidence: wanted proven within 1h, found 3h old (misconfigured)" in ran.out
    assert "0.812" in ran.out
    assert "0.09 EUR/h → 0.50" in ran.out
    assert "unknown → 0.00" in ran.out


@pytest.mark.parametrize("width", [80, 140])
def test_explain_fits_a_terminal(run: Run, api: FakeApi, on_a_terminal: Callable[[int], None], width: int) -> None:
    explaining(api)
    on_a_terminal(width)
    ran = run("explain", ID)
    lines = ran.out.splitlines()
    assert max(map(len, lines)) <= width
    assert sum(line.startswith("cloud-b") for line in lines) == 1
    assert "(misconfigured)" in ran.out.replace("\n", " ")


def test_events_are_listed_with_their_reasons(run: Run, api: FakeApi) -> None:
    data = {"phase": "retrying", "environment": "onprem-a", "attempt": 1, "reason": "exit-code", "message": "7"}
    items = [{"id": "1", "event": "retrying", "opSeq": 4, "at": "2026-11-30T10:00:00Z", "data": data}]
    api["GET", f"/v1/operations/{ID}/events"] = (200, {"items": items})
    ran = run("events", ID)
    assert "2026-11-30T10:00:00Z    4  retrying  onprem-a" in ran.out
    assert "exit-code: 7" in ran.out


def test_following_events_as_json_is_one_line_each(run: Run, api: FakeApi) -> None:
    items: list[dict[str, Any]] = [
        {"id": name, "event": name, "opSeq": 1, "at": "", "data": {}} for name in ("accepted", "completed")
    ]
    api["GET", f"/v1/operations/{ID}/events"] = (200, {"items": items})
    lines = run("events", ID, "--follow", "-o", "json").out.splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["accepted", "completed"]


def test_logs_are_read_to_their_end(run: Run, api: FakeApi) -> None:
    def logs(asked: Asked) -> tuple[int, Any]:
        if "offset=0" in asked.query:
            return 200, {"text": "one\n", "nextOffset": 4, "end": False}
        return 200, {"text": "two\n", "nextOffset": 8, "end": True}

    api["GET", f"/v1/operations/{ID}/logs"] = logs
    assert run("logs", ID).out == "one\ntwo\n"


def test_a_shortened_id_is_enough(run: Run, api: FakeApi) -> None:
    api["GET", "/v1/operations"] = (200, {"items": [row()], "cursor": ""})
    api["POST", f"/v1/operations/{ID}/cancel"] = (202, {})
    ran = run("cancel", "6f1c", "--reason", "wrong data")
    assert (ran.code, ran.out) == (0, f"{ID}  asked to stop\n")
    assert api.asked[-1].json == {"reason": "wrong data"}
