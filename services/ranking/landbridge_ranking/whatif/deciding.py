"""How one policy of a scenario decides: verdicts and plans of the book, and for comparison simpler ways to choose."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from landbridge.domain.eligibility_index import EligibilityIndex
from landbridge.domain.placement import Choice, Order, Ranking
from landbridge.domain.preferences.cost import priced_class
from landbridge.domain.queues import Plan
from landbridge.domain.requirements import RequirementClass
from landbridge.domain.verdict import Assessment, Outlook
from landbridge.schema import documents_v1 as schema
from landbridge_ranking.book import Book, Entry

# A verdict that says "not now" is asked again as often while something waits for it.
LOOK_AGAIN = timedelta(minutes=5)

Reorder = Callable[[list[str]], tuple[tuple[float, tuple[str, ...]], ...]]


class Decider:
    """Plans by class, for one policy. `assessments` counts verdicts that were made."""

    def __init__(self, book: Book, choosing: schema.Choosing | None) -> None:
        self.book = book
        self.assessments = 0
        self._index: EligibilityIndex = book.index
        self._reorder = _REORDER.get(choosing) if choosing is not None else None
        self._known: dict[str, tuple[Assessment, Plan]] = {}
        self._stamp = (-1, -1)

    @property
    def ranks(self) -> bool:
        """Whether it chooses by rank, and so by what is observed."""
        return self._reorder is None

    def plan(self, shape: RequirementClass, now: datetime) -> Plan:
        """Return the plan of a class by a verdict of this moment; the same object while nothing changed."""
        self.assessments += 1
        self.book.view.withdraw(now)
        self.book.settle()
        stamp = (self.book.view.shape_revision, self.book.rankings.version)
        if stamp != self._stamp:
            self._stamp, self._known = stamp, {}
        found = self._index.assess(shape, now)
        known = self._known.get(shape.key)
        if known is not None and known[0].id == found.id:
            return known[1]
        plan = self.book.plan_of(Entry.judged_here(shape, found))
        if self._reorder is not None and plan.order is not None:
            eligible = sorted(name for _, names in plan.order.groups for name in names)
            plan = replace(plan, order=Order(Ranking("", ()), self._reorder(eligible)))
        self._known[shape.key] = (found, plan)
        return plan

    def hourly(self, shape: RequirementClass, choice: Choice) -> tuple[float, str] | None:
        """Return what a placement costs an hour by the prices that hold now, with the currency; None: unknown."""
        candidate = self.book.view.candidates[choice.environment][0]
        if choice.served_by:
            candidate = replace(candidate, served_by=choice.served_by)
        found = priced_class(shape.requirements, candidate)
        return (found[0] * found[1], candidate.contract.cost.currency) if found is not None else None

    def verdict(self, shape: RequirementClass) -> Assessment:
        """Return the verdict that the plan in use was made from; KeyError if there is none."""
        return self._known[shape.key][0]

    def may_change(self, shape: RequirementClass) -> bool:
        """Tell whether time alone may make the class eligible somewhere."""
        return self.verdict(shape).outlook is Outlook.NOT_NOW


def _in_order(names: list[str]) -> tuple[tuple[float, tuple[str, ...]], ...]:
    return tuple((-float(place), (name,)) for place, name in enumerate(names))


def _all_equal(names: list[str]) -> tuple[tuple[float, tuple[str, ...]], ...]:
    # Equals are told apart by a hash of operation and environment: as good as drawn, and the same in every run.
    return ((0.0, tuple(names)),) if names else ()


_REORDER: dict[schema.Choosing, Reorder] = {
    schema.Choosing.FIRST_FIT: _in_order,
    schema.Choosing.RANDOM: _all_equal,
}
