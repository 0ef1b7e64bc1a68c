"""What is too large is refused with the limit, by every way in, and costs nobody else anything."""

import asyncio
import time

import pytest

from landbridge.domain.documents.limits import MAX_DOCUMENT_BYTES
from support.intake_service import Intake, an_operation

LIMIT = f"expected at most {MAX_DOCUMENT_BYTES // 1024} KiB"
SLOWEST_S = 2.0


def padded(size: int) -> bytes:
    """An operation that is right but for its size, bytes."""
    body = an_operation("large")
    return body + b"\n#" + b"x" * (size - len(body) - 2)


@pytest.mark.parametrize("size", [MAX_DOCUMENT_BYTES + 1, 900_000, 1_100_000])
async def test_a_large_specification_is_refused_with_the_limit_over_http(intake: Intake, size: int) -> None:
    status, told = await intake.post(padded(size), "large")
    assert 400 <= status < 500
    assert LIMIT in str(told)
    assert await intake.told("accepted") == []


async def test_a_specification_at_the_limit_is_taken(intake: Intake) -> None:
    assert (await intake.post(padded(MAX_DOCUMENT_BYTES), "exact"))[0] == 201


async def test_a_large_specification_is_refused_with_the_limit_over_the_broker(intake: Intake) -> None:
    names = await intake.send([padded(900_000), padded(1_100_000)])
    await intake.quiet()
    refused = await intake.told("refused")
    assert [event["submission"] for event in refused] == names
    assert all(LIMIT in str(event["problems"]) for event in refused)


async def test_what_is_larger_than_any_body_may_be_is_not_even_read(intake: Intake) -> None:
    answer = await intake.http.post("/v1/operations", content=_pieces(85_000_000))
    assert answer.status_code == 413
    assert "above the limit" in answer.text


async def _pieces(size: int):  # type: ignore[no-untyped-def]
    """A body whose length is not announced."""
    for _ in range(size // 1_000_000):
        yield b"x" * 1_000_000
        await asyncio.sleep(0)


async def test_others_are_answered_as_ever_while_large_ones_pour_in(intake: Intake) -> None:
    times: list[float] = []

    async def flood() -> None:
        while True:
            await asyncio.gather(*(intake.post(padded(900_000), "large") for _ in range(4)))

    flooding = asyncio.create_task(flood())
    for number in range(50):
        began = time.monotonic()
        status, _ = await intake.post(an_operation(f"small-{number}"), f"small-{number}")
        times.append(time.monotonic() - began)
        assert status == 201
    flooding.cancel()
    await asyncio.gather(flooding, return_exceptions=True)

    assert max(times) < SLOWEST_S, f"slowest of {len(times)}: {max(times):.2f} s"
    accepted = await intake.told("accepted")
    assert len(accepted) == 50
