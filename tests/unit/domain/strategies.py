"""Random operations and environments from small sets of parts, so that rules meet each other in every combination."""

from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from landbridge.domain import claims
from landbridge.domain.candidate import Candidate, Control, Hold, Link, LinkState, build_candidate
from landbridge.domain.catalogue import Catalogue
from landbridge.domain.contract import Contract
from landbridge.domain.features import PROCESS_FEATURES
from landbridge.domain.requirements import RequirementClass
from support.deciding import NOW, a_catalogue, a_contract, an_operation, proof, states

ENVIRONMENTS = ("alpha", "beta", "gamma")
REGIONS = ("eu-de-1", "us-east-1")
CONNECTIONS = ("events", "models", "shared")


def _some(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from((None, *values))


def _subset(*values: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), unique=True, max_size=2)


def _drop_nothing(spec: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if value is not None}


_INPUT = st.fixed_dictionaries(
    {"connection": st.sampled_from(CONNECTIONS)},
    optional={"size": st.sampled_from(("1G", "20G")), "license": st.sampled_from(("Apache-2.0", "LicenseRef-x"))},
)
_CONSTRAINTS = st.fixed_dictionaries(
    {},
    optional={
        "jurisdictions": _subset("EU", "US"),
        "regions": _subset(*REGIONS),
        "securityTier": st.sampled_from(("open", "standard", "restricted")),
        "controls": _subset("default-deny-egress", "encrypted-storage", "secure-boot"),
        "environments": st.fixed_dictionaries(
            {}, optional={"allow": _subset(*ENVIRONMENTS), "forbid": _subset(*ENVIRONMENTS)}
        ),
        "deadline": st.integers(-60, 600).map(lambda minutes: (NOW + timedelta(minutes=minutes)).isoformat()),
        "architectures": _subset("amd64", "arm64"),
        "operatedBy": _subset("own", "provider"),
    },
)
_ACCELERATOR = st.fixed_dictionaries(
    {"count": st.integers(1, 10)},
    optional={
        "class": st.sampled_from(("gpu-80gb", "gpu-40gb")),
        "memory": st.sampled_from(("30Gi", "60Gi")),
        "precision": _subset("bf16", "fp8"),
        "interruptible": st.sampled_from(("allow", "forbid", "require")),
    },
)


@st.composite
def operations(draw: st.DrawFn) -> RequirementClass:
    """Any operation; most can run somewhere."""
    accelerator = draw(st.none() | _ACCELERATOR)
    resources: dict[str, Any] = {"requests": {"cpu": draw(st.sampled_from(("1", "8", "100"))), "memory": "1Gi"}}
    if accelerator:
        resources["accelerator"] = accelerator
    spec = {
        "type": draw(st.sampled_from(("job", "job", "distributed-job"))),
        "replicas": draw(st.integers(1, 3)),
        "queue": draw(st.sampled_from(("training", "batch"))),
        "resources": resources,
        "inputs": draw(st.dictionaries(st.sampled_from(("a", "b")), _INPUT, max_size=2)),
        "outputs": draw(st.dictionaries(st.just("out"), _INPUT, max_size=1)),
        "identity": draw(_some("trainer", "analyst")),
        "component": draw(_some("trainer@3")),
        "dataClass": draw(_some("confidential", "restricted")),
        "constraints": draw(_CONSTRAINTS),
        "preferences": draw(
            st.dictionaries(st.sampled_from(("cost", "reliability")), st.sampled_from((0.0, 1.0, 2.0)))
        ),
        "lifecycle": {"expectedDuration": draw(st.sampled_from(("1m", "2h")))},
    }
    return an_operation(
        draw(st.sampled_from(("retail-eu", "search"))),
        excluded=tuple(draw(_subset(*ENVIRONMENTS))),
        failed_over=draw(st.booleans()),
        **_drop_nothing(spec),
    )


_CONNECTION = st.fixed_dictionaries(
    {"type": st.just("s3"), "access": st.sampled_from(("read-only", "read-write"))},
    optional={
        "region": st.sampled_from(REGIONS),
        "size": st.just("5G"),
        "projects": st.sampled_from((["*"], ["retail-eu"])),
        "licenses": st.just(["Apache-2.0"]),
        "dataClass": st.just("restricted"),
    },
)
_GPU = st.fixed_dictionaries(
    {"count": st.integers(1, 16), "memory": st.sampled_from(("40Gi", "80Gi"))},
    optional={
        "precision": _subset("bf16", "fp8"),
        "interruptible": st.booleans(),
        "perNode": st.just(8),
        "speed": st.sampled_from((0.5, 1.0, 2.0)),
        "cpu": st.just("32"),
        "via": st.just({"nodeSelector": {"pool": "gpu"}}),
    },
)


@st.composite
def contracts(draw: st.DrawFn, name: str, version: int = 1) -> Contract:
    classes = {"cpu-general": {"cpu": draw(st.sampled_from(("4", "64"))), "memory": "256Gi"}}
    classes |= draw(st.dictionaries(st.sampled_from(("gpu-80gb", "gpu-40gb")), _GPU, max_size=2))
    region = draw(st.sampled_from(REGIONS))
    return a_contract(
        name,
        version,
        location={
            "regions": [region],
            "jurisdictions": ["DE", "EU"] if region == "eu-de-1" else ["US"],
            "operatedBy": draw(_some("own", "provider")),
        },
        classes=classes,
        workloads=draw(st.sampled_from((["job"], ["job", "distributed-job"]))),
        connections={"events": None, **draw(st.dictionaries(st.sampled_from(CONNECTIONS), _CONNECTION))},
        boundaries={"securityTier": draw(_some("standard", "restricted")), "network": {"default": "deny"}},
        storage=draw(st.dictionaries(st.just("fast"), st.just({"encrypted": True}))),
        quotas={"running": draw(st.integers(1, 50))},
        cost={"perHour": draw(st.dictionaries(st.just("cpu-general"), st.sampled_from((0.0, 0.05, 1.0))))},
        links={other: {"bandwidth": "1Gbit/s", "encrypted": True} for other in draw(_subset(*ENVIRONMENTS))},
        maintenance=draw(
            st.lists(st.just({"rrule": "FREQ=DAILY;BYHOUR=5;BYMINUTE=0;BYSECOND=0", "duration": "1h"}), max_size=1)
        ),
        accepts=draw(st.sampled_from(({}, {"projects": ["retail-eu"]}))),
    )


LINKS = st.sampled_from(
    [Link(state, NOW, frozenset(PROCESS_FEATURES)) for state in (LinkState.CONNECTED, *LinkState)]
    + [Link(LinkState.CONNECTED, NOW, frozenset({"type.job"}))]
)
HOLDS = st.sampled_from(
    (Hold("cpu-general"), Hold("gpu-80gb", by="ann", reason="new driver"), Hold(node_selector="pool=gpu", by="bob"))
)
CONTROLS = st.sampled_from((Control(), Control(), Control(paused=True), Control(draining=True, by="ann"))) | st.builds(
    Control, holds=st.lists(HOLDS, unique=True, max_size=2).map(tuple)
)


@st.composite
def evidence(draw: st.DrawFn, contract: Contract, now: datetime = NOW) -> dict[str, Any]:
    """Evidence for most claims; some failed, some old, some about to expire."""
    named = [f"classes.{name}" for name in contract.classes] + [f"connections.{name}" for name in contract.connections]
    named += [claims.RUNTIME, claims.IDENTITY, claims.NETWORK, claims.CLOCK, "storage.fast"]
    pieces = {}
    for claim in named:
        kind = draw(st.integers(0, 19))
        if kind == 0:
            continue
        result = "failed" if kind == 1 else "unknown" if kind == 2 else "proven"
        lasts = timedelta(minutes=draw(st.sampled_from((-5, 5, 60, 600))) if kind < 8 else 60)
        amount = {"proven": float(draw(st.integers(0, 16))), "claimed": 16.0} if "gpu" in claim and kind < 8 else {}
        pieces[claim] = proof(claim, result, at=now - timedelta(minutes=1), lasts=lasts, **amount)
    return states(pieces)


EXPRESSIONS = (
    "true",
    "false",
    "operation.project == 'search' || operation.cpu < 10.0",
    "!has(operation.accelerator) || operation.accelerator.count <= 4",
    "operation.accelerator.count <= 4",
    "environment.regions.exists(region, region.startsWith('eu-'))",
    "environment.classes.all(one, !one.accelerator || one.memoryGiB >= 80.0)",
    "environment.classes.exists(one, one.interruptible)",
    "operation.connections.all(needed, !needed.writes || needed.name in ['models', 'shared'])",
    "size(operation.jurisdictions) > 0 ? environment.operatedBy == 'own' : true",
)
RULES = st.fixed_dictionaries(
    {"expression": st.sampled_from(EXPRESSIONS), "message": st.just("house rule")},
    optional={
        "violation": st.sampled_from(("never", "not-now")),
        "scope": st.fixed_dictionaries(
            {}, optional={"projects": _subset("retail-eu", "search"), "queues": _subset("training", "batch")}
        ),
        "environments": st.fixed_dictionaries({}, optional={"forbid": _subset(*ENVIRONMENTS)}),
    },
)


@st.composite
def catalogues(draw: st.DrawFn, *known: Contract) -> Catalogue:
    queue = st.fixed_dictionaries(
        {},
        optional={
            "priority": st.integers(0, 100),
            "environments": st.fixed_dictionaries({"allow": _subset(*ENVIRONMENTS)}),
            "projects": _subset("retail-eu", "search"),
        },
    )
    return a_catalogue(
        *known,
        queues={"training": draw(queue), "batch": {}},
        projects=draw(st.dictionaries(st.just("retail-eu"), st.just({"environments": {"forbid": ["gamma"]}}))),
        classes=draw(st.dictionaries(st.just("gpu-40gb"), st.just({"attributes": {"memory": "40Gi"}}))),
        rules=draw(st.dictionaries(st.sampled_from(("house", "yard")), RULES, max_size=2)),
        connections=draw(
            st.dictionaries(st.just("events"), st.just({"jurisdictions": ["EU"], "movement": {"allowed": True}}))
        ),
    )


@st.composite
def candidates(draw: st.DrawFn, name: str, catalogue: Catalogue | None = None) -> Candidate:
    contract = draw(contracts(name))
    return build_candidate(
        contract,
        draw(st.sampled_from(("active", "active", "active", "draft", "retiring"))),
        evidence=draw(evidence(contract)),
        evidence_version=1,
        link=draw(LINKS),
        control=draw(CONTROLS),
        catalogue=catalogue or draw(catalogues(contract)),
    )
