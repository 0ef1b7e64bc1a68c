"""Settings from the environment, prefix LANDBRIDGE_, refused before anything starts and with every problem at once."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "LANDBRIDGE_"


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
    """Return one line for each variable that is a setting's name but for one letter."""
    known = sorted(PREFIX + name.upper() for name in kind.model_fields)
    lines: list[str] = []
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            near = [right for right in known if right not in environ and _one_letter_apart(name, right)]
            lines += [f"{name}: no such setting; did you mean {right}?" for right in near[:1]]
    return lines


def _one_letter_apart(one: str, other: str) -> bool:
    """Tell whether one insertion, deletion, change or swap of neighbours turns one text into the other."""
    shorter, longer = sorted((one, other), key=len)
    same = next((i for i, letter in enumerate(shorter) if letter != longer[i]), len(shorter))
    if len(longer) == len(shorter):
        swapped = shorter[same : same + 2] == longer[same : same + 2][::-1]
        return shorter[same + 1 :] == longer[same + 1 :] or (swapped and shorter[same + 2 :] == longer[same + 2 :])
    return len(longer) - len(shorter) == 1 and shorter[same:] == longer[same + 1 :]
