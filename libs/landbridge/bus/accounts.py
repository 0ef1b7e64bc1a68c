"""Who is who on the bus: keys, accounts, users, the server's configuration, and pushing accounts at run time.

The keys directory holds five secrets, made once. Keys of environments' and projects' accounts are derived from one of
them and (kind, name, generation), so that nothing has to be written there later and a read-only secret mount will do.
There must be ONE writer of accounts (the contract-verifier): an older JWT that is pushed later undoes a revocation.
"""

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import msgspec

from landbridge.bus import permissions
from landbridge.bus.connection import Bus
from landbridge.bus.errors import BusError, NoResponder, Unavailable
from landbridge.bus.jwt import (
    AccountClaim,
    Key,
    Limits,
    Role,
    credentials,
    derived_key,
    key_from_seed,
    new_key,
    operator_claim,
    user_claim,
)
from landbridge.bus.servers import JETSTREAM_PING

Kind = Literal["environment", "project"]
SYSTEM: Final = "SYS"
HUB: Final = "HUB"
ISSUER: Final = "issuer"  # the system account's only user: it pushes accounts, and asks servers how they store
DISPATCHER: Final = "dispatcher"
LEAF: Final = "leaf"
SERVICES: Final = tuple(permissions.SERVICES)
_CLAIMS_UPDATE: Final = "$SYS.REQ.CLAIMS.UPDATE"
_CONNECTIONS_MAX: Final = {"environment": 64, "project": 256}
_LEAFS_MAX: Final = 4  # the servers of one site
_SUBSCRIPTIONS_MAX: Final = {"environment": 10_000, "project": 50_000}
_FILES: Final = {
    "operator": Role.OPERATOR,
    "operator-signing": Role.OPERATOR,
    "system": Role.ACCOUNT,
    "hub": Role.ACCOUNT,
}


@dataclass(frozen=True, slots=True)
class Keys:
    """All secrets of the bus. Whoever holds them can speak as anybody."""

    operator: Key
    signing: Key
    system: Key
    hub: Key
    secret: bytes = field(repr=False)

    def account(self, kind: Kind, name: str, generation: int = 1) -> Key:
        """Return the key of an account; a name that is used again after a removal gets a new generation."""
        text = f"{kind}\x00{name}\x00{generation}".encode()
        return derived_key(Role.ACCOUNT, hmac.digest(self.secret, text, "sha256"))


@dataclass(frozen=True, slots=True)
class IssuedUser:
    """A user that was made: its credentials are shown once; keep `public` (to revoke it) and `sha256` only."""

    name: str
    public: str
    credentials: str = field(repr=False)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.credentials.encode()).hexdigest()


# -- keys -------------------------------------------------------------------------------------------------------------


def load_or_create_keys(directory: Path) -> Keys:
    """Return the keys of a directory; missing ones are made (mode 0600, the directory 0700).

    Raises ValueError if a file is damaged: replacing it would lock everybody out, so a person has to restore it.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, role in _FILES.items():
        _write_once(directory / f"{name}.seed", new_key(role).seed)
    _write_once(directory / "accounts.secret", secrets.token_hex(32))
    return load_keys(directory)


def load_keys(directory: Path) -> Keys:
    """Return the keys of a directory. Raises ValueError that names the missing or damaged file."""
    seeds = {name: _load(directory / f"{name}.seed") for name in _FILES}
    path = directory / "accounts.secret"
    try:
        secret = bytes.fromhex(path.read_text().strip())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: expected 64 hexadecimal digits ({error}); restore it from your backup") from error
    return Keys(seeds["operator"], seeds["operator-signing"], seeds["system"], seeds["hub"], secret)


def _load(path: Path) -> Key:
    try:
        return key_from_seed(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}; restore it from your backup") from error


def _write_once(path: Path, text: str) -> None:
    """Create a secret file, whole or not at all; one that exists stays."""
    if path.exists():
        return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(temporary)
    finally:
        temporary.unlink()


# -- users ------------------------------------------------------------------------------------------------------------


def _issue(
    account: Key, name: str, granted: permissions.Permissions, expires: int | None = None, connects_as: str = ""
) -> IssuedUser:
    user = new_key(Role.USER)
    token = user_claim(
        account,
        user.public,
        name,
        publish=granted.publish,
        subscribe=granted.subscribe,
        answers=granted.answers,
        expires=expires,
        connects_as=connects_as,
    )
    return IssuedUser(name, user.public, credentials(token, user))


def service_user(keys: Keys, service: str) -> IssuedUser:
    """Make a user of HUB with the allow-list of a service (or `streams`, which declares)."""
    return _issue(keys.hub, service, permissions.service_permissions(service))


def user_of_hub(keys: Keys, name: str, granted: permissions.Permissions) -> IssuedUser:
    """Make a user of HUB with an allow-list that is in no table: for drills and for what another release may say."""
    return _issue(keys.hub, name, granted)


def issuer_user(keys: Keys) -> IssuedUser:
    """Make the user of the system account that may push accounts, ask servers how they store, and nothing else."""
    granted = permissions.Permissions((_CLAIMS_UPDATE, JETSTREAM_PING), (permissions.inbox(ISSUER),))
    return _issue(keys.system, ISSUER, granted)


def environment_user(keys: Keys, environment: str, generation: int = 1, *, expires: int | None = None) -> IssuedUser:
    """Make a dispatcher's user. `expires` is a Unix time; rotate by a second user and revoke the first."""
    account = keys.account("environment", environment, generation)
    return _issue(account, DISPATCHER, permissions.environment_permissions(environment, DISPATCHER), expires)


def leaf_user(keys: Keys, environment: str, generation: int = 1, *, expires: int | None = None) -> IssuedUser:
    """Make the user as which the NATS of an environment's site connects, as a leaf node and not otherwise."""
    account = keys.account("environment", environment, generation)
    return _issue(account, LEAF, permissions.leaf_permissions(environment), expires, "LEAFNODE")


def application_user(
    keys: Keys, project: str, name: str, generation: int = 1, *, submits: bool = True, expires: int | None = None
) -> IssuedUser:
    """Make an application's user, confined to its project; without `submits` it only hears."""
    account = keys.account("project", project, generation)
    return _issue(account, name, permissions.application_permissions(project, name, submits=submits), expires)


# -- accounts ---------------------------------------------------------------------------------------------------------


def environment_account(
    keys: Keys, environment: str, generation: int = 1, *, revoked: Mapping[str, int] | None = None, leaf: bool = False
) -> str:
    """Return the JWT of an environment's account; it works on first use once it was pushed.

    `leaf`: the site has its own NATS, and only that connects.
    """
    imports = permissions.environment_imports(keys.hub.public, environment, leaf=leaf)
    return _account(
        keys, "environment", environment, generation, imports, revoked or {}, leafs=_LEAFS_MAX if leaf else 0
    )


def project_account(keys: Keys, project: str, generation: int = 1, *, revoked: Mapping[str, int] | None = None) -> str:
    """Return the JWT of a project's account, for its applications."""
    imports = permissions.project_imports(keys.hub.public, project)
    return _account(keys, "project", project, generation, imports, revoked or {})


def tombstone(keys: Keys, kind: Kind, name: str, generation: int = 1) -> str:
    """Return the JWT that ends an account: all users revoked, no imports, no connections.

    Deleting instead would let the account return from a server that was down at the time.
    """
    subject = keys.account(kind, name, generation).public
    limits = Limits(connections=0, leafs=0, subscriptions=0, payload_bytes=0)
    return AccountClaim(f"{kind}-{name}", subject, limits, revoked={"*": int(time.time()) + 1}).sign(keys.signing)


def _account(
    keys: Keys,
    kind: Kind,
    name: str,
    generation: int,
    imports: list[dict[str, object]],
    revoked: Mapping[str, int],
    leafs: int = 0,
) -> str:
    limits = Limits(connections=_CONNECTIONS_MAX[kind], leafs=leafs, subscriptions=_SUBSCRIPTIONS_MAX[kind])
    subject = keys.account(kind, name, generation).public
    return AccountClaim(f"{kind}-{name}", subject, limits, imports, (), revoked).sign(keys.signing)


def hub_account(keys: Keys) -> str:
    limits = Limits(leafs=-1, jetstream=True)
    return AccountClaim(HUB, keys.hub.public, limits, exports=permissions.hub_exports()).sign(keys.signing)


def system_account(keys: Keys) -> str:
    return AccountClaim(SYSTEM, keys.system.public, Limits()).sign(keys.signing)


# -- server -----------------------------------------------------------------------------------------------------------


def server_config(keys: Keys, resolver_dir: Path, *, sync_interval_s: float = 10.0) -> str:
    """Return the part of a server's configuration that makes it trust these keys; contains no secret."""
    operator = operator_claim(keys.operator, keys.signing, keys.system.public, "landbridge")
    resolver = json.dumps(str(resolver_dir))
    return "\n".join(
        [
            f"operator: {operator}",
            f"system_account: {keys.system.public}",
            f'resolver: {{ type: full, dir: {resolver}, allow_delete: false, interval: "{sync_interval_s:g}s" }}',
            "resolver_preload: {",
            f"  {keys.system.public}: {system_account(keys)}",
            f"  {keys.hub.public}: {hub_account(keys)}",
            "}",
            "",
        ]
    )


class Issuer:
    """Pushes account JWTs to the servers, through a connection of the system account's issuer."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def push(self, token: str, *, timeout_s: float = 5.0) -> None:
        """Make an account known. Raises Unavailable if no server took it, BusError if it was refused."""
        try:
            answer = await self._bus.request(_CLAIMS_UPDATE, token.encode(), timeout_s)
        except NoResponder as error:
            raise Unavailable("no server takes accounts: is its resolver of type full?") from error
        found = msgspec.json.decode(answer)
        if "error" in found or found.get("data", {}).get("code") != 200:
            raise BusError(f"the server refused an account: {found.get('error') or found.get('data')}")
