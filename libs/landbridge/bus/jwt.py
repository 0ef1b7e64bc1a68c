"""NATS keys and claims: operator, account and user JWTs, signed with Ed25519.

Format: base64url without padding of header, claims and signature; header `{"typ":"JWT","alg":"ed25519-nkey"}`. A limit
that is left out of an account means "forbidden", so every limit is written.
"""

import base64
import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import nkeys

UNLIMITED: Final = -1


class Role(Enum):
    """What a key signs for; the value is the key's prefix byte."""

    OPERATOR = nkeys.PREFIX_BYTE_OPERATOR
    ACCOUNT = nkeys.PREFIX_BYTE_ACCOUNT
    USER = nkeys.PREFIX_BYTE_USER


@dataclass(frozen=True, slots=True)
class Key:
    """A key pair. `seed` is the secret and stays out of logs; `public` is the name others know it by."""

    public: str
    seed: str = field(repr=False)

    def sign(self, data: bytes) -> bytes:
        signature: bytes = nkeys.from_seed(bytearray(self.seed.encode())).sign(data)
        return signature


def key_from_seed(seed: str) -> Key:
    """Load a key. Raises ValueError if `seed` is not an nkey seed."""
    try:
        return Key(nkeys.from_seed(bytearray(seed.strip().encode())).public_key.decode(), seed.strip())
    except Exception as error:  # nkeys raises several kinds for a damaged seed
        raise ValueError("not an NATS key seed: expected text such as SOA…, SAA… or SUA…") from error


def new_key(role: Role) -> Key:
    return derived_key(role, os.urandom(32))


def derived_key(role: Role, secret: bytes) -> Key:
    """Return the key of these 32 secret bytes: the same bytes always give the same key."""
    if len(secret) != 32:
        raise ValueError(f"a key needs 32 secret bytes, got {len(secret)}")
    return key_from_seed(nkeys.encode_seed(secret, role.value).decode())


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


_HEADER: Final = _b64(_compact({"typ": "JWT", "alg": "ed25519-nkey"}))


def _signed(kind: str, signer: Key, subject: str, name: str, nats: Mapping[str, Any], expires: int | None) -> str:
    claims: dict[str, Any] = {"iat": int(time.time()), "iss": signer.public, "name": name, "sub": subject}
    if expires is not None:
        claims["exp"] = expires
    claims["nats"] = {**nats, "type": kind, "version": 2}
    claims["jti"] = base64.b32encode(hashlib.sha256(_compact(claims)).digest()).rstrip(b"=").decode()
    text = f"{_HEADER}.{_b64(_compact(claims))}"
    return f"{text}.{_b64(signer.sign(text.encode()))}"


def operator_claim(operator: Key, signing: Key, system_account: str, name: str) -> str:
    nats = {"system_account": system_account, "signing_keys": [signing.public]}
    return _signed("operator", operator, operator.public, name, nats, None)


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one account; -1 is unlimited, 0 is forbidden."""

    connections: int = UNLIMITED
    leafs: int = 0
    subscriptions: int = UNLIMITED
    payload_bytes: int = UNLIMITED
    jetstream: bool = False

    def claim(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "subs": self.subscriptions,
            "data": UNLIMITED,
            "payload": self.payload_bytes,
            "imports": UNLIMITED,
            "exports": UNLIMITED,
            "wildcards": True,
            "conn": self.connections,
            "leaf": self.leafs,
            "disallow_bearer": True,
        }
        if self.jetstream:
            found |= dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), UNLIMITED)
        return found


@dataclass(frozen=True, slots=True)
class AccountClaim:
    """What an account is; `revoked` maps a user's public key, or `*`, to a Unix time."""

    name: str
    subject: str
    limits: Limits
    imports: Sequence[Mapping[str, Any]] = ()
    exports: Sequence[Mapping[str, Any]] = ()
    revoked: Mapping[str, int] = field(default_factory=dict)

    def sign(self, operator_signing: Key) -> str:
        nats: dict[str, Any] = {
            "limits": self.limits.claim(),
            "imports": list(self.imports),
            "exports": list(self.exports),
        }
        if self.revoked:
            nats["revocations"] = dict(self.revoked)
        return _signed("account", operator_signing, self.subject, self.name, nats, None)


def user_claim(
    account: Key,
    user: str,
    name: str,
    *,
    publish: Sequence[str],
    subscribe: Sequence[str],
    answers: bool = False,
    answer_ttl_s: float = 60.0,
    expires: int | None = None,
    connects_as: str = "",
) -> str:
    """Return the JWT of the user with public key `user`; `answers`: once to each request's reply subject.

    `connects_as`: the only kind of connection it may make, e.g. LEAFNODE; "" allows all.
    """
    nats: dict[str, Any] = {
        "subs": UNLIMITED,
        "data": UNLIMITED,
        "payload": UNLIMITED,
        "pub": {"allow": list(publish)} if publish else {"deny": [">"]},
        "sub": {"allow": list(subscribe)} if subscribe else {"deny": [">"]},
    }
    if connects_as:
        nats["allowed_connection_types"] = [connects_as]
    if answers:
        nats["resp"] = {"max": 1, "ttl": int(answer_ttl_s * 1e9)}
    return _signed("user", account, user, name, nats, expires)


def service_export(subject: str, *, streamed: bool = False) -> dict[str, Any]:
    kind = "Stream" if streamed else "Singleton"
    return {"name": subject, "subject": subject, "type": "service", "response_type": kind}


def stream_export(subject: str) -> dict[str, Any]:
    return {"name": subject, "subject": subject, "type": "stream"}


def service_import(account: str, subject: str, local: str = "") -> dict[str, Any]:
    """Let requests published here on `local` (default: the same subject) arrive in `account` on `subject`."""
    found = {"name": subject, "subject": subject, "account": account, "type": "service"}
    return {**found, "local_subject": local} if local else found


def stream_import(account: str, subject: str) -> dict[str, Any]:
    return {"name": subject, "subject": subject, "account": account, "type": "stream"}


def credentials(token: str, user: Key) -> str:
    """Return the text of a credentials file: everything a client needs; a secret."""
    return (
        f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
    )
