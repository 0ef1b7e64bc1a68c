"""What of reported evidence counts."""

from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from landbridge.domain import claims
from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import Evidence, EvidenceResult
from landbridge_contract_verifier.records import as_evidence, clock_offset, judge, merge, refresh_at

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
PROBE = Probe(name="runtime@1", claim="runtime", kind="workload", expiry_seconds=60)
PLAN = {"runtime@1": PROBE}


def item(age_s: float = 0, lasts_s: float = 60, **more: object) -> Evidence:
    at = NOW - timedelta(seconds=age_s)
    values = {"claim": "runtime", "result": EvidenceResult.PROVEN, "probe": "runtime@1", "subject": "host"}
    return Evidence(**{**values, "at": at, "expires": at + timedelta(seconds=lasts_s), **more})  # type: ignore[arg-type]


def test_only_planned_probes_count_for_their_own_claim() -> None:
    assert judge([item(probe="other")], PLAN, NOW) == {}
    assert judge([item(claim="classes.gpu")], PLAN, NOW) == {}
    assert set(judge([item()], PLAN, NOW)) == {"runtime@1"}


def test_the_newest_of_a_probe_counts_whatever_the_order() -> None:
    old, new = item(9, detail="old"), item(1, detail="new")
    for items in ([old, new], [new, old]):
        assert judge(items, PLAN, NOW)["runtime@1"].detail == "new"


def test_an_unknown_result_counts_as_unknown() -> None:
    assert judge([item(result=EvidenceResult.UNSPECIFIED)], PLAN, NOW)["runtime@1"].result == "unknown"


def test_older_reports_change_nothing() -> None:
    current = judge([item(1)], PLAN, NOW)
    assert merge(current, judge([item(5, result=EvidenceResult.FAILED)], PLAN, NOW), NOW) == ({}, False)


def test_the_same_proof_is_a_change_where_the_one_before_had_run_out() -> None:
    expired = judge([item(300)], PLAN, NOW)
    assert expired["runtime@1"].expires <= NOW
    assert merge(expired, judge([item(1)], PLAN, NOW), NOW) == (judge([item(1)], PLAN, NOW), True)


def test_a_newer_report_of_the_same_is_news_but_no_change() -> None:
    current = judge([item(5)], PLAN, NOW)
    news, changed = merge(current, judge([item(1)], PLAN, NOW), NOW)
    assert (set(news), changed) == ({"runtime@1"}, False)
    assert merge(current, judge([item(1, detail="other")], PLAN, NOW), NOW)[1]
    assert merge(current, judge([item(1, subject="driver 2")], PLAN, NOW), NOW)[1]


def test_the_clock_probe_tells_the_offset_and_nonsense_is_ignored() -> None:
    told = item(claim=claims.CLOCK, proven=2.5)
    assert clock_offset([item(), told], 0.0) == 2.5
    assert clock_offset([msgspec.structs.replace(told, proven=1e12)], 1.0) == 1.0
    assert clock_offset([item()], 1.0) == 1.0


def test_unchanged_evidence_is_told_again_at_half_of_its_life() -> None:
    records = judge([item(lasts_s=40)], PLAN, NOW).values()
    assert refresh_at(records, NOW) == NOW + timedelta(seconds=20)
    assert refresh_at(records, NOW + timedelta(hours=1)) == NOW + timedelta(hours=1, seconds=30)


@given(
    age=st.floats(-1e5, 1e5), lasts=st.floats(-1e5, 1e7), offset=st.floats(-86_400, 86_400), text=st.text(max_size=400)
)
def test_nothing_is_proven_in_the_future_or_for_longer_than_planned(
    age: float, lasts: float, offset: float, text: str
) -> None:
    [record] = judge([item(age, lasts, detail=text)], PLAN, NOW, offset).values()
    assert record.at <= NOW
    assert record.expires <= record.at + timedelta(seconds=PROBE.expiry_seconds)
    assert len(record.detail) <= 300
    [published] = as_evidence([record])
    assert (published.claim, published.probe, published.at) == ("runtime", "runtime@1", record.at)
