"""Settings from the environment, prefix LANDBRIDGE_, refused before anything starts and with every problem at once."""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "LANDBRIDGE_"
MINIMUM_SIMILARITY = 0.85


class SettingsError(Exception):
    """The settings cannot be used; `problems` has one line for each reason, without any secret value."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Settings(BaseSettings):
    """What every service reads. A service with more settings subclasses this."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True, hide_input_in_errors=True)

    nats_url: str = "nats://127.0.0.1:4222"
    nats_creds: Path | None = None
    postgres_dsn: SecretStr = SecretStr("")
    postgres_pool: int = Field(default=4, ge=1, le=64)
    redis_url: SecretStr = SecretStr("")
    http_host: str = "127.0.0.1"
    http_port: int = Field(default=0, ge=0, le=65535)
    port_file: Path | None = None
    max_body_bytes: int = Field(default=16 * 1024 * 1024, ge=1024)
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "console"] = "json"
    otlp_endpoint: str = ""
    trace_ratio: float = Field(default=1.0, ge=0.0, le=1.0)
    admin_token_sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    session_key: SecretStr = SecretStr("")
    failpoints: str = ""
    drain_seconds: float = Field(default=15.0, ge=0.0)
    readiness_grace_seconds: float = Field(default=0.0, ge=0.0)
    instance: str = ""

    @field_validator("log_level", "log_format", mode="before")
    @classmethod
    def _lower(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @field_validator("nats_url")
    @classmethod
    def _nats_scheme(cls, value: str) -> str:
        for url in value.split(","):
            if not url.strip().startswith(("nats://", "tls://", "ws://", "wss://")):
                raise ValueError("expected nats://host:port (or tls://, ws://, wss://), several separated by commas")
        return value

    @field_validator("postgres_dsn")
    @classmethod
    def _postgres_scheme(cls, value: SecretStr) -> SecretStr:
        text = value.get_secret_value()
        if text and not text.startswith(("postgresql://", "postgres://")):
            raise ValueError("expected postgresql://user@host/database")
        return value

    @field_validator("redis_url")
    @classmethod
    def _redis_scheme(cls, value: SecretStr) -> SecretStr:
        text = value.get_secret_value()
        if text and not text.startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("expected redis://host:port/number")
        return value


S = TypeVar("S", bound=Settings)


def load(kind: type[S], *, needs: tuple[str, ...] = ()) -> S:
    """Read settings of `kind`; the fields in `needs` must not be empty. Raises SettingsError with every problem."""
    problems: list[str] = []
    try:
        settings = kind()
    except ValidationError as error:
        settings = None
        for detail in error.errors(include_input=False, include_url=False):
            name = PREFIX + "_".join(str(part) for part in detail["loc"]).upper()
            problems.append(f"{name}: {detail['msg'].removeprefix('Value error, ')}")
    missing = (PREFIX + field.upper() for field in needs)
    problems += [f"{name}: needed, but not set" for name in missing if not os.environ.get(name)]
    problems += misspelt(kind, os.environ)
    if problems or settings is None:
        raise SettingsError(problems)
    return settings


def misspelt(kind: type[Settings], environ: Mapping[str, str]) -> list[str]:
    """Return one line for each variable that is almost, but not quite, a setting's name."""
    known = {PREFIX + name.upper() for name in kind.model_fields}
    lines: list[str] = []
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=MINIMUM_SIMILARITY)
            # A setting of another service may be near by chance; only a name that differs in a letter or two is one.
            if near and near[0] not in environ and abs(len(near[0]) - len(name)) <= 1:
                lines.append(f"{name}: no such setting; did you mean {near[0]}?")
    return lines
