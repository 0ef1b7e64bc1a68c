"""Every rule: what makes it fire, what does not, and that equal facts give equal findings."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from landbridge_alerting.rules import RULES, Finding
from landbridge_alerting.world import DeadLetters, Limits, Link, Proof, Starts, Unowned, Waiting, World

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
LIMITS = Limits()


def ago(**parts: float) -> datetime:
    return NOW - timedelta(**parts)


def found(rule: str, world: World) -> list[Finding]:
    return list(RULES[rule](world, NOW, LIMITS))


def waits(reason: str = "at-capacity", *, eligible: bool = True, minutes: float = 20, queue: str = "batch") -> Waiting:
    return Waiting("retail", queue, reason, eligible, ago(minutes=minutes), 7)


def test_an_aged_eligible_queue_is_one_alert_whatever_the_reasons() -> None:
    world = World(waiting=(waits(), waits("quota", minutes=30), waits(queue="other", minutes=9)))
    [finding] = found("aged-queue", world)
    assert finding.labels == {"project": "retail", "queue": "batch"}
    assert "30 min" in finding.summary
    assert "14 operations" in finding.description
    assert "quota" in finding.description


def test_what_no_environment_can_run_is_not_an_aged_queue() -> None:
    world = World(waiting=(waits("incompatible", eligible=False),))
    assert found("aged-queue", world) == []
    [finding] = found("no-eligible-environment", world)
    assert finding.labels == {"project": "retail", "reason": "incompatible"}


def test_a_used_up_quota_is_told_by_queue_and_limit() -> None:
    world = World(waiting=(waits("quota"), waits("concurrency", minutes=5), waits("at-capacity")))
    [finding] = found("quota-exhausted", world)
    assert finding.labels == {"project": "retail", "queue": "batch", "reason": "quota"}


@pytest.mark.parametrize(
    ("state", "seconds", "severities"),
    [
        ("connected", 9999, []),
        ("never", 9999, []),
        ("lost", 29, []),
        ("lost", 31, ["critical"]),
        ("reconciling", 60, []),
        ("reconciling", 301, ["warning"]),
    ],
)
def test_an_environment_is_missed_after_a_while(state: str, seconds: int, severities: list[str]) -> None:
    world = World(links={"onprem-a": Link(state, ago(seconds=seconds))})
    assert [finding.severity for finding in found("lost-environment", world)] == severities


def test_failed_dispatch_needs_a_number_and_a_share() -> None:
    def world(placed: int, failed: int) -> World:
        return World(starts={"onprem-a": Starts(placed, failed, {"image-not-found": failed})})

    assert found("failed-dispatch", world(4, 2)) == []
    assert found("failed-dispatch", world(1000, 50)) == []
    [finding] = found("failed-dispatch", world(10, 5))
    assert "50%" in finding.summary
    assert "image-not-found (5)" in finding.description
    assert len(found("failed-dispatch", world(0, 3))) == 1  # placed before the window


def test_dead_letters_are_told_by_service() -> None:
    world = World(dead_letters={"ranking": DeadLetters(2, "PermanentFailure: no"), "intake": DeadLetters(0, "")})
    [finding] = found("dead-letters", world)
    assert finding.labels == {"service": "ranking"}
    assert "PermanentFailure: no" in finding.description


def test_evidence_that_expired_is_an_alert_only_while_the_environment_is_heard() -> None:
    proofs = {
        "onprem-a": (Proof("runtime", "proven", ago(seconds=90)), Proof("clock", "proven", ago(seconds=10))),
        "cloud-b": (Proof("runtime", "proven", ago(hours=2)),),
    }
    links = {"onprem-a": Link("connected", ago(hours=9)), "cloud-b": Link("lost", ago(hours=2))}
    [finding] = found("expired-evidence", World(proofs=proofs, links=links))
    assert finding.labels == {"environment": "onprem-a"}
    assert "1 claim" in finding.summary
    assert finding.description.startswith("runtime;")


def test_a_broken_connection_is_critical_where_it_is_proven_nowhere() -> None:
    def world(elsewhere: Proof) -> World:
        broken = Proof("connections.models", "failed", ago(minutes=-5), "no such bucket")
        return World(proofs={"onprem-a": (broken,), "cloud-b": (elsewhere,)})

    holds = Proof("connections.models", "proven", ago(minutes=-5))
    [finding] = found("unavailable-connection", world(holds))
    assert (finding.severity, finding.labels) == ("warning", {"connection": "models"})
    assert "no such bucket" in finding.description
    for useless in (Proof("connections.models", "proven", ago(minutes=5)), Proof("runtime", "proven", ago(minutes=-5))):
        assert [finding.severity for finding in found("unavailable-connection", world(useless))] == ["critical"]


def test_what_the_broker_advises_is_an_alert() -> None:
    [finding] = found(
        "broker-advisory", World(advisories={"OPERATIONS/lineage": "consumer deleted: OPERATIONS/lineage"})
    )
    assert finding.labels == {"about": "OPERATIONS/lineage"}


def test_each_server_that_acknowledges_before_data_is_on_disk_is_an_alert() -> None:
    one, other = found("broker-sync", World(late_servers=frozenset({"nats-b", "nats-a"})))
    assert (one.labels, other.labels) == ({"server": "nats-a"}, {"server": "nats-b"})
    assert one.severity == "critical"
    assert "sync_interval: always" in one.description


def test_drift_is_critical_where_work_runs_that_nobody_accounts_for() -> None:
    world = World(drifts={"a": {"missing-work": 2}, "b": {"contract-version": 1, "runs-elsewhere": 1}, "c": {}})
    mild, grave = found("drift", world)
    assert (mild.labels, mild.severity) == ({"environment": "a"}, "warning")
    assert (grave.labels, grave.severity) == ({"environment": "b"}, "critical")
    assert "2 placements" in grave.summary
    assert "1 contract-version, 1 runs-elsewhere" in grave.description


def test_an_empty_world_has_no_findings() -> None:
    assert [finding for rule in RULES for finding in found(rule, World())] == []


def test_fingerprints_depend_on_rule_and_labels_alone() -> None:
    one = Finding("r", "warning", {"a": "1", "b": "2"}, "text")
    assert one.fingerprint == Finding("r", "critical", {"b": "2", "a": "1"}, "other").fingerprint
    assert one.fingerprint != Finding("r", "warning", {"a": "12", "b": ""}, "text").fingerprint
    assert one.fingerprint != Finding("s", "warning", {"a": "1", "b": "2"}, "text").fingerprint


def test_every_rule_is_documented() -> None:
    text = (Path(__file__).parents[3] / "docs" / "alerts.md").read_text()
    assert [name for name in RULES if f"| `{name}` |" not in text] == []


def test_charges_that_nothing_holds_are_told_with_why_and_what_may_be_done() -> None:
    back, kept = Unowned("o1", "ended", True), [Unowned(f"k{number}", "undecided", False) for number in range(5)]
    given, held = found("unowned-charges", World(unowned={"a": (back,), "b": (back, *kept), "c": ()}))
    assert (given.labels, held.labels) == ({"environment": "a"}, {"environment": "b"})
    assert "1 charge held by no placement" in given.summary
    assert given.description.startswith("1 ended: given back.")
    assert held.description.startswith("1 ended, 5 undecided. Not given back")
    assert "k0, k1, k2 and 2 more" in held.description
    assert "`landbridge cancel ID` frees it" in held.description
