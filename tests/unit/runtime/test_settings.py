"""Settings: every problem at once, secrets never shown, misspelt names found."""

import pytest

from landbridge.runtime.settings import Settings, SettingsError, load, misspelt


def test_defaults_are_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANDBRIDGE_NATS_URL", raising=False)
    settings = load(Settings)
    assert (settings.http_host, settings.http_port, settings.log_format) == ("127.0.0.1", 0, "json")


def test_all_problems_are_told_at_once_and_without_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_NATS_URL", "http://nats")
    monkeypatch.setenv("LANDBRIDGE_HTTP_PORT", "70000")
    monkeypatch.setenv("LANDBRIDGE_POSTGRES_DSN", "mysql://u:hunter2@db/x")
    with pytest.raises(SettingsError) as refused:
        load(Settings, needs=("redis_url",))
    text = str(refused.value)
    for name in ("NATS_URL", "HTTP_PORT", "POSTGRES_DSN", "REDIS_URL"):
        assert f"LANDBRIDGE_{name}:" in text
    assert "hunter2" not in text
    assert len(refused.value.problems) == 4


def test_secrets_do_not_appear_when_settings_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDBRIDGE_POSTGRES_DSN", "postgresql://u:hunter2@db/x")
    assert "hunter2" not in repr(load(Settings))


def test_a_name_that_is_almost_right_is_refused_with_the_right_one() -> None:
    assert misspelt(Settings, {"LANDBRIDGE_POSTGRE_DSN": "x"}) == [
        "LANDBRIDGE_POSTGRE_DSN: no such setting; did you mean LANDBRIDGE_POSTGRES_DSN?"
    ]
    assert misspelt(Settings, {"LANDBRIDGE_OPERATION": "op", "LANDBRIDGE_POSTGRES_BIN": "/usr/bin"}) == []
