"""The single change that is told makes the environment eligible, and nothing less does."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from landbridge.domain import claims
from landbridge.domain.candidate import Candidate, Control
from landbridge.domain.constraints import CONSTRAINTS
from landbridge.domain.eligibility import judge
from landbridge.domain.near_miss import Change, NearMiss, changes, near_misses
from landbridge.domain.requirements import RequirementClass
from landbridge.domain.violation import Kind, Violation
from support.deciding import CONNECTED, NOW, a_catalogue, a_contract, an_environment, an_operation, merged, proof
from unit.domain.constraint_cases import CASES
from unit.domain.constraint_worlds import Case

GANGS = replace(CONNECTED, features=CONNECTED.features | {"type.distributed-job"})
GPUS = {"gpu-80gb": {"count": 16, "perNode": 8, "memory": "80Gi", "precision": ["bf16"], "interconnect": "nvlink"}}


def gpus(count: int, **more: Any) -> dict[str, Any]:
    return {"resources": {"accelerator": {"class": "gpu-80gb", "count": count, **more}}}


def change(operation: RequirementClass, environment: Candidate) -> Change | None:
    verdict = judge(operation.requirements, environment, CONSTRAINTS, NOW)
    assert verdict.violations
    return NearMiss(verdict, changes(operation.requirements, environment, verdict, NOW)).change


def eligible(operation: RequirementClass, environment: Candidate) -> bool:
    return judge(operation.requirements, environment, CONSTRAINTS, NOW).is_eligible


QUEUES = a_catalogue(a_contract(), queues={"training": {"environments": {"forbid": ["onprem-a"]}}, "small": {}})
LATE = proof(claims.RUNTIME, at=NOW - timedelta(hours=2), lasts=timedelta(hours=1))
TOLD = [
    (an_operation(**gpus(12)), an_environment(classes=GPUS), "spec.resources.accelerator.count", "8"),
    (
        an_operation(**gpus(4, memory="120Gi")),
        an_environment(classes=GPUS),
        "spec.resources.accelerator.memory",
        "80Gi",
    ),
    (an_operation(**gpus(9, memory="120Gi")), an_environment(classes=GPUS), "spec.resources.accelerator", None),
    (an_operation(**gpus(1)), an_environment(), "spec.resources.accelerator", ""),
    (
        an_operation(resources={"accelerator": {"class": "gpu-24gb", "count": 2}}),
        an_environment(classes=GPUS),
        "spec.resources.accelerator.class",
        "gpu-80gb",
    ),
    (
        an_operation(type="distributed-job", replicas=5, **gpus(4)),
        an_environment(classes=GPUS, workloads=["distributed-job"], link=GANGS),
        "spec.replicas",
        "4",
    ),
    (an_operation(resources={"requests": {"cpu": "65"}}), an_environment(), "spec.resources.requests.cpu", "64"),
    (
        an_operation(resources={"requests": {"memory": "1Ti"}}),
        an_environment(),
        "spec.resources.requests.memory",
        "256Gi",
    ),
    (
        an_operation(constraints={"environments": {"forbid": ["onprem-a", "x"]}}),
        an_environment(),
        "spec.constraints.environments.forbid",
        "x",
    ),
    (
        an_operation(constraints={"environments": {"allow": ["cloud-b"]}}),
        an_environment(beside=[a_contract("cloud-b")]),
        "spec.constraints.environments.allow",
        "cloud-b, onprem-a",
    ),
    (an_operation(), an_environment(catalogue=QUEUES), "spec.queue", "small"),
    (
        an_operation(inputs={"x": {"connection": "event"}}),
        an_environment(),
        "spec.inputs.x.connection",
        "events",
    ),
    (
        an_operation(constraints={"jurisdictions": ["FR"]}),
        an_environment(),
        "spec.constraints.jurisdictions",
        "DE, EU, FR",
    ),
    (
        an_operation(constraints={"deadline": "2026-11-30T03:30:00Z"}, lifecycle={"expectedDuration": "45m"}),
        an_environment(),
        "spec.constraints.deadline",
        "2026-11-30T03:47:00Z",
    ),
    (an_operation(constraints={"kubernetes": ">=1.33"}), an_environment(), "spec.constraints.kubernetes", ""),
]


@pytest.mark.parametrize(("operation", "environment", "path", "value"), TOLD, ids=[f"{c[2]}-{c[3]}" for c in TOLD])
def test_a_change_of_the_operation_names_its_field_and_the_value_that_fits(
    operation: RequirementClass, environment: Candidate, path: str, value: str | None
) -> None:
    found = change(operation, environment)
    assert found is not None
    assert found.path == path
    assert value is None or found.value == value
    assert found.text


@given(count=st.integers(1, 40), claimed=st.integers(1, 20), node=st.integers(1, 20), replicas=st.integers(1, 4))
def test_the_count_told_is_the_largest_that_fits(count: int, claimed: int, node: int, replicas: int) -> None:
    offered = {"gpu-80gb": {**GPUS["gpu-80gb"], "count": claimed, "perNode": node}}
    environment = an_environment(classes=offered, workloads=["job", "distributed-job"], link=GANGS)

    def operation(count: int, replicas: int) -> RequirementClass:
        return an_operation(type="distributed-job", replicas=replicas, **gpus(count))

    if eligible(operation(count, replicas), environment):
        return
    found = change(operation(count, replicas), environment)
    assert found is not None
    if found.path == "spec.resources.accelerator.count":
        assert eligible(operation(int(found.value), replicas), environment)
        assert not eligible(operation(int(found.value) + 1, replicas), environment)
    elif found.path == "spec.replicas":
        assert eligible(operation(count, int(found.value)), environment)
        assert not eligible(operation(count, int(found.value) + 1), environment)
    else:
        assert found.path == "spec.resources.accelerator"
        assert not eligible(operation(1, replicas), environment)


def test_where_only_the_environment_can_change_its_next_step_is_told() -> None:
    paused = an_environment(control=Control(paused=True, by="ann", reason="disk swap"))
    assert change(an_operation(), paused) == Change("wait, or ask that person: landbridge env resume onprem-a")
    stale = change(an_operation(), an_environment(evidence={claims.RUNTIME: LATE}))
    assert stale is not None
    assert "landbridge env verify onprem-a" in stale.text
    assert stale.path == ""


def test_of_several_things_in_the_way_each_has_its_change_tried_on_top_of_the_others() -> None:
    paused = an_environment(control=Control(paused=True))
    operation = an_operation(resources={"accelerator": {"class": "gpu-80gb"}, "requests": {"cpu": "65"}})
    assert change(operation, paused) is None
    verdict = judge(operation.requirements, paused, CONSTRAINTS, NOW)
    found = changes(operation.requirements, paused, verdict, NOW)
    assert [each.path for each in found] == ["spec.resources.accelerator", "spec.resources.requests.cpu", ""]
    assert "landbridge env resume onprem-a" in found[2].text


def test_where_nothing_is_known_to_help_nothing_is_told() -> None:
    environment = an_environment(control=Control(paused=True))
    verdict = judge(an_operation().requirements, environment, CONSTRAINTS, NOW)
    later = Violation("of-a-later-release", "unheard-of", Kind.NEVER, "a", "b")
    assert changes(an_operation().requirements, environment, structs.replace(verdict, violations=(later,)), NOW) == ()


def test_what_is_told_is_judged_by_every_rule() -> None:
    """Another queue routes here, but does not take the project: it must not be proposed."""
    closed = a_catalogue(
        a_contract(), queues={"training": {"environments": {"forbid": ["onprem-a"]}}, "small": {"projects": ["other"]}}
    )
    found = change(an_operation(), an_environment(catalogue=closed))
    assert found is not None
    assert (found.path, found.value) == ("", "")


def test_the_nearest_is_the_one_that_may_pass_by_itself_then_the_one_a_single_change_mends() -> None:
    operation = an_operation(**gpus(12))
    environments = {
        "a-far": an_environment("a-far", classes=GPUS, workloads=["service"]),
        "b-smaller": an_environment("b-smaller", classes=GPUS),
        "c-paused": an_environment(
            "c-paused",
            classes={"gpu-80gb": merged(GPUS["gpu-80gb"], {"perNode": 16})},
            control=Control(paused=True),
        ),
    }
    verdicts = [judge(operation.requirements, each, CONSTRAINTS, NOW) for each in environments.values()]
    candidates = {name: (each,) for name, each in environments.items()}
    found = near_misses(operation.requirements, verdicts, candidates, NOW)
    assert [miss.verdict.environment for miss in found] == ["c-paused", "b-smaller", "a-far"]
    assert [miss.change is not None for miss in found] == [True, True, False]


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{'-'.join(c for c, _ in case[4]) or 'ok'}"
)
def test_for_whatever_a_rule_has_against_an_environment_something_is_told_that_helps(case: Case) -> None:
    _, _, operation, environment, _ = case
    verdict = judge(operation.requirements, environment, CONSTRAINTS, NOW)
    if verdict.is_eligible:
        return
    found = changes(operation.requirements, environment, verdict, NOW)
    assert found, [str(violation) for violation in verdict.violations]
    assert all(each.text for each in found)
    assert len(found) <= len({violation.constraint for violation in verdict.violations})
