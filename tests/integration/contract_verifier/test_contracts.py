"""Contracts, plans, evidence and control on a running service."""

from datetime import UTC, datetime, timedelta

import msgspec

from landbridge.bus import streams, subjects
from landbridge.bus.envelope import Outbound, event_type
from landbridge.bus.publish import publish_batch
from landbridge.domain import claims
from landbridge.domain.contract_document import parse_contract
from landbridge.schema.wire.command_v1 import VerifyNow
from landbridge.schema.wire.event_v1 import EnvironmentContractChanged, EnvironmentLink, LinkState
from landbridge.schema.wire.report_v1 import EvidenceResult
from support.verifier_service import Verifier, contract, finding
from support.wait import wait_until


async def test_a_first_contract_is_active_and_everyone_can_read_it(verifier: Verifier) -> None:
    await verifier.registered()
    assert verifier.told_contract() == {1: "active"}
    [message] = verifier.latest[subjects.environment("contract", "onprem-a")]
    told = msgspec.json.decode(message.body, type=EnvironmentContractChanged)
    assert parse_contract(told.versions[0].document).classes["cpu-general"].cpu == 8000


async def test_the_environment_is_sent_a_plan_for_each_claim(verifier: Verifier) -> None:
    site = await verifier.site()
    plan = await site.plan()
    assert plan.contract_version == 1
    assert {probe.claim for probe in plan.probes} == {
        claims.RUNTIME,
        claims.CLOCK,
        claims.SELF_STOP,
        claims.capability_class("cpu-general"),
        claims.connection("models"),
    }
    assert parse_contract(plan.contract).version == 1


async def test_evidence_is_told_soon_and_its_change_is_too(verifier: Verifier) -> None:
    site = await verifier.site()
    plan = await site.plan()
    await site.prove(*plan.probes)
    await wait_until(lambda: len(verifier.told_results()) == len(plan.probes), "all evidence was told")
    assert set(verifier.told_results().values()) == {"proven"}
    [models] = [probe for probe in plan.probes if probe.claim == "connections.models"]
    await site.prove(models, result=EvidenceResult.FAILED, detail="no such directory")
    await wait_until(lambda: verifier.told_results()[models.name] == "failed", "the failure was told")


async def test_a_storm_of_reports_makes_at_most_one_event_a_second(verifier: Verifier) -> None:
    site = await verifier.site()
    plan = await site.plan()
    await site.prove(*plan.probes)
    await wait_until(verifier.told_results, "the first evidence was told")
    before = verifier.evidence_events()
    loop_result = [EvidenceResult.FAILED, EvidenceResult.PROVEN]
    for number in range(60):
        await site.prove(plan.probes[0], result=loop_result[number % 2], detail=str(number))
    await wait_until(
        lambda: any(item.detail == "59" for item in verifier.told_evidence().items),  # type: ignore[union-attr]
        "the last result was told",
    )
    assert verifier.evidence_events() - before <= 4


async def test_unchanged_evidence_is_told_again_before_it_expires(verifier: Verifier) -> None:
    site = await verifier.site()
    plan = await site.plan()
    [models] = [probe for probe in plan.probes if probe.claim == "connections.models"]
    soon = datetime.now(UTC) + timedelta(seconds=3)
    await site.report(msgspec.structs.replace(finding(models), expires=soon))
    await wait_until(verifier.told_results, "the first evidence was told")
    await site.prove(models)
    await wait_until(lambda: verifier.evidence_events() == 2, "the refresh was told", timeout_s=5)
    assert datetime.now(UTC) < soon
    evidence = verifier.told_evidence()
    assert evidence is not None
    assert evidence.items[0].expires > soon


async def test_an_environment_proves_only_what_was_planned_and_no_longer_than_planned(verifier: Verifier) -> None:
    site = await verifier.site()
    plan = await site.plan()
    real = plan.probes[0]
    eternal = finding(real)
    eternal = msgspec.structs.replace(eternal, expires=eternal.at + timedelta(days=365))
    foreign = msgspec.structs.replace(finding(real), probe="made-up", claim="classes.gpu-80gb")
    renamed = msgspec.structs.replace(finding(plan.probes[1]), claim="boundaries.network")
    await site.report(eternal, foreign, renamed)
    await wait_until(verifier.told_results, "the evidence was told")
    evidence = verifier.told_evidence()
    assert evidence is not None
    [item] = evidence.items
    assert item.probe == real.name
    assert item.expires - item.at <= timedelta(seconds=real.expiry_seconds)


async def test_a_new_subject_voids_the_proof_of_the_old_one(verifier: Verifier) -> None:
    site = await verifier.site()
    plan = await site.plan()
    await site.prove(plan.probes[0], subject="driver 580.65")
    await wait_until(lambda: verifier.told_results() == {plan.probes[0].name: "proven"}, "the proof was told")
    await site.prove(plan.probes[0], subject="driver 590.01", result=EvidenceResult.UNKNOWN)
    await wait_until(lambda: verifier.told_results() == {plan.probes[0].name: "unknown"}, "the proof is void")


async def test_times_of_a_wrong_clock_are_corrected(verifier: Verifier) -> None:
    site = await verifier.site()
    plan = await site.plan()
    by_claim = {probe.claim: probe for probe in plan.probes}
    ahead = datetime.now(UTC) + timedelta(hours=1)
    await site.report(
        finding(by_claim[claims.CLOCK], at=ahead, proven=3600.0),
        finding(by_claim[claims.RUNTIME], at=ahead),
    )
    await wait_until(lambda: len(verifier.told_results()) == 2, "the evidence was told")
    evidence = verifier.told_evidence()
    assert evidence is not None
    for item in evidence.items:
        assert abs(item.at - datetime.now(UTC)) < timedelta(seconds=20)


async def test_the_same_version_with_other_content_is_refused(verifier: Verifier) -> None:
    await verifier.registered()
    await verifier.submit(contract(cpu=16), id_="submission-2")
    [refusal] = await verifier.refusals()
    assert (refusal.project, refusal.submission, refusal.source) == ("_", "submission-2", "/test")
    assert [problem.code for problem in refusal.problems] == ["version-is-fixed"]
    assert "as version 2" in refusal.problems[0].suggestion
    assert verifier.told_contract() == {1: "active"}


async def test_the_same_version_with_the_same_content_changes_nothing(verifier: Verifier) -> None:
    await verifier.registered()
    await verifier.submit(contract() + b"# only a remark\n")
    await verifier.control("onprem-a", "pause")
    await wait_until(verifier.told_control, "both intents were handled")
    assert len(verifier.latest[subjects.environment("contract", "onprem-a")]) == 1


async def test_a_document_that_is_no_contract_is_refused_with_every_problem(verifier: Verifier) -> None:
    await verifier.submit(
        b"apiVersion: landbridge/v1\nkind: EnvironmentContract\nmetadata: {name: x}\nspec: {clases: {}}\n"
    )
    [refusal] = await verifier.refusals()
    assert {problem.path for problem in refusal.problems} >= {"spec.clases"}


async def test_a_changed_version_takes_work_only_after_it_has_proven_itself(verifier: Verifier) -> None:
    site = await verifier.site()
    first = await site.plan()
    await site.prove(*first.probes)
    await wait_until(lambda: len(verifier.told_results()) == len(first.probes), "version 1 is proven")
    await verifier.submit(contract(version=2, cpu=16))
    await wait_until(lambda: verifier.told_contract() == {1: "active", 2: "canary"}, "version 2 is a canary")
    both = await site.plan()
    new = [probe for probe in both.probes if probe not in first.probes]
    assert [probe.name for probe in new] == ["classes.cpu-general@2"]
    assert all(probe in both.probes for probe in first.probes)  # version 1 goes on being probed
    assert verifier.told_evidence().contract_version == 1  # type: ignore[union-attr]
    await site.prove(*new)
    await wait_until(lambda: verifier.told_contract() == {1: "retiring", 2: "active"}, "version 2 is active")
    await wait_until(lambda: verifier.told_evidence().contract_version == 2, "its evidence is told")  # type: ignore[union-attr]
    assert "classes.cpu-general@2" in verifier.told_results()
    assert "classes.cpu-general@1" not in verifier.told_results()


async def test_the_version_before_stays_active_with_its_own_evidence_for_as_long_as_the_new_one_says(
    verifier: Verifier,
) -> None:
    site = await verifier.site()
    first = await site.plan()
    await site.prove(*first.probes)
    await wait_until(lambda: len(verifier.told_results()) == len(first.probes), "version 1 is proven")
    await verifier.submit(contract(version=2, cpu=16, overlap="4s"))
    await wait_until(lambda: verifier.told_contract() == {1: "active", 2: "canary"}, "version 2 is a canary")
    both = await site.plan()
    await site.prove(*(probe for probe in both.probes if probe not in first.probes))
    await wait_until(lambda: verifier.told_contract() == {1: "active", 2: "active"}, "both are active")

    def of_both() -> bool:
        told = verifier.told_evidence()
        return told is not None and told.contract_version == 2 and told.previous is not None

    await wait_until(of_both, "evidence of both is told")
    told = verifier.told_evidence()
    assert told is not None
    assert told.previous is not None
    assert told.previous.contract_version == 1
    assert {item.probe for item in told.previous.items} == {probe.name for probe in first.probes}
    assert "classes.cpu-general@2" in {item.probe for item in told.items}
    await wait_until(lambda: verifier.told_contract() == {1: "retiring", 2: "active"}, "its time is over", timeout_s=20)
    await wait_until(lambda: not of_both(), "only the newest is told of")


async def test_a_canary_that_does_not_prove_itself_in_time_is_retired_and_told(start_verifier) -> None:  # type: ignore[no-untyped-def]
    verifier: Verifier = await start_verifier(canary_seconds=1, retiring_seconds=0)
    site = await verifier.site()
    plan = await site.plan()
    await site.prove(*plan.probes)
    await verifier.submit(contract(version=2, cpu=64))
    await wait_until(lambda: 2 in verifier.told_contract(), "version 2 is a canary")
    await wait_until(lambda: verifier.told_contract() == {1: "active"}, "version 2 is gone")
    [refusal] = await verifier.refusals()
    assert refusal.submission == "onprem-a@2"
    assert [(p.code, p.path) for p in refusal.problems] == [("canary-failed", "spec.classes.cpu-general")]


async def test_operators_pause_drain_and_resume(verifier: Verifier) -> None:
    await verifier.registered()
    for action, paused, draining in (("pause", True, False), ("drain", True, True), ("resume", False, False)):
        await verifier.control("onprem-a", action, "upgrade")

        def told(paused: bool = paused, draining: bool = draining) -> bool:
            found = verifier.told_control()
            return found is not None and (found.paused, found.draining, found.by) == (paused, draining, "ann")

        await wait_until(told, f"{action} was told")


async def test_verify_asks_the_environment_to_probe_now(verifier: Verifier) -> None:
    site = await verifier.site()
    await site.plan()
    await verifier.control("onprem-a", "verify")
    command = await site.command()
    assert command.subject == "lb.v1.command.onprem-a.verify"
    assert msgspec.json.decode(command.body, type=VerifyNow) == VerifyNow()


async def test_control_of_an_unknown_environment_is_refused(verifier: Verifier) -> None:
    await verifier.control("nowhere", "pause")
    [refusal] = await verifier.refusals()
    assert refusal.problems[0].code == "unknown-environment"


async def test_a_dispatcher_that_lost_its_state_is_sent_the_plan_again(verifier: Verifier) -> None:
    site = await verifier.site()
    first = await site.plan()
    coordinator = await verifier.secured.service("coordinator")
    for incarnation in ("one", "one", "two"):
        link = EnvironmentLink(environment="onprem-a", state=LinkState.CONNECTED, incarnation=incarnation)
        message = Outbound(
            subjects.environment("link", "onprem-a"),
            event_type("environment", "EnvironmentLink"),
            msgspec.json.encode(link),
        )
        await publish_batch(coordinator, streams.ENVIRONMENTS, [message])
    assert [await site.plan(), await site.plan()] == [first, first]
    assert await site.commands.take(0.5) == []


async def test_replicas_share_the_work(start_verifier) -> None:  # type: ignore[no-untyped-def]
    verifier: Verifier = await start_verifier()
    await start_verifier()
    names = [f"env-{number}" for number in range(12)]
    for name in names:
        await verifier.submit(contract(name))
    await wait_until(lambda: all(verifier.told_contract(name) for name in names), "all are registered")
    sites = [await verifier.site(name) for name in names[:3]]
    for site in sites:
        plan = await site.plan()
        await site.prove(*plan.probes)
        await wait_until(lambda s=site, p=plan: len(verifier.told_results(s.name)) == len(p.probes), "told")  # type: ignore[misc]


async def test_another_release_with_other_periods_sends_new_plans(start_verifier) -> None:  # type: ignore[no-untyped-def]
    verifier: Verifier = await start_verifier()
    site = await verifier.site()
    first = await site.plan()
    await start_verifier(probe_connection_seconds=7)
    again = await site.plan()
    assert [probe.name for probe in again.probes] == [probe.name for probe in first.probes]
    assert {probe.period_seconds for probe in again.probes if probe.kind == "connection"} == {7}
