"""What the benchmark of decisions decides about: environments, what is observed of them, and shapes of operations.

Two worlds. The *bare* one has neither backlogs nor observations and few kinds of rules; figures of older releases are
of it. In the *busy* one every preference and most constraints have something to say: work runs and waits, runs were
observed, there are accelerators, operators' rules, maintenance windows, paused parts, deadlines, data in other regions.
"""

from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import Any

from landbridge.domain.backlog import Ahead, Backlog, Line, Step
from landbridge.domain.candidate import Candidate, Control, Hold
from landbridge.domain.carbon import Reading
from landbridge.domain.catalogue import Catalogue
from landbridge.domain.classify import classify
from landbridge.domain.evidence import ClaimState
from landbridge.domain.preferences import Observed
from landbridge.domain.requirements import RequirementClass
from landbridge.domain.runs import Ran
from landbridge.domain.units import format_cpu
from support.deciding import NOW, a_catalogue, a_contract, all_proven, an_environment, effective, merged

SHAPES = 1000
_PLACES = (("eu-de-1", ["DE", "EU"]), ("eu-fr-1", ["FR", "EU"]), ("us-east-1", ["US"]), ("ap-jp-1", ["JP"]))
_TIERS = ("standard", "restricted")
_PRIORITIES = {"urgent": 90, "normal": 50, "low": 10}
_COMPONENTS = ("trainer@3", "scorer@1", "")
_GPUS = ("gpu-80gb", "gpu-40gb")
_RULES: dict[str, dict[str, Any]] = {
    "big-work": {"expression": "operation.cpu < 300.0", "message": "no more than 300 processors for one operation"},
    "at-home": {
        "expression": "size(operation.jurisdictions) == 0 || environment.operatedBy == 'own'",
        "message": "what is bound to a place runs in our own environments",
        "scope": {"projects": ["retail-eu"]},
    },
}
_GIB = 1024**3


# -- environments ------------------------------------------------------------------------------------------------------


def environments(count: int, *, busy: bool) -> list[Candidate]:
    """Make `count` environments that differ in place, size, tier, cost, quality and what is proven."""
    contracts = [a_contract(_name(number), **_spec(number, busy=busy)) for number in range(count)]
    catalogue = _busy_catalogue(contracts) if busy else a_catalogue(*contracts)
    return [_environment(number, catalogue, busy=busy) for number in range(count)]


def _busy_catalogue(contracts: list[Any]) -> Catalogue:
    return a_catalogue(
        *contracts,
        queues={"training": {"priority": 50, "priorityClasses": _PRIORITIES}},
        classes={"gpu-40gb": {"attributes": {"memory": "40Gi"}}},
        rules=_RULES,
        connections={"events": {"size": "20G", "movement": {"allowed": True}}},
    )


def _environment(number: int, catalogue: Catalogue, *, busy: bool) -> Candidate:
    spec = _spec(number, busy=busy)
    evidence: dict[str, None] = {}
    if number % 7 == 0:  # something is claimed and not proven
        evidence = {next(iter(all_proven(a_contract(_name(number), **spec)))): None}
    paused = Control(holds=(Hold("cpu-general", reason="new kernel", by="ann"),)) if busy and number % 37 == 0 else None
    return an_environment(_name(number), evidence=evidence, control=paused, catalogue=catalogue, **spec)


def _name(number: int) -> str:
    return f"env-{number:03d}"


def _spec(number: int, *, busy: bool) -> dict[str, Any]:
    region, jurisdictions = _PLACES[number % len(_PLACES)]
    spec: dict[str, Any] = {
        "location": {"regions": [region], "jurisdictions": jurisdictions},
        "classes": {"cpu-general": {"cpu": str(4 + number % 5 * 16), "memory": f"{8 + number % 9 * 32}Gi"}},
        "connections": {"events": {"region": region}},
        "boundaries": {"securityTier": _TIERS[number // 2 % 2]},
        "cost": {"perHour": {"cpu-general": 0.03 + number % 11 * 0.01}},
        "objectives": {"availability": f"{99 + number % 10 * 0.1:.1f}%", "startWithin": f"{1 + number % 6}m"},
    }
    return merged(spec, _busy_spec(number)) if busy else spec


def _busy_spec(number: int) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "classes": {"cpu-general": {"speed": (0.8, 1.0, 1.25, None)[number % 4]}},
        "connections": {
            "events": {
                "region": _PLACES[(number + (number % 4 == 0)) % len(_PLACES)][0],  # a quarter is far from its data
                "bandwidth": "10Gbit/s",
                "encrypted": True,
            }
        },
        "carbon": {"gramsPerKWh": 20 + number % 37 * 15, "measured": number % 2 == 0},
        "cost": {"egressPerGB": 0.01 + number % 5 * 0.02},
        "quotas": {"running": 20 + number % 60},
    }
    if number % 3 == 0:
        gpu = _GPUS[number // 3 % 2]
        spec["classes"][gpu] = {"count": 8 + number % 5 * 8, "memory": f"{gpu[4:6]}Gi", "cpu": "64", "speed": 1.0}
        spec["cost"]["perHour"] = {gpu: 1.5 + number % 7 * 0.25}
    if number % 11 == 0:
        spec["location"] = {"operatedBy": "provider"}
    if number % 6 == 0:
        spec["maintenance"] = [{"rrule": "FREQ=DAILY;BYHOUR=4;BYMINUTE=0;BYSECOND=0", "duration": "1h"}]
    if number % 23 == 0:
        spec["support"] = {"until": "2026-10-31"}
    return spec


def evidence_renewed(candidate: Candidate, turn: int) -> Candidate:
    """Return an environment whose probes ran again: everything observed later, one claim of 16 the other way round."""
    later = timedelta(seconds=turn)
    states = {claim: _renewed(state, later) for claim, state in candidate.evidence.items()}
    if turn % 16 == 0:
        states = dict(islice(states.items(), 1, None))
    return replace(candidate, evidence=states, evidence_version=candidate.evidence_version + 1)


def _renewed(state: ClaimState, later: timedelta) -> ClaimState:
    decisive = state.decisive._replace(at=state.decisive.at + later, expires=state.decisive.expires + later)
    return state._replace(expires=state.expires + later, decisive=decisive)


# -- observations ------------------------------------------------------------------------------------------------------


def observations(count: int, turn: int) -> dict[str, Observed]:
    """Return what is observed of `count` environments at the `turn`-th look: two thirds have work that waits."""
    return {_name(number): _observed(number, turn) for number in range(count)}


def _observed(number: int, turn: int) -> Observed:
    seed = number * 31 + turn * 7
    sizes = [f"{format_cpu(500 + shape)} processors" for shape in range(number % 10 * 3, SHAPES, 30)]
    sizes += [f"{count} {gpu}" for gpu in _GPUS for count in range(1, 9)]
    ran = Ran(600.0 + seed % 900, 3 + seed % 9, "2026-11-30 02Z")
    return Observed(
        starts=seed % 20,
        start_delay_s=0.5 + seed % 40,
        attempts=10 + seed % 40,
        failures=seed % 5,
        runs={f"{_COMPONENTS[0]} on {size}": ran for size in sizes} if number % 2 else {},
        backlog=_backlog(number, turn) if number % 3 else None,
        carbon=Reading(80.0 + seed % 400, "carbon source grid") if number % 2 == 0 else None,
    )


def _backlog(number: int, turn: int) -> Backlog:
    seed = number * 17 + turn
    steps = 4 + seed % 20
    cpu, memory = (4 + number % 5 * 16) * 1000, (8 + number % 9 * 32) * _GIB
    return Backlog(
        {
            "cpu": _line(cpu, steps, seed),
            "memory": _line(memory, steps, seed),
            "running": _line(20 + number % 60, steps, seed),
        },
        held=steps,
        waiting=seed % 200,
        unknown=seed % 3,
    )


def _line(most: int, steps: int, seed: int) -> Line:
    free = [Step(0.0, 0), *(Step(30.0 * at + seed % 30, most * at // steps) for at in range(1, steps + 1))]
    ahead = [Ahead(priority, most * (1 + at) // 4, 300.0 + seed % 600) for at, priority in enumerate((90, 50, 10))]
    return Line(tuple(free), tuple(ahead))


# -- operations --------------------------------------------------------------------------------------------------------


def classes(*, busy: bool, first: int = 0, count: int = SHAPES) -> list[RequirementClass]:
    """Read `count` shapes; they are of distinct requirement classes, also from those before the `first`."""
    found = [classify(effective(**_operation(number, busy=busy))) for number in range(first, first + count)]
    distinct = len({item.key for item in found})
    if distinct != count:
        raise RuntimeError(f"expected {count} distinct requirement classes, made {distinct}")
    return found


def _operation(number: int, *, busy: bool) -> dict[str, Any]:
    constraints: dict[str, Any] = {}
    if number % 3 == 0:
        constraints["jurisdictions"] = [("EU", "US", "DE")[number // 3 % 3]]
    if number % 4 == 0:
        constraints["securityTier"] = _TIERS[number // 4 % 2]
    spec: dict[str, Any] = {
        "resources": {"requests": {"cpu": f"{500 + number}m", "memory": f"{1 + number % 64}Gi"}},
        "lifecycle": {"expectedDuration": f"{1 + number % 120}m"},
    }
    if number % 5 == 0:
        spec["inputs"] = {"events": {"connection": "events", "path": "x"}}
    if busy:
        spec = merged(spec, _busy_operation(number))
        if number % 13 == 0:
            constraints["deadline"] = (NOW + timedelta(minutes=5 + number % 97)).isoformat()
    if constraints:
        spec["constraints"] = constraints
    return spec


def _busy_operation(number: int) -> dict[str, Any]:
    spec: dict[str, Any] = {"priority": list(_PRIORITIES)[number % 3]}
    component = _COMPONENTS[number % len(_COMPONENTS)]
    if component:
        spec["component"] = component
    if number % 5 == 0:
        spec["inputs"] = {"events": {"size": f"{1 + number % 40}G"}}
    if number % 8 == 0:
        spec["resources"] = {"accelerator": {"class": _GPUS[number // 8 % 2], "count": 1 + number % 8}}
    return spec
