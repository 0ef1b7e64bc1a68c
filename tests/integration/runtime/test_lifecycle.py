"""Start and end of a service process."""

import json
import signal
import time
from pathlib import Path

from support.children import Child
from support.wait import wait_until
from support.world import World


async def test_sigterm_ends_a_service_that_is_still_starting(tmp_path: Path) -> None:
    nowhere = {
        "LANDBRIDGE_NATS_URL": "nats://127.0.0.1:1",
        "LANDBRIDGE_POSTGRES_DSN": "postgresql://u@127.0.0.1:1/x",
        "SAMPLE_MIGRATIONS": str(tmp_path),
    }
    child = Child("support.sample_service", nowhere, tmp_path)
    child.start()

    async def alive() -> bool:
        return await child.status("/livez") == 200

    await wait_until(alive, "it answers")
    child.signal(signal.SIGTERM)
    started = time.monotonic()
    assert await child.ended() == 0
    assert time.monotonic() - started < 3


async def test_a_failed_background_task_ends_the_service_with_an_error_in_the_log(world: World) -> None:
    child = world.child(SAMPLE_CRASHES="1")
    child.start()
    assert await child.ended() == 1
    last = json.loads(child.log.read_text().splitlines()[-1])
    assert last["level"] == "error"
    assert "background work failed" in last["exception"]


async def test_unusable_settings_are_all_told_before_anything_starts(tmp_path: Path) -> None:
    settings = {"LANDBRIDGE_NATS_URL": "http://x", "LANDBRIDGE_HTTP_PORT": "-1", "SAMPLE_MIGRATIONS": str(tmp_path)}
    child = Child("support.sample_service", settings, tmp_path)
    child.start()
    assert await child.ended() == 2
    told = child.log.read_text()
    for name in ("NATS_URL", "HTTP_PORT", "POSTGRES_DSN"):
        assert f"LANDBRIDGE_{name}" in told
    assert "Traceback" not in told


async def test_the_log_has_one_line_for_many_messages_and_no_secret(world: World) -> None:
    child = world.child()
    child.start()
    await child.ready()
    await world.submit([b"good"] * 500)
    await wait_until(world.effects, "messages are handled")
    child.signal(signal.SIGTERM)
    await child.ended()
    lines = [json.loads(line) for line in child.log.read_text().splitlines()]
    handled = [line for line in lines if line["event"] == "handled"]
    assert 1 <= len(handled) <= 5
    assert all(line["service"] == "intake" for line in lines)
    password = world.dsn.split(":")[2].split("@")[0]
    assert password not in child.log.read_text()


async def test_metrics_tell_of_the_loop(world: World) -> None:
    child = world.child()
    child.start()
    await child.ready()
    await world.submit([b"good"] * 10 + [b"poison"])

    async def told() -> bool:
        text = (await child.get("/metrics"))[1]
        handled = 'landbridge_loop_messages_total{consumer="submissions/intake",outcome="handled"} 10.0'
        dead = 'landbridge_dead_letters_total{consumer="submissions/intake"} 1.0'
        return handled in text and dead in text and "landbridge_consumer_lag_messages" in text

    await wait_until(told, "the metrics count what was handled")
