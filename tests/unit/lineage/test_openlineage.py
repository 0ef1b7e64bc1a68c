"""OpenLineage: the operation as parent run, attempts as child runs, each with one start and one end."""

from collections import Counter
from typing import Any

from landbridge.bus.envelope import Inbound
from landbridge.schema.wire.event_v1 import Condition, ReportVerdict
from landbridge_lineage.attempts import placements
from landbridge_lineage.facts import read
from landbridge_lineage.openlineage import attempt_run, export
from landbridge_lineage.replay import fold_all
from support.lineage_messages import a_report, a_whole_life, accepted, an_operation, changed, placed

OPERATION = an_operation()


def exported(*messages: Inbound) -> list[dict[str, Any]]:
    facts = read(messages).facts
    state = fold_all(facts)
    assert state is not None
    return export(state, facts, placements(facts))


def kinds(events: list[dict[str, Any]], run: str) -> list[str]:
    return [each["eventType"] for each in events if each["run"]["runId"] == run]


def test_a_whole_life_maps_phase_by_phase() -> None:
    events = exported(*a_whole_life(OPERATION))
    assert kinds(events, OPERATION) == ["START", "OTHER", "RUNNING", "OTHER", "OTHER", "RUNNING", "COMPLETE"]
    assert kinds(events, attempt_run(OPERATION, "1.1")) == ["START", "RUNNING", "FAIL"]
    assert kinds(events, attempt_run(OPERATION, "1.2")) == ["START", "RUNNING", "COMPLETE"]


def test_every_event_says_who_wrote_it_and_by_which_schema() -> None:
    for event in exported(*a_whole_life(OPERATION)):
        assert event["schemaURL"] == "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
        assert event["producer"]
        assert event["eventTime"].endswith("Z")
        assert event["job"]["namespace"] == "landbridge://coast"
        assert event["job"]["facets"]["jobType"]["integration"] == "LANDBRIDGE"
        facets = [*event["run"]["facets"].values(), *event["job"]["facets"].values()]
        facets += [facet for each in (*event["inputs"], *event["outputs"]) for facet in each["facets"].values()]
        assert all(facet["_producer"] and facet["_schemaURL"] for facet in facets)


def test_an_attempt_names_its_parent_and_what_it_ran_on() -> None:
    events = exported(*a_whole_life(OPERATION))
    end = next(e for e in events if e["eventType"] == "COMPLETE" and e["run"]["runId"] != OPERATION)
    assert end["run"]["facets"]["parent"]["run"]["runId"] == OPERATION
    assert end["run"]["facets"]["parent"]["root"]["run"]["runId"] == OPERATION
    placement = end["run"]["facets"]["landbridge_placement"]
    assert (placement["environment"], placement["principal"], placement["hardware"]) == ("quay", "uid:2001", "8 vCPU")
    failed = next(e for e in events if e["eventType"] == "FAIL")
    assert failed["run"]["facets"]["errorMessage"]["message"] == "signal"


def test_datasets_have_physical_names_with_the_logical_ones_as_symlinks() -> None:
    events = exported(*a_whole_life(OPERATION))
    end = events[-1]
    (gauges,) = end["inputs"]
    assert (gauges["namespace"], gauges["name"]) == ("s3://readings-eu", "raw/2026/q4")
    (link,) = gauges["facets"]["symlinks"]["identifiers"]
    assert (link["namespace"], link["name"]) == ("landbridge-connection", "gauge-readings/2026/q4")
    (forecast,) = end["outputs"]
    assert (forecast["namespace"], forecast["name"]) == ("file", "srv/results/tides/1")
    assert forecast["outputFacets"]["outputStatistics"]["size"] == 2048
    assert forecast["facets"]["version"]["datasetVersion"] == f"sha256:{'ab' * 32}"


def test_unresolved_datasets_keep_their_logical_names() -> None:
    (start,) = exported(accepted(OPERATION))
    assert start["inputs"] == [{"namespace": "landbridge-connection", "name": "gauge-readings/2026/q4", "facets": {}}]


def test_cancelled_and_lost_work_is_aborted() -> None:
    events = exported(
        accepted(OPERATION),
        placed(OPERATION, 2, "pending"),
        placed(OPERATION, 3, "running"),
        changed(OPERATION, 4, "retrying", round=2, reason="environment-lost", epoch=None),
        changed(OPERATION, 5, "cancelled", reason="by-request"),
    )
    assert kinds(events, OPERATION)[-1] == "ABORT"
    attempt = kinds(events, attempt_run(OPERATION, "1.1"))
    assert attempt[:2] == ["START", "RUNNING"]
    assert Counter(attempt)["START"] == 1
    assert attempt[-1] == "ABORT"


def test_conditions_and_late_reports_are_no_run_events() -> None:
    life = [accepted(OPERATION), placed(OPERATION, 2, "pending"), placed(OPERATION, 3, "running")]
    noise = [
        placed(OPERATION, 4, "running", event="condition", condition=Condition(type="control-lost", status=True)),
        placed(
            OPERATION,
            5,
            "running",
            event="observed",
            verdict=ReportVerdict.SUPERSEDED,
            report=a_report(OPERATION, "finished", outcome="failed"),
        ),
    ]
    assert len(exported(*life, *noise)) == len(exported(*life))


def test_the_component_and_the_commit_are_part_of_the_job() -> None:
    source = {"connection": "code", "commit": "0" * 40}
    (start,) = exported(accepted(OPERATION, component="tide-fit@4", source=source, type="service"))
    assert start["job"]["name"] == "tide-fit.tides"
    assert start["job"]["facets"]["sourceCodeLocation"]["version"] == "0" * 40
    assert start["job"]["facets"]["jobType"]["processingType"] == "SERVICE"
