"""`python -m landbridge_embedded.container STEP`: the same services in containers.

Steps: `state` makes keys, credentials, passwords and the broker's configuration; `prepare` brings schemas and streams
up to date; `sample` registers the sample environments; `run SERVICE` and `dispatcher NAME` become that process.

Where the servers are is read from LANDBRIDGE_NATS_HOST, LANDBRIDGE_POSTGRES_HOST and LANDBRIDGE_REDIS_HOST (defaults
`nats`, `postgres`, `redis`); a service's host is its own name. A service gets the settings that it has on one machine.
Keys of the broker are needed by `state` and contract-verifier only; a dispatcher needs nothing but its own directory.
"""

import asyncio
import importlib
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from landbridge_embedded import environments, sample
from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.keys import make_accounts
from landbridge_embedded.layout import DataDirectory
from landbridge_embedded.nats import NatsServer
from landbridge_embedded.process import write_private
from landbridge_embedded.services import (
    DISPATCHER_MODULE,
    PREPARE_MODULE,
    SERVICES,
    Addresses,
    ServiceSpec,
    admin_token,
    dispatcher_environ,
    service_environ,
)

PORT = 8080
_NATS_PORT = 4222
_MONITOR_PORT = 8222
_LEAF_PORT = 7422


@dataclass(frozen=True, slots=True)
class ContainerAddresses(Addresses):
    """Each service is its own host."""

    def url_of(self, service: str) -> str:
        return f"http://{service}:{PORT}"


def addresses(data: DataDirectory, environ: Mapping[str, str] = os.environ) -> ContainerAddresses:
    """Return where everything is for a process in a container."""
    nats = environ.get("LANDBRIDGE_NATS_HOST", "nats")
    postgres = environ.get("LANDBRIDGE_POSTGRES_HOST", "postgres")
    redis = environ.get("LANDBRIDGE_REDIS_HOST", "redis")
    secret = postgres_password(data)
    password = secret.read_text().strip() if secret.exists() else ""  # a dispatcher has none
    return ContainerAddresses(
        f"nats://{nats}:{_NATS_PORT}",
        f"postgresql://landbridge:{password}@{postgres}:5432/landbridge",
        f"redis://{redis}:6379/0",
        {spec.name: PORT for spec in SERVICES},
    )


def postgres_password(data: DataDirectory) -> Path:
    """File of the password that Postgres is started with."""
    return data.root / "secrets" / "postgres-password"


def make_state(data: DataDirectory) -> None:
    """Make what is missing: keys, credentials, passwords, the broker's configuration. Safe to repeat."""
    data.create()
    for name in ("nats", "secrets"):
        (data.root / name).mkdir(exist_ok=True, mode=0o700)
    make_accounts(data)
    admin_token(data)
    if not postgres_password(data).exists():
        write_private(postgres_password(data), secrets.token_urlsafe(24) + "\n")
    broker = NatsServer(
        data.root,
        accounts=data.broker_accounts.read_text(),
        port=_NATS_PORT,
        monitor_port=_MONITOR_PORT,
        host="0.0.0.0",  # noqa: S104 - inside the network of the containers; nothing is published
        leaf_port=_LEAF_PORT,
    )
    broker.port, broker.monitor_port = _NATS_PORT, _MONITOR_PORT
    write_private(data.root / "nats" / "nats.conf", broker.config())


def environ_of(step: str, name: str, data: DataDirectory) -> tuple[str, dict[str, str]]:
    """Return module and environment of the process that a step becomes. EmbeddedError for an unknown name."""
    found = addresses(data)
    if step == "prepare":
        spec = ServiceSpec("prepare", PREPARE_MODULE)
        environ = service_environ(spec, found, data)
        streams = {"LANDBRIDGE_NATS_CREDS": str(data.creds / "streams.creds")}
        return PREPARE_MODULE, {**environ, **streams, "LANDBRIDGE_STORE_DIR": str(data.root / "nats")}
    if step == "dispatcher":
        directory = environments.read(data, name).directory
        return DISPATCHER_MODULE, _reachable(dispatcher_environ(name, found, directory, PORT))
    specs = {spec.name: spec for spec in SERVICES}
    if name not in specs:
        raise EmbeddedError(f"service {name!r}: expected one of {', '.join(specs)}")
    return specs[name].module, _reachable(service_environ(specs[name], found, data))


def _reachable(environ: dict[str, str]) -> dict[str, str]:
    return {**environ, "LANDBRIDGE_HTTP_HOST": "0.0.0.0", "LANDBRIDGE_HTTP_PORT": str(PORT)}  # noqa: S104 - as above


async def _register(data: DataDirectory) -> None:
    async def start(name: str) -> None:
        print(f"environment {name}: joined; its container can start", flush=True)  # noqa: T201

    url = addresses(data).url_of("dashboard")
    await sample.register(data, empty=False, api=url, start=start, note=lambda text: print(text, flush=True))  # noqa: T201


def become(module: str, environ: Mapping[str, str]) -> None:
    """Go on as `module` with exactly that environment; the process ends with its exit code."""
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = [module]
    sys.exit(importlib.import_module(module).main())


def main() -> int:
    """Do the step named by the arguments; return the exit code."""
    data = DataDirectory.locate(os.environ.get("LANDBRIDGE_DATA", "/state"))
    step, name = (*sys.argv[1:], "", "")[:2]
    steps: dict[str, Callable[[], object]] = {
        "state": lambda: make_state(data),
        "sample": lambda: asyncio.run(_register(data)),
        **dict.fromkeys(("prepare", "run", "dispatcher"), lambda: become(*environ_of(step, name, data))),
    }
    if step not in steps:
        sys.stderr.write(f"step {step!r}: expected one of {', '.join(steps)}\n")
        return 2
    try:
        steps[step]()
    except (EmbeddedError, ValueError, OSError) as error:
        sys.stderr.write(f"{step}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
