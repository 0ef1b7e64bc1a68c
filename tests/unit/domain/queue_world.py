"""A random tree of queues, work that comes, ends, is displaced and comes again, admitters that crash; all from a seed.

Every event is followed by the checks that must hold at any event. Nothing here is clever: limits are added up anew from
the charges, in the plainest way.
"""

import random
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from landbridge.domain.admission import Admission, Admitted
from landbridge.domain.catalogue import Catalogue, Reclaim
from landbridge.domain.decision_record import Placed, make_record, replay
from landbridge.domain.ledger import Amounts, Charge, Ledger, ScopeKind, Shifted
from landbridge.domain.limits import Limits
from landbridge.domain.placement import Order, order, score
from landbridge.domain.preferences import Measurement
from landbridge.domain.queues import Plan
from landbridge.domain.room_making import Evicted
from landbridge.domain.tickets import Ticket
from support.deciding import NOW, a_catalogue

RESOURCES = ("cpu", "gpu")
PROJECTS = ("a", "b", "c")
# So many rounds without an end of displacing are a loop: the longest that any seed needs is far below.
MOST_ROUNDS = 400


class EndlessError(AssertionError):
    """Displacing has not come to an end."""


def a_tree(draw: random.Random) -> dict[str, dict[str, Any]]:
    """Make one or two trees of queues, two levels deep; a leaf may borrow, displace and reclaim."""
    queues: dict[str, dict[str, Any]] = {}
    for root in range(draw.choice((1, 1, 2))):
        parent = f"root{root}"
        queues[parent] = {"quota": _quota(draw, 4, 16)}
        for leaf in range(draw.randint(1, 3)):
            spec: dict[str, Any] = {"parent": parent, "quota": _quota(draw, 1, 8), "borrow": _quota(draw, 0, 8)}
            spec |= draw.choice(({}, {}, {}, {"concurrency": draw.randint(2, 8)}))
            spec |= draw.choice(({}, {"weight": draw.choice((1, 2, 0.5))}))
            spec |= draw.choice(({}, {"preemption": "lower-priority"}, {"preemption": "lower-priority"}))
            spec |= {"reclaim": draw.choice(("never", "lower-priority", "any", "any"))}
            spec |= draw.choice(({}, {"ageing": "1m"}))
            queues[f"leaf{root}-{leaf}"] = spec
    return queues


def _quota(draw: random.Random, least: int, most: int) -> dict[str, str]:
    return {resource: str(draw.randint(least, most)) for resource in RESOURCES if draw.random() < 0.8}


def an_order(draw: random.Random, names: list[str]) -> Order:
    """Rank environments by one preference, as `rank` would."""
    measured = {"cost": [Measurement(draw.choice((1.0, 2.0, 3.0)), "EUR", "test") for _ in names]}
    return order(score(measured, {"cost": 1.0}, names=names))


MOST_NUMBERS = 1_000_000


class QueueWorld:
    """One run. `events` random events, then everything comes to rest without new work and without ends."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        draw = self.draw
        self.now: datetime = NOW
        projects: dict[str, dict[str, Any]] = {
            "a": {"weight": 2},
            "b": {"limits": {"running": draw.randint(3, 20)}},
            "c": {"limits": {"quota": {"gpu": "9"}}},
        }
        self.catalogue: Catalogue = a_catalogue(queues=a_tree(draw), projects=projects)
        self.capacity: dict[str, Amounts] = {
            name: {"running": draw.randint(4, 20), "cpu": 1000 * draw.randint(4, 12), "gpu": draw.randint(3, 10)}
            for name in ("x", "y", "z")[: draw.randint(1, 3)]
        }
        self.limits = Limits(self.catalogue, self.capacity)
        self.admission = self._admitter([])
        self.plans = [self._plan() for _ in range(draw.randint(3, 10))]
        self.tickets: dict[str, tuple[str, Ticket]] = {}
        self.rounds: dict[str, int] = {}
        self.leaving: list[str] = []
        self.number = 0
        self.displaced = 0
        self.admitted: list[Admitted] = []

    def _admitter(self, charges: list[Charge]) -> Admission:
        return Admission(Ledger(charges), self.limits, patience=timedelta(minutes=self.draw.choice((1, 5, 600))))

    def _plan(self) -> Plan:
        draw = self.draw
        leaves = [name for name in self.catalogue.queues if name.startswith("leaf")]
        queue = draw.choice(leaves)
        document = self.catalogue.queues[queue]
        names = sorted(draw.sample(sorted(self.capacity), draw.randint(1, len(self.capacity))))
        amounts = {"running": 1, **{r: (1000 if r == "cpu" else 1) * draw.randint(1, 3) for r in self._asked()}}
        return Plan(
            queue=queue,
            project=draw.choice(PROJECTS),
            priority=draw.choice((0, 0, 5, 9)),
            weight=1.0,
            order=an_order(draw, names),
            amounts=dict.fromkeys(names, amounts),
            ageing=timedelta(milliseconds=document.ageing_ms),
            preempts=document.preempts,
            reclaim=document.reclaim,
            evictable=draw.random() < 0.85,
            expected=draw.choice((None, timedelta(minutes=10))),
            longest=draw.choice((None, timedelta(minutes=2))),
        )

    def _asked(self) -> list[str]:
        return [r for r in RESOURCES if self.draw.random() < 0.75]

    # -- events -------------------------------------------------------------------------------------------------------

    def run(self, events: int) -> "QueueWorld":
        kinds = (
            self.arrive,
            self.arrive,
            self.arrive,
            self.arrive,
            self.end,
            self.one_leaves,
            self.cancel,
            self.crash,
            self.age,
        )
        for _ in range(events):
            self.draw.choice(kinds)()
            if self.draw.random() < 0.7:
                self.admit()
            self.check()
        self.come_to_rest()
        return self

    def arrive(self) -> None:
        for _ in range(self.draw.randint(1, 6)):
            self._wait(f"op{self.number}", self.draw.randrange(len(self.plans)))

    def _wait(self, operation: str, plan: int) -> None:
        self.number += 1
        self.rounds[operation] = self.rounds.get(operation, 0) + 1
        # Now and then it comes late: it belongs somewhere among those that are there.
        late = self.draw.random() < 0.1
        position = self.draw.randrange(self.number) + self.number / MOST_NUMBERS if late else self.number
        ticket = Ticket(operation, self.rounds[operation], round(position * MOST_NUMBERS), self.now)
        key = f"k{plan}"
        if key not in self.admission.buckets:
            self.admission.set_plan(key, self.plans[plan])
        [placed] = self.admission.arrive(key, [ticket])
        assert placed == ticket._replace(since=min(placed.since, ticket.since))
        self.tickets[operation] = (key, placed)

    def admit(self) -> bool:
        """Run a pass; tell whether it changed anything."""
        before = self._standing()
        admitted = self.admission.admit(self.now)
        for found in admitted:
            self._check_replay(found)
            del self.tickets[found.ticket.operation]
        self.admitted += admitted
        asked, self.admission.evicted = self.admission.evicted, []
        evicted = [item.charge.operation for item in asked]
        self._check_displacing(asked)
        self.leaving += evicted
        self.displaced += len(evicted)
        if admitted or evicted:
            # Equal where nothing but a promise was kept.
            assert self._standing() >= before, "an admission must not lower what is held, by rank"
        return bool(admitted or evicted)

    def end(self) -> None:
        held = [charge.operation for charge in self.admission.ledger.charges()]
        if held:
            self._end(self.draw.choice(held))

    def _end(self, operation: str) -> None:
        self.admission.release(operation)
        if operation in self.leaving:
            self.leaving.remove(operation)

    def one_leaves(self) -> None:
        """One that was asked to leave has left, and waits again."""
        if not self.leaving:
            return
        operation = self.leaving.pop(self.draw.randrange(len(self.leaving)))
        plan = next(int(found.bucket[1:]) for found in reversed(self.admitted) if found.ticket.operation == operation)
        assert self.admission.release(operation) is not None
        self._wait(operation, plan)

    def cancel(self) -> None:
        if self.tickets:
            operation = self.draw.choice(sorted(self.tickets))
            del self.tickets[operation]
            assert self.admission.forget({operation}) == {operation}

    def age(self) -> None:
        self.now += timedelta(minutes=self.draw.choice((1, 3, 10)))

    def crash(self) -> None:
        """Another replica takes over: it knows what was committed, nothing else."""
        charges = self.admission.ledger.charges()
        self.draw.shuffle(charges)
        self.admission = self._admitter(charges)
        for operation in self.leaving:
            self.admission.asked_to_leave(operation)
        for key, ticket in sorted(self.tickets.values(), key=lambda item: item[1].position):
            if key not in self.admission.buckets:
                self.admission.set_plan(key, self.plans[int(key[1:])])
            self.admission.arrive(key, [ticket])

    def come_to_rest(self) -> None:
        """Nothing arrives, nothing ends: displacing must come to an end, and nobody may be left behind."""
        for _ in range(MOST_ROUNDS):
            changed = self.admit()
            self.check()
            if self.leaving:
                self.one_leaves()
            elif not changed and not self.admission.has_more:
                break
        else:
            raise EndlessError(f"{self.displaced} were displaced, and {len(self.leaving)} are still to leave")
        self.check_reclaimed()

    # -- what must hold -----------------------------------------------------------------------------------------------

    def check(self) -> None:
        charges = self.admission.ledger.charges()
        for name, queue in self.catalogue.queues.items():
            inside = [c for c in charges if name in self.limits.chain(c.queue)]
            borrow = queue.borrow if queue.parent else {}
            self._within({r: most + borrow.get(r, 0) for r, most in queue.quota.items()}, inside, name)
            kept = [c for c in inside if not c.borrowed and c.operation not in self.leaving]
            self._within(queue.quota, kept, f"{name}, not borrowed")
            if queue.concurrency is not None:
                assert len(inside) <= queue.concurrency, f"{name} runs {len(inside)} of {queue.concurrency}"
        for name, project in self.catalogue.projects.items():
            mine = [c for c in charges if c.project == name]
            self._within(project.quota, mine, name)
            assert project.running is None or len(mine) <= project.running
        for name, capacity in self.capacity.items():
            self._within(capacity, [c for c in charges if c.environment == name], name)
        waiting = {ticket.operation for bucket in self.admission.buckets.values() for ticket in bucket.tickets}
        assert waiting == set(self.tickets)
        assert waiting.isdisjoint(charge.operation for charge in charges)

    @staticmethod
    def _within(most: Mapping[str, int], charges: list[Charge], whose: str) -> None:
        for resource, limit in most.items():
            held = sum(charge.amounts.get(resource, 0) for charge in charges)
            assert held <= limit, f"{whose} holds {held} of {limit} {resource}"

    def _standing(self) -> list[tuple[int, ...]]:
        """Count what is held, or promised, by rank, the highest first: what each admission must raise."""
        leaving, promises = set(self.leaving), self.admission.promises
        charges = [c for c in self.admission.ledger.charges() if c.operation not in promises.leaving]
        assert leaving <= set(promises.leaving)
        counted = Counter((not c.borrowed, c.priority) for c in [*charges, *promises.promised.values()])
        ranks = [(nominal, priority) for nominal in (True, False) for priority in (9, 5, 0)]
        return [(counted[rank],) for rank in ranks]

    def _check_displacing(self, asked: list[Evicted]) -> None:
        """Whoever displaces must be allowed to, and those displaced must bear it."""
        for charge, claimant in asked:
            queue = self.catalogue.queues[claimant.queue]
            assert charge.evictable
            if charge.queue == claimant.queue:
                assert charge.priority < claimant.priority
                assert queue.preempts or queue.reclaim is not Reclaim.NEVER
                assert charge.borrowed or not claimant.borrowed
            else:
                assert charge.borrowed
                assert not claimant.borrowed
                assert queue.reclaim is Reclaim.ANY or (
                    queue.reclaim is Reclaim.LOWER_PRIORITY and charge.priority < claimant.priority
                )
                assert self.limits.chain(charge.queue)[-1] == self.limits.chain(claimant.queue)[-1]

    def _check_replay(self, found: Admitted) -> None:
        plan = self.admission.buckets[found.bucket].plan
        assert plan.order is not None
        record = make_record(
            assessment="a", at=self.now, policy="p", ranking=plan.order.ranking, choice=found.choice, inputs={}
        )
        assert replay(record, Placed(found.ticket.operation, found.ticket.round, found.ticket.previous)) == record

    def check_reclaimed(self) -> None:
        """At rest, no quota is withheld by borrowers that its queue may make leave.

        Whoever waits by the quota of a parent that can hold all its children's quotas, is within its own quotas, and
        may reclaim from anybody, would not find room if all that was borrowed beyond quotas were gone.
        """
        ledger = self.admission.ledger
        for bucket in self.admission.buckets.values():
            plan, wait = bucket.plan, bucket.wait
            if not bucket.tickets or wait is None or wait.limit is None or plan.reclaim is not Reclaim.ANY:
                continue
            limit = wait.limit
            if self.catalogue.queues.get(limit.name) is None or self.catalogue.queues[limit.name].parent:
                continue
            children = [q for q in self.catalogue.queues.values() if q.parent == limit.name]
            if set(plan.common) - {"running"} != {limit.resource} or any(
                limit.resource not in child.quota for child in children
            ):
                continue
            if sum(child.quota[limit.resource] for child in children) > (self.limits.most(limit) or 0):
                continue
            stuck = [
                c
                for c in ledger.held_in(ScopeKind.QUEUE, limit.name)
                if c.borrowed
                and c.evictable
                and c.queue != plan.queue
                and self.limits.beyond_quota(ledger, c.queue, limit.name, limit.resource)
            ]
            assert not stuck or not self._would_fit(plan, stuck), f"{bucket.key} waits ({wait.message}): {stuck}"

    def _would_fit(self, plan: Plan, gone: list[Charge]) -> bool:
        """Tell whether a class would find room within its quotas if some charges were gone."""
        ledger = self.admission.ledger
        usage = Shifted(ledger, ledger.chain)
        for charge in gone:
            usage.add(charge, -1)
        within = self.limits.borrows(usage, plan.queue, plan.common) is None
        allowed = self.limits.refused(usage, plan.queue, plan.project, plan.common) is None
        return within and allowed and any(self.limits.full(usage, e, a) is None for e, a in plan.amounts.items())
