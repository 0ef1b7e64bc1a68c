"""Preparing waits for a broker that is slow to answer, but not for ever."""

from pathlib import Path
from typing import Any

import pytest

from landbridge.bus.errors import Unavailable
from landbridge_embedded import prepare


class _Bus:
    async def drain(self) -> None:
        return None


class _Broker:
    """Answers after so many questions that are in vain."""

    def __init__(self, in_vain: int) -> None:
        self.in_vain = in_vain
        self.asked = 0

    async def declare(self, _bus: Any, **_settings: Any) -> list[str]:
        self.asked += 1
        if self.asked <= self.in_vain:
            raise Unavailable("no reply within 10 s; the broker is slow or away")
        return ["stream EVENTS made"]


async def _declare(broker: _Broker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def connect(*_given: Any, **_more: Any) -> _Bus:
        return _Bus()

    monkeypatch.setattr(prepare, "connect", connect)
    monkeypatch.setattr(prepare, "declare", broker.declare)
    monkeypatch.setenv("LANDBRIDGE_NATS_URL", "nats://127.0.0.1:4222")
    monkeypatch.setenv("LANDBRIDGE_STORE_DIR", str(tmp_path))
    await prepare.declare_streams()


async def test_a_slow_broker_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = _Broker(2)
    await _declare(broker, monkeypatch, tmp_path)
    assert broker.asked == 3
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "no reply within 10 s; the broker is slow or away; asked again",
        "stream EVENTS made",
    ]


async def test_a_broker_that_stays_away_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broker = _Broker(1_000_000)
    monkeypatch.setattr(prepare, "_PATIENCE_S", 0.0)
    with pytest.raises(Unavailable, match="slow or away"):
        await _declare(broker, monkeypatch, tmp_path)
    assert broker.asked == 1
