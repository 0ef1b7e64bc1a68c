"""What a run is judged by. All times are seconds of the scenario, shares are of one."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from landbridge.domain.candidate import Candidate
from landbridge.domain.contract import CPU, MEMORY, RUNNING
from landbridge.domain.limits import Limits
from landbridge.domain.preferences import Observed
from landbridge.domain.view import View
from landbridge_ranking.whatif.engine import Outcome, Placed
from landbridge_ranking.whatif.work import Arrival

_HOUR = 3600.0
QUANTILES = (0.5, 0.95, 0.99)
Scope = tuple[str, str]  # `environment` or `queue`, and its name


@dataclass(frozen=True)
class Waits:
    """Seconds from arrival to the first placement."""

    count: int
    mean: float
    quantiles: tuple[float, ...]
    most: float


@dataclass
class Watched:
    """What was seen while a run went on.

    `exceeded` are moments at which more was held than a limit allows: counted here by adding up anew, not by the
    ledger. `series` is the share of all devices in use at moments.
    """

    exceeded: list[str] = field(default_factory=list)
    series: list[tuple[float, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """One policy's figures. Shares in use are means over the time in which work arrives.

    `waited` are all waits, shortest first; `series` is the share of all devices in use at moments. `let_down` are
    attempts that environments let down, `observed` what was known of each at the end.
    """

    operations: int
    ended: int
    waits: Waits
    waits_by_queue: dict[str, Waits]
    unplaced: dict[str, int]
    utilisation: dict[str, float]
    devices: float
    devices_most: float
    cost: dict[str, float]
    unpriced: int
    grams_per_kwh: float | None
    fairness: float
    evictions: int
    let_down: int
    observed: dict[str, Observed]
    makespan_s: float
    exceeded: tuple[str, ...]
    waited: tuple[float, ...]
    series: tuple[tuple[float, float], ...]
    assessments: int
    passes: int


class Watch:
    """Adds up what is held as it is taken and given back, and compares it at every moment with what may be held."""

    def __init__(self, view: View) -> None:
        self.seen = Watched()
        self._chain = Limits(view.catalogue, view.capacity()).chain
        self._most: dict[Scope, dict[str, int]] = {
            ("environment", name): dict(amounts) for name, amounts in view.capacity().items()
        }
        for name, queue in view.catalogue.queues.items():
            most = {r: amount + queue.borrow.get(r, 0) for r, amount in queue.quota.items()}
            if queue.concurrency is not None:
                most[RUNNING] = min(queue.concurrency, most.get(RUNNING, queue.concurrency))
            self._most["queue", name] = most
        self._devices = devices_of(view)
        self._whole = sum(self._devices.values())
        self._used: dict[Scope, dict[str, int]] = {scope: {} for scope in self._most}
        self._held = 0

    def takes(self, placed: Placed) -> None:
        self._add(placed, 1)

    def gives_back(self, placed: Placed) -> None:
        self._add(placed, -1)

    def _add(self, placed: Placed, sign: int) -> None:
        queues = self._chain(placed.arrival.shape.requirements.queue)
        scopes = [("environment", placed.environment), *(("queue", name) for name in queues)]
        for scope in scopes:
            used = self._used.setdefault(scope, {})
            for resource, amount in placed.amounts.items():
                used[resource] = used.get(resource, 0) + sign * amount
        self._held += sign * sum(amount for resource, amount in placed.amounts.items() if resource in self._devices)

    def moment(self, at_s: float) -> None:
        for scope, most in self._most.items():
            used = self._used[scope]
            for resource, limit in most.items():
                if used.get(resource, 0) > limit:
                    told = f"held {used[resource]} of {resource}, allowed {limit}"
                    self.seen.exceeded.append(f"at {at_s:g} s {' '.join(scope)} {told}")
        self.seen.series.append((at_s, self._held / self._whole if self._whole else 0.0))


def devices_of(view: View) -> dict[str, int]:
    """Return the devices of all environments by class."""
    found: Counter[str] = Counter()
    for amounts in view.capacity().values():
        found.update({name: amount for name, amount in amounts.items() if name not in _HOST})
    return dict(found)


_HOST = frozenset({CPU, MEMORY, RUNNING, "ephemeral-storage"})


def measure(
    outcome: Outcome, work: Sequence[Arrival], view: View, watched: Watched, observed: Mapping[str, Observed]
) -> Report:
    """Bring a run to figures."""
    first: dict[str, float] = {}
    for each in sorted(outcome.placed, key=lambda placed: placed.at_s):
        first.setdefault(each.arrival.operation, each.at_s - each.arrival.at_s)
    queue_of = {each.operation: each.shape.requirements.queue for each in work}
    by_queue: dict[str, list[float]] = defaultdict(list)
    for name, waited in first.items():
        by_queue[queue_of[name]].append(max(waited, 0.0))
    candidates = {name: versions[0] for name, versions in view.candidates.items()}
    cost, unpriced = _cost(outcome.placed)
    return Report(
        operations=len(work),
        ended=sum(each.finished for each in outcome.placed),
        waits=_waits([max(waited, 0.0) for waited in first.values()]),
        waits_by_queue={name: _waits(found) for name, found in sorted(by_queue.items())},
        unplaced=dict(Counter(reason for _, reason, _ in outcome.unplaced).most_common()),
        utilisation=_utilisation(outcome, view),
        devices=_devices(outcome, view),
        devices_most=max((share for _, share in watched.series), default=0.0),
        cost=cost,
        unpriced=unpriced,
        grams_per_kwh=_grams(outcome.placed, candidates),
        fairness=_fairness(outcome, view),
        evictions=outcome.evictions,
        let_down=outcome.let_down,
        observed=dict(observed),
        makespan_s=outcome.ends_s,
        exceeded=tuple(watched.exceeded),
        waited=tuple(sorted(max(waited, 0.0) for waited in first.values())),
        series=tuple(watched.series),
        assessments=outcome.assessments,
        passes=outcome.passes,
    )


def _waits(found: list[float]) -> Waits:
    found.sort()
    if not found:
        return Waits(0, 0.0, (0.0,) * len(QUANTILES), 0.0)
    at = [found[min(ceil(q * len(found)), len(found)) - 1] for q in QUANTILES]
    return Waits(len(found), sum(found) / len(found), tuple(at), found[-1])


def _held(placed: Iterable[Placed], until_s: float) -> dict[str, dict[str, float]]:
    """Return amount times seconds by environment and resource, up to a moment."""
    found: dict[str, dict[str, float]] = {}
    for each in placed:
        seconds = min(each.until_s, until_s) - min(each.at_s, until_s)
        held = found.setdefault(each.environment, {})
        for resource, amount in each.amounts.items():
            held[resource] = held.get(resource, 0.0) + amount * seconds
    return found


def _utilisation(outcome: Outcome, view: View) -> dict[str, float]:
    """Return by environment the share of the resource that is held most."""
    until = outcome.arrived_s or outcome.ends_s
    held, capacity = _held(outcome.placed, until), view.capacity()
    return {
        name: max(
            (held.get(name, {}).get(r, 0.0) / (whole * until) for r, whole in most.items() if whole and r != RUNNING),
            default=0.0,
        )
        if until
        else 0.0
        for name, most in sorted(capacity.items())
    }


def _devices(outcome: Outcome, view: View) -> float:
    """Return the share of all devices that was held."""
    until = outcome.arrived_s or outcome.ends_s
    devices = devices_of(view)
    whole = sum(devices.values()) * until
    held = sum(a for used in _held(outcome.placed, until).values() for r, a in used.items() if r in devices)
    return held / whole if whole else 0.0


def _cost(placed: Iterable[Placed]) -> tuple[dict[str, float], int]:
    """Return money by currency for the time that was held, and how many stays have no known price."""
    money: dict[str, float] = {}
    unpriced = 0
    for each in placed:
        if each.price is None:
            unpriced += 1
            continue
        hourly, currency = each.price
        money[currency] = money.get(currency, 0.0) + hourly * (each.until_s - each.at_s) / _HOUR
    return {currency: round(value, 2) for currency, value in sorted(money.items())}, unpriced


def _grams(placed: Iterable[Placed], candidates: Mapping[str, Candidate]) -> float | None:
    """Return the carbon intensity where work ran, weighted by device time; None where it is not stated everywhere."""
    total = weight = 0.0
    for each in placed:
        grams = candidates[each.environment].contract.grams_per_kwh
        if grams is None:
            return None
        time = (each.until_s - each.at_s) * max(each.arrival.shape.requirements.total_accelerators, 1)
        total += grams * time
        weight += time
    return total / weight if weight else None


def _fairness(outcome: Outcome, view: View) -> float:
    """Return Jain's index over projects of what was held by weight: 1 is equal, 1/n is all for one."""
    totals = Limits(view.catalogue, view.capacity()).totals
    held: dict[str, dict[str, float]] = {}
    for each in outcome.placed:
        used = held.setdefault(each.arrival.shape.requirements.project, {})
        for resource, amount in each.amounts.items():
            used[resource] = used.get(resource, 0.0) + amount * (each.until_s - each.at_s)
    shares = []
    for project, used in held.items():
        document = view.catalogue.projects.get(project)
        dominant = max((amount / totals[r] for r, amount in used.items() if totals.get(r)), default=0.0)
        shares.append(dominant / (document.weight if document is not None and document.weight else 1.0))
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0
