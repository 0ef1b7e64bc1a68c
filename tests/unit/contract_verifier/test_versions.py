"""Versions and their phases."""

from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from landbridge.schema.wire.command_v1 import Probe
from landbridge_contract_verifier.records import Record
from landbridge_contract_verifier.versions import Phase, Version, due_step, register, superseded

NOW = datetime(2026, 11, 30, tzinfo=UTC)
RETIRING = timedelta(minutes=5)
PROBE = Probe(name="runtime@1", claim="runtime", kind="workload")
LINK = Probe(name="links.x@1", claim="links.x", kind="link")


def version(number: int, phase: Phase = Phase.ACTIVE, until: datetime | None = None, *, overlap: str = "") -> Version:
    document = {"spec": {"rollout": {"overlap": overlap}} if overlap else {}}
    return Version(
        version=number,
        phase=phase,
        sha256=f"hash-{number}",
        document=msgspec.json.encode(document),
        probes=(PROBE, LINK),
        at=NOW,
        until=until,
    )


def proof(result: str = "proven", lasts_s: float = 60) -> dict[str, Record]:
    expires = NOW + timedelta(seconds=lasts_s)
    return {"runtime@1": Record(probe="runtime@1", claim="runtime", result=result, subject="", at=NOW, expires=expires)}


def test_the_first_version_is_active_and_later_ones_are_canaries() -> None:
    assert register([], 3, "h").phase is Phase.ACTIVE
    assert register([version(3)], 4, "h").phase is Phase.CANARY
    assert register([version(3, Phase.RETIRED)], 4, "h").phase is Phase.ACTIVE


def test_a_version_never_changes_and_numbers_only_grow() -> None:
    assert register([version(3)], 3, "hash-3").phase is None
    other, older = register([version(3)], 3, "other").problem, register([version(3)], 2, "h").problem
    assert (other and other.code, older and older.code) == ("version-is-fixed", "version-too-low")
    assert other is not None
    assert "version 4" in other.suggestion


def test_going_back_to_a_version_that_is_over_is_refused_with_the_way_to_do_it() -> None:
    """Sent again it would change nothing, and whoever means to go back would wait for it in silence."""
    for phase in (Phase.RETIRING, Phase.RETIRED):
        problem = register([version(1, phase), version(2)], 1, "hash-1").problem
        assert problem is not None
        assert (problem.code, problem.suggestion) == ("version-is-over", "register the change as version 3")
        assert f"version 1 is {phase.value}" in problem.message
    assert register([version(1, Phase.RETIRED), version(2)], 2, "hash-2").problem is None


def test_a_proven_canary_becomes_active_and_the_old_one_retires() -> None:
    known = [version(1), version(2, Phase.CANARY, NOW + timedelta(hours=1))]
    assert due_step(known, {}, NOW, RETIRING) is None
    step = due_step(known, proof(), NOW, RETIRING)
    assert step is not None
    assert step.changes == {1: (Phase.RETIRING, NOW + RETIRING), 2: (Phase.ACTIVE, None)}


def test_a_version_may_let_the_one_before_stay_active_beside_it_for_a_while() -> None:
    later = NOW + timedelta(hours=1)
    step = due_step([version(1), version(2, Phase.CANARY, later, overlap="24h")], proof(), NOW, RETIRING)
    assert step is not None
    gives_way = NOW + timedelta(hours=24)
    assert step.changes == {1: (Phase.ACTIVE, gives_way), 2: (Phase.ACTIVE, None)}
    known = [version(1, until=gives_way), version(2, overlap="24h")]
    assert due_step(known, proof(), gives_way - timedelta(seconds=1), RETIRING) is None
    step = due_step(known, proof(), gives_way, RETIRING)
    assert step is not None
    assert step.changes == {1: (Phase.RETIRING, gives_way + RETIRING)}


def test_a_third_version_ends_the_first_of_two_that_are_active() -> None:
    known = [version(1, until=NOW + timedelta(hours=9)), version(2), version(3, Phase.CANARY, NOW, overlap="1h")]
    step = due_step(known, proof(), NOW, RETIRING)
    assert step is not None
    assert step.changes == {
        1: (Phase.RETIRING, NOW + RETIRING),
        2: (Phase.ACTIVE, NOW + timedelta(hours=1)),
        3: (Phase.ACTIVE, None),
    }


def test_expired_failed_or_unknown_proof_does_not_help_a_canary() -> None:
    known = [version(1), version(2, Phase.CANARY, NOW + timedelta(hours=1))]
    for evidence in (proof(lasts_s=0), proof("failed"), proof("unknown")):
        assert due_step(known, evidence, NOW, RETIRING) is None


def test_a_canary_that_ran_out_of_time_is_retired_with_its_reasons() -> None:
    step = due_step([version(1), version(2, Phase.CANARY, NOW)], proof("failed"), NOW, RETIRING)
    assert step is not None
    assert (step.changes, step.failed) == ({2: (Phase.RETIRED, None)}, 2)
    assert [problem.path for problem in step.problems] == ["spec.runtime"]


def test_a_newer_canary_ends_an_older_one() -> None:
    assert superseded([version(1), version(2, Phase.CANARY)], Phase.CANARY) == {2: (Phase.RETIRED, None)}


def test_a_draft_is_kept_beside_what_takes_work_and_becomes_a_canary_once_it_is_registered() -> None:
    known = [version(1), version(2, Phase.CANARY)]
    assert register(known, 3, "hash-3", draft=True).phase is Phase.DRAFT
    assert superseded(known, Phase.DRAFT) == {}  # what is under way goes on
    known.append(version(3, Phase.DRAFT))
    again = register(known, 3, "hash-3", draft=True)
    assert (again.phase, again.problem) == (None, None)
    promoted = register(known, 3, "hash-3")
    assert (promoted.phase, promoted.promoted) == (Phase.CANARY, True)
    first = register([version(3, Phase.DRAFT)], 3, "hash-3")
    assert (first.phase, first.promoted) == (Phase.ACTIVE, True)


def test_a_draft_does_nothing_by_itself_however_well_it_is_proven_and_however_long_it_lies() -> None:
    known = [version(1), version(2, Phase.DRAFT)]
    assert due_step(known, proof(lasts_s=10**6), NOW, RETIRING) is None
    assert due_step(known, proof("failed"), NOW + timedelta(days=90), RETIRING) is None


def test_a_newer_draft_and_a_newer_version_each_end_a_draft() -> None:
    known = [version(1), version(2, Phase.CANARY), version(3, Phase.DRAFT)]
    assert superseded(known, Phase.DRAFT) == {3: (Phase.RETIRED, None)}
    assert superseded(known, Phase.CANARY) == {2: (Phase.RETIRED, None), 3: (Phase.RETIRED, None)}


def test_what_cannot_become_of_a_draft_is_refused_with_what_can() -> None:
    known = [version(1, Phase.RETIRED), version(2), version(3, Phase.CANARY), version(4, Phase.DRAFT)]
    wrong = {
        (1, "hash-1"): ("version-is-over", "version 1 is retired"),
        (2, "hash-2"): ("version-is-no-draft", "version 2 is active already"),
        (3, "hash-3"): ("version-is-no-draft", "version 3 is canary already"),
        (4, "other"): ("version-is-fixed", "version 4 is kept as a draft with other content"),
    }
    for (number, digest), (code, told) in wrong.items():
        problem = register(known, number, digest, draft=True).problem
        assert problem is not None
        assert (problem.code, problem.suggestion) == (code, "register the change as version 5")
        assert told in problem.message
    below = register([version(3)], 2, "h", draft=True).problem
    edited = register(known, 4, "other").problem
    assert (below and below.code, edited and edited.code) == ("version-too-low", "version-is-fixed")


def test_a_retiring_version_is_retired_in_time() -> None:
    known = [version(1, Phase.RETIRING, NOW), version(2)]
    step = due_step(known, {}, NOW, RETIRING)
    assert step is not None
    assert step.changes == {1: (Phase.RETIRED, None)}


EVENTS = st.lists(
    st.tuples(st.sampled_from(["register", "overlap", "draft", "prove", "fail", "wait"]), st.integers(1, 6)),
    max_size=30,
)


@given(EVENTS)
def test_two_versions_at_most_are_active_only_one_without_end_and_one_is_a_canary(
    events: list[tuple[str, int]],
) -> None:
    known: list[Version] = []
    now, taken = NOW, False
    for kind, number in events:
        evidence = proof("proven" if kind == "prove" else "failed", 10**6)
        if kind in ("register", "overlap", "draft"):
            outcome = register(known, number, f"hash-{number}", draft=kind == "draft")
            if outcome.phase is not None:
                before = [item for item in known if item.phase is not Phase.DRAFT]
                changes = superseded(known, outcome.phase)
                known = [changed(item, changes) for item in known if item.version != number]
                until = now + RETIRING if outcome.phase is Phase.CANARY else None
                known.append(version(number, outcome.phase, until, overlap="5m" if kind == "overlap" else ""))
                assert kind != "draft" or all(item in known for item in before)  # others go on as if it were not there
        elif kind == "wait":
            now += timedelta(minutes=number)
        while (step := due_step(known, evidence, now, RETIRING)) is not None:
            known = [changed(item, step.changes) for item in known]
        phases = [item.phase for item in known]
        assert phases.count(Phase.ACTIVE) <= 2
        assert phases.count(Phase.DRAFT) <= 1
        taken |= Phase.ACTIVE in phases
        lasting = [item.version for item in known if item.phase is Phase.ACTIVE and item.until is None]
        assert lasting == [max(item.version for item in known if item.phase is Phase.ACTIVE)] if taken else not lasting
        assert phases.count(Phase.CANARY) <= 1
        assert not taken or Phase.ACTIVE in phases  # what once took work goes on taking it


def changed(item: Version, changes: object) -> Version:
    phase, until = changes.get(item.version, (item.phase, item.until))  # type: ignore[attr-defined]
    return msgspec.structs.replace(item, phase=phase, until=until)
