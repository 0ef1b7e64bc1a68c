"""Drafts of contracts on a running service: kept, shown and probed beside what is in force, and not used."""

import msgspec

from landbridge.bus import subjects
from landbridge.domain.contract_document import parse_contract
from landbridge.schema.wire.command_v1 import ProbePlan
from landbridge.schema.wire.event_v1 import EnvironmentContractChanged
from landbridge.schema.wire.report_v1 import EvidenceResult
from support.verifier_service import Site, Verifier, contract
from support.wait import wait_until


async def proven_site(verifier: Verifier) -> tuple[Site, ProbePlan]:
    """Return an environment whose version 1 is active and proven, with its plan."""
    site = await verifier.site()
    plan = await site.plan()
    await site.prove(*plan.probes)
    await wait_until(lambda: len(verifier.told_results()) == len(plan.probes), "version 1 is proven")
    return site, plan


async def test_a_draft_is_probed_and_shown_and_what_is_active_goes_on_untouched(verifier: Verifier) -> None:
    site, first = await proven_site(verifier)
    await verifier.submit(contract(version=2, cpu=64), draft=True)
    await wait_until(lambda: verifier.told_contract() == {1: "active", 2: "draft"}, "version 2 is a draft")
    told = msgspec.json.decode(
        verifier.latest[subjects.environment("contract", "onprem-a")][-1].body, type=EnvironmentContractChanged
    )
    assert parse_contract(told.versions[1].document).classes["cpu-general"].cpu == 64_000
    both = await site.plan()
    assert both.contract_version == 1  # the site goes by what is in force
    assert parse_contract(both.contract).version == 1
    [new] = [probe for probe in both.probes if probe not in first.probes]
    assert new.name == "classes.cpu-general@2"
    await site.prove(new, result=EvidenceResult.FAILED, detail="8 found")

    async def seen() -> bool:
        table = (await verifier.http.get("/v1/environments/onprem-a/probes")).json()
        assert (table["contractVersion"], table["draftVersion"]) == (1, 2)
        items = {item["name"]: item for item in table["probes"]}
        assert items["classes.cpu-general@1"]["versions"] == [1]
        assert items["runtime@1"]["versions"] == [1, 2]
        return bool(items[new.name]["versions"] == [2] and items[new.name].get("result") == "failed")

    await wait_until(seen, "what the draft claims was looked at")
    assert verifier.told_contract() == {1: "active", 2: "draft"}
    assert new.name not in verifier.told_results()
    assert set(verifier.told_results().values()) == {"proven"}


async def test_a_draft_however_well_proven_waits_to_be_registered_and_then_takes_work_at_once(
    verifier: Verifier,
) -> None:
    site, first = await proven_site(verifier)
    await verifier.submit(contract(version=2, cpu=4), draft=True)
    both = await site.plan()
    [new] = [probe for probe in both.probes if probe not in first.probes]
    await site.prove(new)

    async def proven() -> bool:
        table = (await verifier.http.get("/v1/environments/onprem-a/probes")).json()
        return all(item.get("result") == "proven" for item in table["probes"])

    await wait_until(proven, "all of the draft is proven")
    assert verifier.told_contract() == {1: "active", 2: "draft"}
    await verifier.submit(contract(version=2, cpu=4))
    await wait_until(lambda: verifier.told_contract() == {1: "retiring", 2: "active"}, "version 2 is active")
    await wait_until(lambda: verifier.told_evidence().contract_version == 2, "its evidence is told")  # type: ignore[union-attr]
    assert set(verifier.told_results().values()) == {"proven"}


async def test_a_draft_that_is_not_proven_is_a_canary_once_it_is_registered(start_verifier) -> None:  # type: ignore[no-untyped-def]
    verifier: Verifier = await start_verifier(canary_seconds=1)
    await proven_site(verifier)
    await verifier.submit(contract(version=2, cpu=64), draft=True)
    await wait_until(lambda: verifier.told_contract() == {1: "active", 2: "draft"}, "version 2 is a draft")
    await verifier.submit(contract(version=2, cpu=64))
    subject = subjects.environment("contract", "onprem-a")

    def phases() -> list[dict[int, str]]:
        events = (msgspec.json.decode(each.body, type=EnvironmentContractChanged) for each in verifier.latest[subject])
        return [{item.version: item.phase for item in event.versions} for event in events]

    await wait_until(lambda: {1: "active", 2: "canary"} in phases(), "version 2 is a canary")
    await wait_until(lambda: verifier.told_contract() == {1: "active"}, "its time is over, as for any canary")
    [refusal] = await verifier.refusals()
    assert [problem.code for problem in refusal.problems] == ["canary-failed"]


async def test_a_newer_draft_takes_the_place_of_a_draft_with_its_probes(verifier: Verifier) -> None:
    site, _ = await proven_site(verifier)
    await verifier.submit(contract(version=2, cpu=64), draft=True)
    await site.plan()
    await verifier.submit(contract(version=3, cpu=32), draft=True)
    await wait_until(lambda: verifier.told_contract() == {1: "active", 3: "draft"}, "version 3 is the draft")
    names = {probe.name for probe in (await site.plan()).probes}
    assert "classes.cpu-general@3" in names
    assert "classes.cpu-general@2" not in names
    await verifier.submit(contract(version=2, cpu=64), id_="back")
    [refusal] = await verifier.refusals()
    assert (refusal.submission, [problem.code for problem in refusal.problems]) == ("back", ["version-is-over"])
    assert refusal.problems[0].message.startswith("onprem-a: version 2 is retired")


async def test_an_environment_can_begin_with_a_draft_and_join_to_have_it_verified(verifier: Verifier) -> None:
    await verifier.submit(contract(), draft=True)
    await wait_until(lambda: verifier.told_contract() == {1: "draft"}, "version 1 is a draft")
    site = await verifier.site()
    plan = await site.plan()
    assert (plan.contract_version, len(plan.probes)) == (1, 5)
    await site.prove(*plan.probes)
    await verifier.submit(contract())
    await wait_until(lambda: verifier.told_contract() == {1: "active"}, "it is in force")
    await wait_until(lambda: len(verifier.told_results()) == 5, "what it has proven counts")


async def test_what_is_in_use_becomes_no_draft_again(verifier: Verifier) -> None:
    await verifier.registered()
    await verifier.submit(contract(), draft=True, id_="again")
    [refusal] = await verifier.refusals()
    assert [problem.code for problem in refusal.problems] == ["version-is-no-draft"]
    assert "as version 2" in refusal.problems[0].suggestion
    assert verifier.told_contract() == {1: "active"}
