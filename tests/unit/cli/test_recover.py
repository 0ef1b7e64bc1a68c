"""Recovery by command: diagnosis, the steps against it, and only with a consent."""

from typing import Any

import pytest

from support.fake_api import Asked, FakeApi

from .conftest import Run

RESTORED = {"code": "centre-restored", "text": "a: hold lease terms that were never granted", "step": "generation"}
LOST = {"code": "stream-lost", "text": "the stream OPERATIONS was lost", "step": "republish"}
SERVICES = ("intake", "eligibility", "ranking", "coordinator", "contract-verifier")


def centre(api: FakeApi, *findings: dict[str, str], projected: int = 5, differing: int = 0) -> list[str]:
    """An instance with findings; return what it was told to do, as it happens."""
    done: list[str] = []

    def doing(name: str, **body: Any) -> Any:
        def answer(asked: Asked) -> tuple[int, Any]:
            if "dryRun=true" not in asked.query:
                done.append(name)
            return 200, body

        return answer

    diagnosis = {"generation": 1, "recovering": False, "operations": 5, "logged": 40, "stored": 60}
    api["GET", "/v1/recovery"] = (200, {**diagnosis, "findings": list(findings)})
    api["GET", "/v1/overview"] = (200, {"phases": {"running": projected}})
    lineage = {"equal": not differing, "differing": differing, "operations": 5, "repaired": differing}
    api["POST", "/v1/recovery/lineage"] = doing("lineage", **lineage)
    api["POST", "/v1/recovery/generation"] = doing("generation", text=["Generation 2 begins"])
    for service in SERVICES:
        api["POST", f"/v1/recovery/republish/{service}"] = doing(service, events={"operation": 3})
    return done


def test_a_healthy_centre_needs_nothing(run: Run, api: FakeApi) -> None:
    done = centre(api)
    ran = run("recover")
    assert (ran.code, done) == (0, [])
    assert "Nothing is found wrong" in ran.out


def test_every_step_is_shown_before_any_is_made(run: Run, api: FakeApi) -> None:
    done = centre(api, LOST, RESTORED, differing=2)
    ran = run("recover", "--dry-run")
    assert (ran.code, done) == (0, [])
    assert ran.out.index("[generation]") < ran.out.index("[republish]") < ran.out.index("[lineage]")
    assert "coordinator: 3 operation to publish again" in ran.out


@pytest.mark.parametrize("words", [("--yes",), ("--reason", "restored")])
def test_without_reason_or_consent_nothing_is_done(run: Run, api: FakeApi, words: tuple[str, ...]) -> None:
    done = centre(api, RESTORED)
    assert run("recover", *words).code == 2
    assert done == []


def test_steps_are_made_in_their_order(run: Run, api: FakeApi) -> None:
    done = centre(api, LOST, RESTORED, differing=2)
    ran = run("recover", "--reason", "restored the database", "--yes")
    assert ran.code == 0, ran.err
    assert done == ["generation", *SERVICES, "lineage"]


def test_a_lost_projection_is_noticed_by_what_it_lacks(run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("landbridge.cli.recover._BEHIND_S", 0.0)
    done = centre(api, projected=0)
    ran = run("recover", "--reason", "the table was dropped", "--yes")
    assert "lineage shows 0 operations, the coordinator has 5" in ran.out
    assert done == list(SERVICES)


def test_an_unknown_step_names_the_known_ones(run: Run, api: FakeApi) -> None:
    ran = run("recover", "--step", "pray")
    assert ran.code == 2
    assert "generation, republish, lineage" in ran.err
