"""A whole scenario: read it, run every policy over the same work, compare."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from landbridge.schema import documents_v1 as schema
from landbridge_ranking.whatif.behaviour import read_behaviours
from landbridge_ranking.whatif.deciding import Decider
from landbridge_ranking.whatif.engine import Run
from landbridge_ranking.whatif.files import Scenario, read_all, read_scenario
from landbridge_ranking.whatif.machines import Machines, read_machines
from landbridge_ranking.whatif.measures import Report, Watch, measure
from landbridge_ranking.whatif.observer import Observer
from landbridge_ranking.whatif.problems import ScenarioError
from landbridge_ranking.whatif.work import Arrival, read_work
from landbridge_ranking.whatif.world import START, make_book

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Compared:
    """A scenario's reports by policy, in the order in which they were named; `seconds` is how long it took here."""

    name: str
    operations: int
    reports: dict[str, Report]
    refusals: dict[str, dict[str, list[str]]]
    seconds: float


def simulate(
    file: Path,
    progress: Progress = lambda _name, _done, _of: None,
    *,
    trace: Path | None = None,
    machines_file: Path | None = None,
) -> Compared:
    """Run a scenario. `progress` hears the policy, how many operations have ended, and of how many.

    `trace` and `machines_file` are read instead of the files that the scenario names.
    Raises ScenarioError with everything that is wrong with it.
    """
    began = time.monotonic()
    scenario = _with_files(read_scenario(file), trace, machines_file)
    machines = read_machines(scenario.folder, scenario.spec.machines) if scenario.spec.machines is not None else None
    work = read_work(scenario, machines)
    reports: dict[str, Report] = {}
    refusals: dict[str, dict[str, list[str]]] = {}
    for policy in scenario.spec.policies:
        reports[policy.name], refusals[policy.name] = _run(scenario, machines, work, policy, progress)
    return Compared(scenario.name, len(work), reports, refusals, time.monotonic() - began)


def _with_files(scenario: Scenario, trace: Path | None, machines: Path | None) -> Scenario:
    spec = scenario.spec
    if trace is not None:
        spec = spec.model_copy(update={"trace": spec.trace.model_copy(update={"file": str(trace.absolute())})})
    if machines is not None:
        if spec.machines is None:
            raise ScenarioError("--machines: the scenario has no spec.machines to read a list for; leave it out")
        listed = spec.machines.model_copy(update={"file": str(machines.absolute())})
        spec = spec.model_copy(update={"machines": listed})
    return replace(scenario, spec=spec)


def _run(
    scenario: Scenario,
    machines: Machines | None,
    work: list[Arrival],
    policy: schema.ScenarioPolicy,
    progress: Progress,
) -> tuple[Report, dict[str, list[str]]]:
    documents = scenario.documents.with_others(read_all(scenario.folder, policy.documents))
    book = make_book(documents, machines, policy.preferences)
    decider, watch, observer = Decider(book, policy.choosing), Watch(book.view), Observer(book)
    behaviours = read_behaviours(scenario.spec, documents.of("EnvironmentContract"))
    outcome = Run(decider, work, watch, observer, behaviours, lambda done: progress(policy.name, done, len(work))).run()
    refused = {
        arrival.operation: [
            f"{verdict.environment}: {violation.reason}: expected {violation.wanted}, found {violation.found}"
            for verdict in decider.verdict(arrival.shape).verdicts
            for violation in verdict.violations
        ]
        for arrival, reason, _ in outcome.unplaced
        if reason == "no-eligible-environment"
    }
    observed = observer.seen(START + timedelta(seconds=outcome.ends_s))
    return measure(outcome, work, book.view, watch.seen, observed), refused
