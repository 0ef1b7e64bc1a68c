"""Logs and outputs are read piece by piece, from a place or from the end."""

from contract.executors.harness import Behaviour, Harness, Watcher, a_work, run
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.domain.ownership.epochs import Epoch
from landbridge_dispatch.executors.protocol import SlotKey


async def test_a_log_is_read_from_an_offset_and_says_when_it_is_complete(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour(log="0123456789")))
    await run(harness.executor, work)
    await watcher.end(work.key)

    first = await harness.executor.logs(work.key, offset=0, limit=4)
    assert first is not None
    assert (first.data, first.next_offset, first.end) == (b"0123", 4, False)
    rest = await harness.executor.logs(work.key, offset=first.next_offset)

    assert rest is not None
    assert rest.data.startswith(b"456789\n")
    assert rest.end


async def test_the_log_of_running_work_never_says_that_it_is_complete(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour(seconds=60, log="begun")))
    await run(harness.executor, work)
    await watcher.until(work.key, SlotPhase.RUNNING)

    chunk = await harness.executor.logs(work.key)

    assert chunk is not None
    assert not chunk.end


async def test_the_tail_of_a_log_is_its_last_bytes(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour(log="0123456789")))
    await run(harness.executor, work)
    await watcher.end(work.key)
    whole = await harness.executor.logs(work.key)
    assert whole is not None

    tail = await harness.executor.logs(work.key, tail=5)

    assert tail is not None
    assert tail.data == whole.data[-5:]
    assert tail.next_offset == len(whole.data)


async def test_outputs_are_listed_and_read_in_pieces(harness: Harness, watcher: Watcher) -> None:
    work = a_work(harness.command(Behaviour()), outputs={"model": {"connection": "models"}})
    await run(harness.executor, work)
    await watcher.end(work.key)

    listed = await harness.executor.outputs(work.key)
    assert listed is not None
    [file] = listed["model"]
    name = f"model/{file.path}".rstrip("/")
    first = await harness.executor.output_chunk(work.key, name, offset=0, limit=3)
    assert first is not None
    rest = await harness.executor.output_chunk(work.key, name, offset=3, limit=1000)

    assert rest is not None
    assert len(first.data + rest.data) == file.bytes
    assert (first.end, rest.end) == (False, True)


async def test_what_is_not_there_is_none(harness: Harness, watcher: Watcher) -> None:
    unknown = SlotKey("00000000-0000-5000-8000-000000000000", Epoch(1, 1))
    work = a_work(harness.command(Behaviour()), outputs={"model": {"connection": "models"}})
    await run(harness.executor, work)
    await watcher.end(work.key)

    assert await harness.executor.look(unknown) is None
    assert await harness.executor.logs(unknown) is None
    assert await harness.executor.outputs(unknown) is None
    for name in ("other", "model/../../../etc/passwd", "model//etc/passwd", "model/none"):
        assert await harness.executor.output_chunk(work.key, name) is None
