"""The services of one machine and the environment that each process gets. Settings are the same as anywhere else."""

import hashlib
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from landbridge_embedded.layout import DataDirectory
from landbridge_embedded.process import write_private

DISPATCHER_MODULE = "landbridge_dispatch.dispatcher.__main__"
PREPARE_MODULE = "landbridge_embedded.prepare"
KEYS_MODULE = "landbridge_embedded.keys"


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """One service of the centre; `module` has a `main` without arguments."""

    name: str
    module: str
    postgres: bool = True
    redis: bool = False


SERVICES = (
    ServiceSpec("intake", "landbridge_intake.__main__", redis=True),
    ServiceSpec("eligibility", "landbridge_eligibility.__main__"),
    ServiceSpec("ranking", "landbridge_ranking.__main__"),
    ServiceSpec("coordinator", "landbridge_dispatch.coordinator.__main__"),
    ServiceSpec("contract-verifier", "landbridge_contract_verifier.__main__"),
    ServiceSpec("lineage", "landbridge_lineage.__main__", redis=True),
    ServiceSpec("alerting", "landbridge_alerting.__main__"),
    ServiceSpec("dashboard", "landbridge_dashboard.__main__", postgres=False),
)
# Imported once before the services are forked: what they share, then they themselves.
PRELOAD = (
    "uvloop",
    "asyncpg",
    "nats",
    "msgspec",
    "pydantic",
    "fastapi",
    "uvicorn",
    "structlog",
    "redis.asyncio",
    "prometheus_client",
    "opentelemetry.sdk.trace",
    KEYS_MODULE,
    PREPARE_MODULE,
    *(spec.module for spec in SERVICES),
    DISPATCHER_MODULE,
)

# The dashboard signs sessions; the services whose answers its pages show accept them.
_READ_BY_BROWSERS = frozenset({"dashboard", "lineage", "alerting", "coordinator"})
# Services that others call over HTTP; each learns their addresses.
_CALLED = ("intake", "eligibility", "ranking", "lineage", "contract-verifier", "coordinator", "alerting", "dashboard")

_PASSED = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH", "LD_LIBRARY_PATH"}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "KUBECONFIG", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}
)
_PASSED_PREFIXES = ("LC_", "OTEL_", "LANDBRIDGE_", "PYTHON")


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the servers are and which port each service has."""

    nats_url: str
    postgres_dsn: str
    redis_url: str
    ports: Mapping[str, int]

    def url_of(self, service: str) -> str:
        return f"http://127.0.0.1:{self.ports[service]}"


def inherited(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Select what a service may see of our own environment: settings and locale, never other programs' secrets."""
    return {name: value for name, value in environ.items() if name in _PASSED or name.startswith(_PASSED_PREFIXES)}


def service_environ(
    spec: ServiceSpec, addresses: Addresses, data: DataDirectory, *, leaf_url: str = ""
) -> dict[str, str]:
    """Make the whole environment of one service of the centre. `leaf_url`: where sites' own NATS connect."""
    environ = {
        **_common(spec.name, addresses),
        "LANDBRIDGE_NATS_CREDS": str(data.creds / f"{spec.name}.creds"),
        "LANDBRIDGE_ADMIN_TOKEN_SHA256": hashlib.sha256(admin_token(data).encode()).hexdigest(),
    }
    if spec.postgres:
        environ["LANDBRIDGE_POSTGRES_DSN"] = addresses.postgres_dsn
    if spec.redis:
        environ["LANDBRIDGE_REDIS_URL"] = addresses.redis_url
    for name in (item for item in _CALLED if item in addresses.ports):
        environ[f"LANDBRIDGE_{name.replace('-', '_').upper()}_URL"] = addresses.url_of(name)
    if spec.name == "contract-verifier":
        environ["LANDBRIDGE_KEYS_DIR"] = str(data.keys)
        if leaf_url:
            environ.setdefault("LANDBRIDGE_NATS_LEAF_URL", leaf_url)
    if spec.name in _READ_BY_BROWSERS:
        environ["LANDBRIDGE_SESSION_KEY"] = _secret(data.admin_token.with_name("session"))
    return environ


def dispatcher_environ(name: str, addresses: Addresses, directory: Path, port: int) -> dict[str, str]:
    """Make the whole environment of a dispatcher: of the centre it knows nothing but the address of NATS."""
    return {
        **_common(f"dispatcher-{name}", addresses),
        "LANDBRIDGE_HTTP_PORT": str(port),
        "LANDBRIDGE_ENVIRONMENT": name,
        "LANDBRIDGE_DATA_DIR": str(directory),
        "LANDBRIDGE_BINDINGS": str(directory / "bindings.yaml"),
        "LANDBRIDGE_NATS_CREDS": str(directory / "dispatcher.creds"),
    }


def _common(name: str, addresses: Addresses) -> dict[str, str]:
    return {
        **inherited(),
        "LANDBRIDGE_NATS_URL": addresses.nats_url,
        "LANDBRIDGE_HTTP_HOST": "127.0.0.1",
        "LANDBRIDGE_HTTP_PORT": str(addresses.ports.get(name, 0)),
    }


def admin_token(data: DataDirectory) -> str:
    """Return the administrator's token, made at the first start."""
    return _secret(data.admin_token)


def _secret(path: Path) -> str:
    if not path.exists():
        write_private(path, secrets.token_urlsafe(32) + "\n")
    return path.read_text().strip()
