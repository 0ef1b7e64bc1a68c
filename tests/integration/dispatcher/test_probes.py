"""The probe plan is run for real, tells what is broken, and goes on without the centre."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from integration.dispatcher.centre import Centre
from integration.dispatcher.site import Site
from landbridge.domain import claims, probe_kinds
from landbridge.schema.wire import command_v1 as command
from landbridge.schema.wire.report_v1 import Evidence, EvidenceResult
from support.wait import wait_until

CONTRACT = {
    "apiVersion": "landbridge/v1",
    "kind": "EnvironmentContract",
    "metadata": {"name": "onprem-a", "version": 4},
    "spec": {
        "owner": {"team": "infra"},
        "location": {"regions": ["eu-de-1"], "jurisdictions": ["EU"]},
        "runtime": {"executor": "process"},
        "workloads": ["job"],
        "classes": {"cpu-general": {"cpu": "1", "memory": "64Mi"}},
        "connections": {"models": {"type": "volume", "access": "read-write"}},
        "boundaries": {"identity": {"roles": {"trainer": "local/trainer"}}},
        "cost": {"currency": "EUR", "perHour": {"cpu-general": 0.5}},
    },
}


def a_probe(claim: str, kind: str, claimed: object = None, **parameters: str) -> command.Probe:
    return command.Probe(
        name=f"{claim}.{parameters.get('expect', '')}@4",
        claim=claim,
        kind=kind,
        period_seconds=1,
        timeout_seconds=20,
        expiry_seconds=60,
        parameters={"claimed": msgspec.json.encode(claimed).decode(), **parameters},
    )


def a_plan(*probes: command.Probe) -> command.ProbePlan:
    return command.ProbePlan(contract_version=4, contract=msgspec.json.encode(CONTRACT), probes=probes)


async def found(centre: Centre, probe: command.Probe, result: EvidenceResult) -> Evidence:
    def one() -> Evidence | None:
        return next((each for each in centre.evidence if each.probe == probe.name and each.result is result), None)

    evidence: Evidence = await wait_until(one, f"{probe.name} is {result}", timeout_s=30)
    return evidence


SPEC: dict[str, Any] = CONTRACT["spec"]  # type: ignore[assignment]
ALL = (
    a_probe(claims.RUNTIME, probe_kinds.WORKLOAD, SPEC["runtime"]),
    a_probe(claims.CLOCK, probe_kinds.CLOCK),
    a_probe(claims.SELF_STOP, probe_kinds.SELF_STOP, SPEC["runtime"]),
    a_probe("classes.cpu-general", probe_kinds.CAPACITY, SPEC["classes"]["cpu-general"]),
    a_probe("connections.models", probe_kinds.CONNECTION, {}, connection="models", access="read-write"),
    a_probe(
        claims.IDENTITY, probe_kinds.BOUNDARY, SPEC["boundaries"]["identity"], boundary="identity", expect="allowed"
    ),
    a_probe(
        claims.IDENTITY, probe_kinds.BOUNDARY, SPEC["boundaries"]["identity"], boundary="identity", expect="refused"
    ),
)


async def test_a_sound_site_proves_everything_that_it_can(centre: Centre, site: Site) -> None:
    await site.start()
    await centre.until_connected()
    await centre.send("probe-plan", a_plan(*ALL))

    for probe in ALL:
        evidence = await found(centre, probe, EvidenceResult.PROVEN)
        assert evidence.claim == probe.claim
        assert evidence.subject
        assert (evidence.expires - evidence.at).total_seconds() == pytest.approx(60)
    capacity = await found(centre, ALL[3], EvidenceResult.PROVEN)
    assert (capacity.proven, capacity.claimed) == (1.0, 1.0)


async def test_what_breaks_is_told_within_a_period_and_what_heals_too(centre: Centre, process_site: Site) -> None:
    await process_site.start()
    await centre.until_connected()
    probe = ALL[4]
    await centre.send("probe-plan", a_plan(probe))
    await found(centre, probe, EvidenceResult.PROVEN)
    models = process_site.home / "data/models"

    models.rename(models.with_name("elsewhere"))
    failed = await found(centre, probe, EvidenceResult.FAILED)
    assert str(process_site.home) not in failed.detail
    centre.evidence.clear()
    models.with_name("elsewhere").rename(models)

    await found(centre, probe, EvidenceResult.PROVEN)


async def test_a_claim_beyond_the_machine_is_proven_in_part(centre: Centre, process_site: Site) -> None:
    await process_site.start()
    await centre.until_connected()
    much = a_probe("classes.cpu-general", probe_kinds.CAPACITY, {"cpu": "100000", "memory": "1Gi"})
    gpus = a_probe("classes.gpu-80gb", probe_kinds.CAPACITY, {"count": 8, "memory": "80Gi"})
    await centre.send("probe-plan", a_plan(much, gpus))

    part = await found(centre, much, EvidenceResult.PROVEN)
    none = await found(centre, gpus, EvidenceResult.FAILED)

    assert part.proven is not None
    assert 0 < part.proven < 1000
    assert part.claimed == 100_000
    assert (none.proven, none.claimed) == (0.0, 8.0)


async def test_unchanged_evidence_is_told_only_before_it_grows_old(centre: Centre, process_site: Site) -> None:
    await process_site.start()
    await centre.until_connected()
    probe = ALL[4]
    await centre.send("probe-plan", a_plan(probe))
    await found(centre, probe, EvidenceResult.PROVEN)
    first = len(centre.evidence)

    runs = set()

    async def ran_again() -> bool:
        doctor = await process_site.ask(do="doctor")
        runs.add(str(doctor["probes"][probe.name]["at"]))
        return len(runs) >= 4

    await wait_until(ran_again, "it has run several times since")
    assert len(centre.evidence) == first
    await centre.send("verify", command.VerifyNow())
    await wait_until(lambda: len(centre.evidence) > first, "asked for, it is told although nothing is new")


async def test_the_plan_survives_the_dispatcher_and_needs_no_centre(centre: Centre, process_site: Site) -> None:
    await process_site.start()
    await centre.until_connected()
    await centre.send("probe-plan", a_plan(ALL[0], ALL[4]))
    await found(centre, ALL[4], EvidenceResult.PROVEN)
    await process_site.kill()
    process_site.url = "nats://127.0.0.1:9"
    await process_site.start()
    await process_site.until_started()

    async def proven() -> bool:
        doctor = await process_site.ask(do="doctor")
        return {name: each["result"] for name, each in doctor["probes"].items()} == {
            ALL[0].name: "proven",
            ALL[4].name: "proven",
        }

    await wait_until(proven, "both are proven again")


async def test_the_contract_in_force_is_in_the_resolved_context(centre: Centre, simulated_site: Site) -> None:
    from integration.dispatcher.work import work
    from landbridge.schema.wire.report_v1 import AttemptState

    await simulated_site.start()
    await centre.until_connected()
    await centre.send("probe-plan", a_plan(ALL[1]))
    await found(centre, ALL[1], EvidenceResult.PROVEN)
    offer = await centre.offer(work(simulated_site), identity="trainer", resources={"requests": {"cpu": "500m"}})
    stranger = await centre.offer(work(simulated_site), identity="stranger")

    finished = await centre.until(offer, AttemptState.FINISHED)
    refused = await centre.until(stranger, AttemptState.REFUSED)

    assert finished.resolved is not None
    assert (finished.resolved.contract_version, finished.resolved.cost_per_hour) == (4, 0.25)
    assert finished.resolved.currency == "EUR"
    assert refused.reason == "identity-not-mapped"


async def test_the_carbon_intensity_of_now_is_read_and_the_last_good_value_keeps_its_time(
    centre: Centre, simulated_site: Site
) -> None:
    series = simulated_site.home / "carbon.csv"
    now = datetime.now(UTC)
    series.write_text(f"from,until,grams_per_kwh\n{now - timedelta(hours=1)},{now + timedelta(hours=1)},87.5\n")
    bindings = simulated_site.home / "bindings.yaml"
    bindings.write_text(bindings.read_text() + "carbon: {file: carbon.csv, name: day ahead}\n")
    await simulated_site.start()
    await centre.until_connected()
    probe = a_probe(claims.CARBON, probe_kinds.CARBON, {"measured": True})
    await centre.send("probe-plan", a_plan(probe))
    good = await found(centre, probe, EvidenceResult.PROVEN)
    assert (good.proven, good.subject) == (87.5, "carbon source day ahead")

    series.unlink()

    def last_good() -> Evidence | None:
        return next((each for each in centre.evidence if each.detail.startswith("last good value")), None)

    later: Evidence = await wait_until(last_good, "the file is missed", timeout_s=30)
    assert later.proven == 87.5
    assert later.detail == "last good value: the file cannot be read: No such file or directory"
    assert later.expires - later.at == good.expires - good.at
    assert later.at < now + timedelta(seconds=30)
