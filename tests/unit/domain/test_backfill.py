"""What goes on beside work for which room is kept never delays it, in whatever order the present work ends."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

import pytest

from landbridge.domain.admission import Admission
from landbridge.domain.ledger import Charge, Ledger
from landbridge.domain.limits import Limits
from landbridge.domain.queues import WaitReason
from landbridge.domain.reservations import MARGIN
from landbridge.domain.tickets import Ticket
from support.deciding import NOW, a_catalogue
from unit.domain.admission_world import a_plan, names_of, wait_of

MINUTE = timedelta(minutes=1)


class Running(NamedTuple):
    """Work that runs: it ends `after`, and was expected to end no later than that."""

    charge: Charge
    after: timedelta


def an_admission(running: list[Running], capacity: Mapping[str, int], queue: Mapping[str, int | str]) -> Admission:
    limits = Limits(a_catalogue(queues={"q": {"quota": dict(queue)} if queue else {}}), {"x": dict(capacity)})
    return Admission(Ledger([item.charge for item in running]), limits, patience=timedelta(0))


def held(name: str, amounts: Mapping[str, int], ends: datetime | None) -> Charge:
    return Charge(name, 1, "x", "q", "p", amounts, at=NOW, ends=ends)


def start_of_head(
    admission: Admission,
    head: Mapping[str, int],
    running: list[Running],
    small: Sequence[tuple[Mapping[str, int], int]],
) -> tuple[timedelta, int]:
    """Return when the head starts, and how many small ones went on before it. `small` have amounts and a timeout."""
    admission.set_plan("head", a_plan("q", "head", head, environments={"x": 1.0}, priority=5))
    admission.arrive("head", [Ticket("head", 1, 1, NOW)])
    ends = {item.charge.operation: NOW + item.after for item in running}
    timeouts = {}
    for number, (amounts, timeout) in enumerate(small):
        plan = a_plan("q", "small", amounts, environments={"x": 1.0})
        longest = timedelta(minutes=timeout) if timeout else None
        admission.set_plan(f"s{number}", replace(plan, longest=longest))
        admission.arrive(f"s{number}", [Ticket(f"s{number}", 1, 2 + number, NOW)])
        timeouts[f"s{number}"] = longest or timedelta(days=9)
    went_on = 0
    for step in range(2000):
        now = NOW + step * MINUTE
        for operation in [name for name, at in ends.items() if at <= now]:
            admission.release(operation)
            del ends[operation]
        for found in admission.admit(now):
            if found.ticket.operation == "head":
                return now - NOW, went_on
            went_on += 1
            ends[found.ticket.operation] = now + timeouts[found.ticket.operation]
    raise AssertionError("the head never started")


def a_case(
    seed: int,
) -> tuple[dict[str, int], dict[str, int], dict[str, int], list[Running], list[tuple[dict[str, int], int]]]:
    """Make capacity, quota, a head that needs more than is free, present work, and small work that might go on."""
    draw = random.Random(seed)
    capacity = {"running": draw.randint(6, 30), "cpu": 1000 * draw.randint(6, 16), "gpu": draw.randint(4, 12)}
    quota = draw.choice(({}, {"gpu": capacity["gpu"]}, {"cpu": capacity["cpu"] // 1000}))
    used = dict.fromkeys(capacity, 0)
    running: list[Running] = []
    for number in range(draw.randint(1, 8)):
        amounts = _amounts(draw, 4)
        if all(used[r] + n <= capacity[r] for r, n in amounts.items()):
            for r, n in amounts.items():
                used[r] += n
            after = draw.randint(1, 120)
            expected = draw.choice((None, NOW + draw.randint(1, after) * MINUTE))
            running.append(Running(held(f"r{number}", amounts, expected), after * MINUTE))
    head = {"running": 1}
    for resource, step in (("cpu", 1000), ("gpu", 1)):
        if draw.random() < 0.8:
            head[resource] = step * draw.randint(1, capacity[resource] // step)
    small = [(_amounts(draw, 3), draw.choice((0, 1, 5, 20, 60))) for _ in range(draw.randint(1, 12))]
    return capacity, dict(quota), head, running, small


def _amounts(draw: random.Random, most: int) -> dict[str, int]:
    amounts = {"running": 1}
    for resource, step in (("cpu", 1000), ("gpu", 1)):
        if draw.random() < 0.7:
            amounts[resource] = step * draw.randint(1, most)
    return amounts


def backfilled(first: int, count: int) -> int:
    """Compare many cases with and without small work; return how much of it went on before a head."""
    together = 0
    for seed in range(first, first + count):
        capacity, quota, head, running, small = a_case(seed)
        alone, _ = start_of_head(an_admission(running, capacity, quota), head, running, [])
        beside, went_on = start_of_head(an_admission(running, capacity, quota), head, running, small)
        assert beside <= alone, f"seed {seed}: the head starts after {beside}, alone after {alone}"
        together += went_on
    return together


def test_the_head_never_starts_later_for_what_went_on_beside_it() -> None:
    assert backfilled(0, 300) > 150


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_head_never_starts_later_in_thousands_of_cases() -> None:
    assert backfilled(300, 5000) > 2500


def test_short_work_goes_on_only_if_its_timeout_is_over_in_time() -> None:
    present = [Running(held("r", {"running": 1, "gpu": 3}, NOW + 60 * MINUTE), 60 * MINUTE)]
    for minutes, goes in ((58, True), (59, False), (0, False)):
        admission = an_admission(present, {"running": 9, "gpu": 4}, {})
        admission.set_plan("head", a_plan("q", "h", {"running": 1, "gpu": 4}, environments={"x": 1.0}))
        admission.arrive("head", [Ticket("head", 1, 1, NOW)])
        admission.admit(NOW)
        longest = timedelta(minutes=minutes) if minutes else None
        small = replace(a_plan("q", "s", {"running": 1, "gpu": 1}, environments={"x": 1.0}), longest=longest)
        admission.set_plan("small", small)
        admission.arrive("small", [Ticket("small", 1, 2, NOW)])
        assert names_of(admission.admit(NOW)) == (["small"] if goes else []), minutes
        if not goes:
            assert wait_of(admission, "small") is WaitReason.RESERVED
    assert timedelta(minutes=2) == MARGIN


def test_what_is_left_over_anyway_may_be_used_for_any_time() -> None:
    present = [Running(held("r", {"running": 1, "gpu": 8}, None), 60 * MINUTE)]
    admission = an_admission(present, {"running": 9, "gpu": 12}, {})
    admission.set_plan("head", a_plan("q", "h", {"running": 1, "gpu": 8}, environments={"x": 1.0}))
    admission.arrive("head", [Ticket("head", 1, 1, NOW)])
    admission.set_plan("small", a_plan("q", "s", {"running": 1, "gpu": 2}, environments={"x": 1.0}))
    admission.arrive("small", [Ticket(f"s{number}", 1, 2 + number, NOW) for number in range(4)])
    assert names_of(admission.admit(NOW)) == ["s0", "s1"]
