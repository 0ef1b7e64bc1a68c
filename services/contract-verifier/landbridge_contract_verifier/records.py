"""Evidence as it is kept: pure. One current record a probe; a new subject voids what was proven of the old one."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import msgspec

from landbridge.domain import claims
from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import Evidence, EvidenceResult

TEXT_MAX = 300
OFFSET_MAX_S = 24 * 3600.0


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The latest result of one probe. Times are the centre's."""

    probe: str
    claim: str
    result: str
    subject: str
    at: datetime
    expires: datetime
    proven: float | None = None
    claimed: float | None = None
    detail: str = ""

    def tells_the_same(self, other: "Record") -> bool:
        """Tell whether nothing but the times differs."""
        return msgspec.structs.replace(self, at=other.at, expires=other.expires) == other


def judge(
    items: Iterable[Evidence], plan: Mapping[str, Probe], now: datetime, offset_s: float = 0.0
) -> dict[str, Record]:
    """Return what of reported evidence counts, by probe; the newest of each.

    Only planned probes count, for the claim that was planned. `offset_s`, the seconds that the environment's clock is
    ahead, is taken off its times. Nothing is proven for longer than planned, or in the future.
    """
    found: dict[str, Record] = {}
    for item in items:
        probe = plan.get(item.probe)
        if probe is None or probe.claim != item.claim:
            continue
        record = _record(item, probe, now, offset_s)
        if record.probe not in found or found[record.probe].at <= record.at:
            found[record.probe] = record
    return found


def clock_offset(items: Iterable[Evidence], before_s: float) -> float:
    """Return the seconds that the environment's clock is ahead, from its own comparison with the centre's."""
    for item in items:
        if item.claim == claims.CLOCK and item.proven is not None and abs(item.proven) <= OFFSET_MAX_S:
            return item.proven
    return before_s


def _record(item: Evidence, probe: Probe, now: datetime, offset_s: float) -> Record:
    offset = timedelta(seconds=offset_s)
    at = min(item.at - offset, now)
    expires = min(item.expires - offset, at + timedelta(seconds=probe.expiry_seconds))
    result = item.result if item.result is not EvidenceResult.UNSPECIFIED else EvidenceResult.UNKNOWN
    return Record(
        probe=probe.name,
        claim=probe.claim,
        result=result.value,
        subject=item.subject[:TEXT_MAX],
        at=at,
        expires=expires,
        proven=item.proven,
        claimed=item.claimed,
        detail=item.detail[:TEXT_MAX],
    )


def merge(
    current: Mapping[str, Record], reported: Mapping[str, Record], now: datetime
) -> tuple[dict[str, Record], bool]:
    """Return what is new (not older than what is kept) and whether any of it tells something else than before.

    A proof that had run out told nothing any more: one that replaces it is news, also if it says the same.
    """
    news = {name: record for name, record in reported.items() if name not in current or current[name].at < record.at}
    changed = any(
        name not in current or current[name].expires <= now or not record.tells_the_same(current[name])
        for name, record in news.items()
    )
    return news, changed


def refresh_at(records: Iterable[Record], now: datetime) -> datetime:
    """Return when unchanged evidence should be published again: at half of what the shortest still has to live."""
    lives = [record.expires - now for record in records if record.expires > now]
    return now + min(lives, default=timedelta(seconds=60)) / 2


def as_evidence(records: Iterable[Record]) -> tuple[Evidence, ...]:
    """Return records as they are published, sorted by probe."""
    return tuple(
        Evidence(
            claim=record.claim,
            result=EvidenceResult(record.result),
            proven=record.proven,
            claimed=record.claimed,
            probe=record.probe,
            subject=record.subject,
            at=record.at,
            expires=record.expires,
            detail=record.detail,
        )
        for record in sorted(records, key=lambda record: record.probe)
    )
