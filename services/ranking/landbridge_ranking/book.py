"""What is known of each requirement class: its newest verdict, and the plan by which its operations are admitted."""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from landbridge.domain import claims
from landbridge.domain.candidate import Candidate
from landbridge.domain.carbon import Reading, reading_of
from landbridge.domain.catalogue import Policy, Queue
from landbridge.domain.eligibility_index import EligibilityIndex
from landbridge.domain.hardware import alternatives, match_accelerator
from landbridge.domain.ledger import demand
from landbridge.domain.placement import Order
from landbridge.domain.preferences import Observed
from landbridge.domain.queues import Plan
from landbridge.domain.ranking_cache import RankingCache
from landbridge.domain.requirements import RequirementClass, Requirements, from_class_body
from landbridge.domain.staging import measured_bandwidths
from landbridge.domain.verdict import Assessment as Judged
from landbridge.domain.view import View
from landbridge.domain.weighing import policy_for, policy_version, weights_for
from landbridge_ranking.messages import Assessment, Kind, Verdict, read_assessment

MOST_CLASSES: Final = 20_000
_ALWAYS: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(slots=True)
class Entry:
    """One class. `raw` is the assessment as it came; the plan was made for `stamp`."""

    requirement_class: RequirementClass
    assessment: Assessment
    raw: bytes
    plan: Plan | None = None
    stamp: tuple[str, int, int] = ("", -1, -1)

    @classmethod
    def judged_here(cls, requirement_class: RequirementClass, found: Judged) -> "Entry":
        """Make the entry of a verdict that was reached here, in the form in which eligibility's verdicts come."""
        verdicts = tuple(
            Verdict(
                environment=each.environment,
                contract_version=each.contract_version,
                eligible=each.is_eligible,
                valid_until=each.valid_until,
                violations=tuple(Kind(violation.kind.value) for violation in each.violations),
                classes=each.classes,
            )
            for each in found.verdicts
        )
        key, body = requirement_class.key, requirement_class.body
        read = Assessment(found.id, key, found.at, body, found.outlook.value, verdicts, found.inputs)
        return cls(requirement_class, read, b"")

    @property
    def requirements(self) -> Requirements:
        return self.requirement_class.requirements

    def version_in(self, environment: str) -> int:
        """Return the contract version that was judged."""
        found = self.verdict(environment)
        return found.contract_version if found is not None else 0

    def verdict(self, environment: str) -> Verdict | None:
        return next((each for each in self.assessment.environments if each.environment == environment), None)


class Book:
    """The classes, and the replica's own view, from which they are measured and verdicts are renewed."""

    def __init__(self) -> None:
        self.view = View()
        self.index = EligibilityIndex()
        self.rankings = RankingCache()
        self._entries: OrderedDict[str, Entry] = OrderedDict()

    def __getitem__(self, key: str) -> Entry:
        return self._entries[key]

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def clear(self) -> None:
        self._entries.clear()

    def settle(self) -> bool:
        """Bring the index up to date with the view; tell whether anything changed."""
        if not self.view.unsettled:
            return False
        changes = self.view.settle()
        for name in sorted(changes.environments):
            self.index.set_environment(name, self.view.candidates.get(name, ()))
        return bool(changes)

    def observe(self, observed: dict[str, Observed]) -> None:
        self.rankings.observe(observed)

    def carbon(self, now: datetime) -> dict[str, Reading]:
        """Return the carbon intensity of environments whose own source tells it, where that is fresh."""
        found = {}
        for name, versions in self.view.candidates.items():
            reading = reading_of(versions[0].evidence.get(claims.CARBON), now) if versions else None
            if reading is not None:
                found[name] = reading
        return found

    def bandwidths(self, now: datetime) -> dict[str, dict[str, float]]:
        """Return the measured bandwidths of connections by environment, in bits per second, where they are fresh."""
        versions = ((name, found[0]) for name, found in self.view.candidates.items() if found)
        return {name: told for name, candidate in versions if (told := measured_bandwidths(candidate, now))}

    def take(self, raw: bytes) -> tuple[str, bool]:
        """Take on an assessment unless a newer one is known; return its class and whether it was taken on."""
        found = read_assessment.decode(raw)
        key = found.requirement_class
        known = self._entries.get(key)
        if known is None:
            self._entries[key] = Entry(from_class_body(found.requirements), found, raw)
            return key, True
        self._entries.move_to_end(key)
        if not found.supersedes(known.assessment):
            return key, False
        same = found.id == known.assessment.id
        known.assessment, known.raw = found, raw
        if same and known.plan is not None:
            known.plan.valid_until.update((v.environment, v.valid_until) for v in found.environments if v.eligible)
        return key, not same

    def plan(self, key: str) -> Plan:
        """Return the plan of a class by its newest verdict, the newest contracts, and what is observed."""
        entry = self._entries[key]
        stamp = (entry.assessment.id, self.view.shape_revision, self.rankings.version)
        if entry.plan is None or entry.stamp != stamp:
            entry.plan = self.plan_of(entry)
            entry.stamp = stamp
        return entry.plan

    def revalidate(self, bucket: str, environment: str, now: datetime) -> datetime | None:
        """Judge a class by this replica's own view where its verdict has run out: the same function, newer evidence.

        Where other accelerator classes serve it by now, the verdict is another one, and is on its way.
        """
        entry = self._entries.get(bucket)
        known = entry.verdict(environment) if entry is not None else None
        if entry is None or known is None:
            return None
        self.settle()
        assessment = self.index.assess(entry.requirement_class, now)
        for verdict in assessment.verdicts:
            if verdict.environment == environment:
                holds = not verdict.violations and set(known.classes) <= set(verdict.classes)
                return verdict.valid_until or _ALWAYS if holds else None
        return None

    def prune(self, keep: set[str]) -> None:
        """Forget classes that have not been used for longest, but none of `keep`."""
        for key in list(self._entries):
            if len(self._entries) <= MOST_CLASSES:
                return
            if key not in keep:
                del self._entries[key]

    # -- making plans -------------------------------------------------------------------------------------------------

    def plan_of(self, entry: Entry) -> Plan:
        """Make the plan of a class by the verdict of an entry, whether the book knows it or not."""
        catalogue, requirements = self.view.catalogue, entry.requirements
        policy = policy_for(requirements, catalogue)
        queue = catalogue.queues.get(requirements.queue) or Queue(requirements.queue)
        eligible = self._places(entry)
        return Plan(
            queue=requirements.queue,
            project=requirements.project,
            priority=queue.priority_of(requirements.priority),
            weight=catalogue.projects[requirements.project].weight
            if requirements.project in catalogue.projects
            else 1.0,
            order=self._order(entry, policy, eligible),
            amounts={candidate.place: demand(requirements, candidate) for candidate in eligible},
            valid_until={v.environment: v.valid_until for v in entry.assessment.environments if v.eligible},
            overflow_after=timedelta(milliseconds=policy.overflow_after_ms),
            nobody=_nobody(entry.assessment),
            policy=policy_version(policy, catalogue, requirements.project),
            ageing=timedelta(milliseconds=queue.ageing_ms),
            preempts=queue.preempts,
            reclaim=queue.reclaim,
            evictable=not requirements.uninterruptible,
            expected=_span(requirements.expected_ms),
            longest=_span(requirements.timeout_ms),
            component=requirements.component,
            serves=_served(requirements, eligible),
            gang=f"{requirements.project}/{requirements.gang}" if requirements.gang_members > 1 else "",
            members=requirements.gang_members,
            spans=requirements.gang_spans,
        )

    def _order(self, entry: Entry, policy: Policy, eligible: list[Candidate]) -> Order | None:
        if not eligible:
            return None
        return self.rankings.ranked(
            entry.requirement_class,
            eligible,
            weights_for(entry.requirements, self.view.catalogue, policy),
            hopeful=[c for v in entry.assessment.environments if v.hopeful and (c := self._candidate(v)) is not None],
            overflow_allowed=policy.overflow_allowed,
        )

    def _places(self, entry: Entry) -> list[Candidate]:
        """Return where a class may go: environments, each once for every accelerator class that can serve it there."""
        found: list[Candidate] = []
        for verdict in entry.assessment.environments:
            candidate = self._candidate(verdict) if verdict.eligible else None
            if candidate is not None:
                found += alternatives(entry.requirements.accelerator, candidate, verdict.classes)
        return found

    def _candidate(self, verdict: Verdict) -> Candidate | None:
        """Return the candidate that a verdict is about, in the version that was judged, else the newest."""
        versions = self.view.candidates.get(verdict.environment, ())
        judged = (c for c in versions if c.contract_version == verdict.contract_version)
        return next(judged, versions[0] if versions else None)


def _served(requirements: Requirements, places: list[Candidate]) -> dict[str, str]:
    """Return the class that serves a request for accelerators, by place."""
    need = requirements.accelerator
    if need is None:
        return {}
    found = ((place.place, match_accelerator(need, place).offer) for place in places)
    return {place: offer.name for place, offer in found if offer is not None}


def _span(milliseconds: int) -> timedelta | None:
    """Return a time that is stated; None for one that is not."""
    return timedelta(milliseconds=milliseconds) if milliseconds else None


def _nobody(assessment: Assessment) -> str:
    if assessment.condition == "unplaceable":
        return "no environment can run it any more"
    return "no environment is eligible for now"
