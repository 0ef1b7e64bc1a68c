"""Carbon intensity: what a series or an answer tells of now, and nothing beyond it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from landbridge.domain import claims
from landbridge.domain.carbon import Reading, Told, point_at, read_answer, read_series, reading_of
from landbridge.domain.evidence import claim_states
from landbridge.domain.placement import rank
from landbridge.domain.preferences import NOTHING_OBSERVED, Observed
from landbridge.domain.preferences.carbon import Carbon
from support.deciding import NOW, an_environment, an_operation, proof

FILES = Path(__file__).parents[2] / "fixtures" / "carbon"
HEAD = "from,until,grams_per_kwh\n"


def at(hour: int, minute: int = 0, day: int = 30, month: int = 11) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


def grams(data: bytes, moment: datetime) -> float | None:
    found = read_series(data)
    assert not found.problems
    point = point_at(found.points, moment)
    return point.grams if point is not None else None


def test_a_point_lasts_until_the_next_one_and_the_last_as_long_as_the_one_before() -> None:
    data = (FILES / "day-ahead.csv").read_bytes()
    assert grams(data, at(22, 59)) is None
    assert grams(data, at(23)) == 318
    assert grams(data, at(0, 59, day=1, month=12)) == 305.5
    assert grams(data, at(3, 59, day=1, month=12)) == 322
    assert grams(data, at(4, day=1, month=12)) is None


def test_a_gap_is_a_gap() -> None:
    data = (FILES / "solar-site.csv").read_bytes()
    assert grams(data, at(17, 59, day=1, month=6)) == 41.5
    assert grams(data, at(19, day=1, month=6)) is None
    assert grams(data, at(4, day=2, month=6)) == 380


def test_everything_that_is_wrong_is_told_with_its_line() -> None:
    found = read_series((FILES / "broken.csv").read_bytes())
    assert [problem.text("broken.csv") for problem in found.problems] == (FILES / "broken.txt").read_text().splitlines()


_STARTS = st.lists(st.tuples(st.integers(0, 200), st.none() | st.integers(1, 30)), min_size=1, max_size=12)


@given(starts=_STARTS, asked=st.integers(-10, 300), order=st.randoms(use_true_random=False))
def test_now_is_told_by_the_point_that_covers_it_and_by_no_other(
    starts: list[tuple[int, int | None]], asked: int, order: Any
) -> None:
    ordered = sorted(dict(starts).items())
    spans = []
    for place, (since, lasts) in enumerate(ordered):
        following = ordered[place + 1][0] if place + 1 < len(ordered) else None
        if lasts is not None and following is not None:
            lasts = min(lasts, following - since)  # noqa: PLW2901
        spans.append((since, lasts))
    rows = [
        f"{(NOW + timedelta(minutes=since)).isoformat()},"
        f"{(NOW + timedelta(minutes=since + lasts)).isoformat() if lasts else ''},{since}"
        for since, lasts in spans
    ]
    order.shuffle(rows)
    found = grams((HEAD + "\n".join(rows)).encode(), NOW + timedelta(minutes=asked))
    before = [(since, lasts) for since, lasts in spans if since <= asked]
    if not before:
        assert found is None
        return
    since, lasts = before[-1]
    last = len(before) == len(spans)
    if lasts is not None:
        assert found == (since if asked < since + lasts else None)
    elif not last:
        assert found == since


@given(
    st.binary(max_size=200) | st.text(alphabet="0123456789-:TZ,;.\n ", max_size=150).map(lambda t: (HEAD + t).encode())
)
@example(b'"')
def test_whatever_is_in_a_file_it_is_read_or_refused(data: bytes) -> None:
    found = read_series(data)
    assert all(0 <= point.grams <= 5000 and point.since < point.until for point in found.points)


# -- answers over HTTP -------------------------------------------------------------------------------------------------


def answer(**more: Any) -> bytes:
    return json.dumps({"gramsPerKWh": 312.5, "at": NOW.isoformat(), **more}).encode()


def test_an_answer_tells_an_intensity_of_now_with_its_end_and_source() -> None:
    found = read_answer(answer(source="grid operator\n", validUntil=(NOW + timedelta(minutes=15)).isoformat()), NOW)
    assert isinstance(found, Told)
    assert (found.point.grams, found.source) == (312.5, "grid operator")
    assert found.point.until == NOW + timedelta(minutes=15)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"<html>", "expected JSON with gramsPerKWh and at"),
        (b"\xff", "expected JSON with gramsPerKWh and at"),
        (b'{"gramsPerKWh": "312", "at": "2026-11-30T03:00:00Z"}', "expected JSON with gramsPerKWh and at"),
        (answer(gramsPerKWh=-3), "expected gramsPerKWh from 0 to 5000, found -3"),
        (answer(gramsPerKWh=51_000), "expected gramsPerKWh from 0 to 5000, found 51000"),
        (
            answer(at=(NOW + timedelta(hours=1)).isoformat()),
            "expected an intensity of now, found one of 2026-11-30 04:00Z",
        ),
        (answer(at=(NOW - timedelta(hours=1)).isoformat()), "the intensity that it tells ended at 2026-11-30 03:00Z"),
        (answer(validUntil=NOW.isoformat()), "the intensity that it tells ended at 2026-11-30 03:00Z"),
    ],
)
def test_an_answer_that_is_none_does_not_count(body: bytes, why: str) -> None:
    found = read_answer(body, NOW)
    assert isinstance(found, str)
    assert found.startswith(why)


# -- the preference ----------------------------------------------------------------------------------------------------

MEASURED: dict[str, Any] = {"carbon": {"measured": True, "gramsPerKWh": 20}}


def reading(age: timedelta = timedelta(0), lasts: timedelta = timedelta(minutes=20), **more: Any) -> Reading | None:
    piece = proof(claims.CARBON, at=NOW - age, lasts=lasts, proven=312.0, subject="carbon source HTTP", **more)
    return reading_of(claim_states([piece])[claims.CARBON], NOW)


def test_a_reading_counts_with_the_time_at_which_it_was_made_until_it_expires() -> None:
    assert reading(detail="last good value: HTTP status 503", age=timedelta(minutes=10)) == Reading(
        312.0, "carbon source HTTP, read 2026-11-30 02:50Z; last good value: HTTP status 503"
    )
    assert reading(age=timedelta(minutes=20)) is None
    assert reading(result="unknown") is None
    assert reading_of(None, NOW) is None


def test_where_a_contract_says_measured_only_a_reading_counts() -> None:
    operation = an_operation().requirements
    found = Carbon().measure(operation, an_environment(**MEASURED), Observed(carbon=Reading(312.0, "grid")))
    assert found == (312.0, "g/kWh", "grid")
    silent = Carbon().measure(operation, an_environment(**MEASURED), NOTHING_OBSERVED)
    assert silent == (None, "g/kWh", "no fresh reading, and contract version 1 states no other")
    stated = an_environment(carbon={"gramsPerKWh": 20, "source": "annual mean"})
    assert Carbon().measure(operation, stated, Observed(carbon=Reading(312.0, "grid"))) == (20, "g/kWh", "annual mean")


def test_an_intensity_that_is_not_known_any_more_never_wins() -> None:
    sites = [an_environment("coal", carbon={"gramsPerKWh": 900}), an_environment("solar", **MEASURED)]
    fresh = rank(
        an_operation().requirements, sites, {"carbon": 1.0}, observed={"solar": Observed(carbon=Reading(30.0, "x"))}
    )
    assert [card.environment for card in fresh.cards] == ["solar", "coal"]
    expired = rank(an_operation().requirements, sites, {"carbon": 1.0})
    assert [card.environment for card in expired.cards] == ["coal", "solar"]
