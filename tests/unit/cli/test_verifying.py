"""`env verify --wait`: a table of what probes found, progress beside it, and an exit code."""

import json
from typing import Any

import pytest

from landbridge.cli import verifying
from support.fake_api import Asked, FakeApi
from unit.cli.conftest import Run

PATH = "/v1/environments/cluster-a/probes"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "POLL_S", 0.01)


def a_probe(name: str, kind: str, **found: Any) -> dict[str, Any]:
    plan = {"name": f"{name}@1", "claim": name, "kind": kind, "timeoutSeconds": 30, "required": True, "cost": "a pod"}
    return {**plan, **found}


def proven(at: str, **more: Any) -> dict[str, Any]:
    return {"result": "proven", "at": at, "secondsLeft": 240, "subject": "any node", "detail": "", **more}


RUNTIME = a_probe("runtime", "workload", **proven("T1"))
SPEED = a_probe(
    "bandwidth.models", "bandwidth", **proven("T1", proven=9.4e8, claimed=1e10, detail="read by one pod")
) | {"required": False}


def answers(api: FakeApi, *tables: list[dict[str, Any]]) -> None:
    """One table after the other; the last one stays."""
    left = [*tables]

    def next_table(_: Asked) -> tuple[int, Any]:
        table = left.pop(0) if len(left) > 1 else left[0]
        return 200, {"environment": "cluster-a", "probes": table}

    api["GET", PATH] = next_table
    api["POST", "/v1/environments/cluster-a/verify"] = (202, {})


def test_what_a_draft_claims_counts_only_when_it_is_asked_for(api: FakeApi, run: Run) -> None:
    shared, old = (
        {**RUNTIME, "versions": [1, 2]},
        a_probe("classes.gpu", "capacity", **proven("T1")) | {"versions": [1]},
    )
    new = a_probe("classes.gpu", "capacity", result="failed", at="T1", secondsLeft=9, detail="none") | {
        "name": "classes.gpu@2",
        "versions": [2],
    }
    tables = [[{**each, "at": at} for each in (shared, old, new)] for at in ("T1", "T2")]
    for flags, code, names in (
        ((), 0, ["classes.gpu@1", "runtime@1"]),
        (("--draft",), 1, ["classes.gpu@2", "runtime@1"]),
    ):
        left = [*tables]

        def table(_: Asked, left: list[Any] = left) -> tuple[int, Any]:
            probes = left.pop(0) if len(left) > 1 else left[0]
            return 200, {"environment": "cluster-a", "contractVersion": 1, "draftVersion": 2, "probes": probes}

        answers(api, [])
        api["GET", PATH] = table
        ran = run("env", "verify", "cluster-a", "--wait", "-o", "json", *flags)
        assert ran.code == code
        assert sorted(each["name"] for each in json.loads(ran.out)["probes"]) == names


def test_a_draft_that_is_not_there_and_one_that_is_alone_are_told(api: FakeApi, run: Run) -> None:
    answers(api, [RUNTIME])
    ran = run("env", "verify", "cluster-a", "--draft")
    assert ran.code == 2
    assert "expected a draft of its contract, found none" in ran.err
    alone = {
        "environment": "cluster-a",
        "contractVersion": 0,
        "draftVersion": 1,
        "probes": [{**RUNTIME, "versions": [1]}],
    }
    api["GET", PATH] = (200, alone)
    ran = run("env", "verify", "cluster-a", "--wait")
    assert (ran.code, "only a draft" in ran.err) == (2, True)


def test_all_that_is_proven_exits_with_0_and_progress_goes_to_standard_error(api: FakeApi, run: Run) -> None:
    again = [{**RUNTIME, "at": "T2"}, SPEED]
    answers(api, [RUNTIME, SPEED], [RUNTIME, SPEED], again, [again[0], {**SPEED, "at": "T2"}])
    ran = run("env", "verify", "cluster-a", "--suite", "full", "--wait")
    assert ran.code == 0, ran
    assert ran.err.splitlines() == ["[1/2] runtime@1: proven", "[2/2] bandwidth.models@1: proven"]
    assert "bandwidth.models@1  proven" in ran.out
    assert "940Mbit/s of 10Gbit/s; read by one pod " in ran.out
    assert "any node" in ran.out
    assert ran.out.endswith("environment cluster-a: all 2 probes proven\n")


def test_measurements_do_not_count_for_claims_alone(api: FakeApi, run: Run) -> None:
    answers(api, [RUNTIME, SPEED], [{**RUNTIME, "at": "T2"}, SPEED])
    ran = run("env", "verify", "cluster-a", "--wait")
    assert (ran.code, "bandwidth" in ran.out) == (0, False)


def test_what_is_not_proven_exits_with_1_and_is_named(api: FakeApi, run: Run) -> None:
    failed = {**RUNTIME, "at": "T2", "result": "failed", "detail": "ErrImagePull"}
    answers(api, [RUNTIME], [failed])
    ran = run("env", "verify", "cluster-a", "--wait", "--suite", "full")
    assert ran.code == 1
    assert "not proven: runtime@1" in ran.out
    assert "ErrImagePull" in ran.out


def test_a_probe_that_does_not_answer_in_time_exits_with_5(api: FakeApi, run: Run) -> None:
    answers(api, [RUNTIME, a_probe("clock", "clock")])
    ran = run("env", "verify", "cluster-a", "--wait", "--timeout", "50ms")
    assert ran.code == 5
    assert "no answer in time: runtime@1, clock@1 (is its dispatcher connected?)" in ran.out


def test_programs_get_the_same_as_json(api: FakeApi, run: Run) -> None:
    answers(api, [RUNTIME], [{**RUNTIME, "at": "T2"}])
    ran = run("env", "verify", "cluster-a", "--wait", "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    assert '"proven": true' in ran.out


def test_nobody_at_the_address_exits_with_6(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("LANDBRIDGE_TOKEN", "t")
    monkeypatch.setattr("landbridge.cli.running.RETRY_S", 0.1)
    assert run("env", "verify", "cluster-a", "--wait").code == 6


def test_a_wrong_timeout_is_a_wrong_command_line(api: FakeApi, run: Run) -> None:
    ran = run("env", "verify", "cluster-a", "--wait", "--timeout", "soon")
    assert (ran.code, api.asked) == (2, [])
    assert "--timeout" in ran.err
