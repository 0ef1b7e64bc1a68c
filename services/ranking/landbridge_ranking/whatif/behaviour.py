"""How environments of a scenario really do: how soon work starts, how fast it is done, which attempts they let down."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from landbridge.domain import units
from landbridge.schema import documents_v1 as schema
from landbridge_ranking.whatif.problems import ScenarioError


class Course(NamedTuple):
    """How one attempt goes: seconds from placement to start and from start to end, and whether it was let down."""

    delay_s: float
    runs_s: float
    let_down: bool


@dataclass(frozen=True, slots=True)
class _Behaviour:
    speed: float
    delay_s: float
    failures: float


class Behaviours:
    """How all of them do. Nothing is drawn in order, so that one policy's choices change nothing of another's luck."""

    def __init__(self, stated: Mapping[str, schema.Behaviour], seed: int = 0) -> None:
        self._by_name = {
            name: _Behaviour(
                each.speed or 1.0,
                units.parse_duration(each.start_delay) / 1000 if each.start_delay else 0.0,
                each.failures,
            )
            for name, each in stated.items()
        }
        self._seed = seed

    def course(self, environment: str, operation: str, round_: int, duration_s: float) -> Course:
        """Return how the attempt of that round goes there, of work that takes so many seconds at speed 1."""
        found = self._by_name.get(environment)
        if found is None:
            return Course(0.0, duration_s, let_down=False)
        runs_s = duration_s / found.speed
        if not found.failures:
            return Course(found.delay_s, runs_s, let_down=False)
        luck, way = self._drawn(environment, operation, round_)
        if luck >= found.failures:
            return Course(found.delay_s, runs_s, let_down=False)
        return Course(found.delay_s, runs_s * way, let_down=True)

    def _drawn(self, environment: str, operation: str, round_: int) -> tuple[float, float]:
        """Return two numbers from 0 to 1 that stand for the attempt: the same in every run and on every machine."""
        told = f"{self._seed}/{environment}/{operation}/{round_}".encode()
        drawn = hashlib.blake2b(told, digest_size=16).digest()
        return int.from_bytes(drawn[:8]) / 2**64, int.from_bytes(drawn[8:]) / 2**64


def read_behaviours(spec: schema.ScenarioSpec, environments: Mapping[str, object]) -> Behaviours:
    """Return how the scenario says that its environments do. ScenarioError for one that is not there."""
    for name in spec.behaviour:
        if name not in environments:
            known = ", ".join(sorted(environments)) or "none"
            raise ScenarioError(f"spec.behaviour: {name} has no EnvironmentContract among the documents; found {known}")
    return Behaviours(spec.behaviour, spec.seed)
