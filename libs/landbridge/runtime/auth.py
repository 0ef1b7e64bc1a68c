"""Who is asking: bearer tokens for programs, a signed cookie for the dashboard, roles per project.

Only SHA-256 digests of tokens are held. A token is looked up by its digest, so the time that takes says nothing about
other tokens.
"""

import hashlib
import hmac
import json
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from fastapi import Request

from landbridge.runtime.problems import ProblemError

COOKIE = "landbridge_session"
ALL_PROJECTS = "*"
_SESSION_SECONDS = 12 * 3600
_MINIMUM_TOKEN_LENGTH = 16


class Role(IntEnum):
    """What a principal may do; each role may also do what the lower ones may."""

    VIEWER = 1
    SUBMITTER = 2
    OPERATOR = 3
    ADMIN = 4

    @classmethod
    def parse(cls, text: str) -> "Role | None":
        return cls.__members__.get(text.upper())


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller. `projects` holds names, or `*` for all."""

    name: str
    role: Role
    projects: frozenset[str]

    def may(self, role: Role, project: str = "") -> bool:
        """Tell whether the caller has at least `role`, for `project` if one is named."""
        if self.role < role:
            return False
        return not project or self.sees(project)

    def sees(self, project: str) -> bool:
        """Tell whether the caller may know of a project at all."""
        return self.role is Role.ADMIN or ALL_PROJECTS in self.projects or project in self.projects


def digest(token: str) -> str:
    """Return the SHA-256 of a token in hexadecimal: the only form in which tokens are kept."""
    return hashlib.sha256(token.encode()).hexdigest()


def new_token() -> str:
    """Return a fresh token with 256 random bits."""
    return f"lb_{secrets.token_urlsafe(32)}"


class Authenticator:
    """Knows the admin token (from the settings) and the access entries (from the catalogue)."""

    def __init__(self, admin_token_sha256: str = "", session_key: str = "") -> None:
        self._by_digest: dict[str, Principal] = {}
        self._digest_by_name: dict[str, str] = {}
        self._admin = admin_token_sha256
        # Replicas must agree on the key; those that were given none derive it from what they have in common.
        self._key = hashlib.sha256(f"landbridge session {session_key or admin_token_sha256}".encode()).digest()

    def apply(self, name: str, document: bytes | Mapping[str, Any], *, deleted: bool = False) -> bool:
        """Take in one access entry of the catalogue; tell whether it was usable. The newest of a name counts."""
        old = self._digest_by_name.pop(name, "")
        self._by_digest.pop(old, None)
        if deleted:
            return True
        try:
            entry = json.loads(document) if isinstance(document, bytes) else dict(document)
            role = Role.parse(str(entry.get("role", "")))
            token_sha256 = str(entry.get("tokenSha256", "")).lower()
            projects = frozenset(str(project) for project in entry.get("projects") or ())
        except (ValueError, TypeError, AttributeError):
            return False
        if role is None or len(token_sha256) != 64:
            return False
        self._by_digest[token_sha256] = Principal(name, role, projects)
        self._digest_by_name[name] = token_sha256
        return True

    def principal_of(self, token: str) -> Principal | None:
        """Return the owner of a token, or None."""
        return self._by_token_digest(digest(token)) if len(token) >= _MINIMUM_TOKEN_LENGTH else None

    def _by_token_digest(self, found: str) -> Principal | None:
        if self._admin and hmac.compare_digest(found, self._admin):
            return Principal("admin", Role.ADMIN, frozenset({ALL_PROJECTS}))
        return self._by_digest.get(found)

    def new_session(self, token: str, *, now: float | None = None) -> str | None:
        """Return the cookie value for the owner of `token`, or None for an unknown token.

        The cookie holds the token's digest and an end, signed: it does not reveal the token, and it ends with it.
        """
        if self.principal_of(token) is None:
            return None
        payload = f"{digest(token)}.{int((now if now is not None else time.time()) + _SESSION_SECONDS)}"
        return f"{payload}.{self._sign(payload)}"

    def principal_of_session(self, cookie: str, *, now: float | None = None) -> Principal | None:
        """Return the owner of a session cookie, or None if it is forged, over, or its token was withdrawn."""
        payload, _, signature = cookie.rpartition(".")
        if not payload or not hmac.compare_digest(signature.encode(), self._sign(payload).encode()):
            return None
        token_digest, _, end = payload.partition(".")
        if not end.isdigit() or int(end) < (now if now is not None else time.time()):
            return None
        return self._by_token_digest(token_digest)

    def csrf_token(self, cookie: str) -> str:
        """Return the token that forms of this session have to send back."""
        return self._sign(f"csrf {cookie}")

    def _sign(self, payload: str) -> str:
        return urlsafe_b64encode(hmac.digest(self._key, payload.encode(), "sha256")).rstrip(b"=").decode()

    def authenticate(self, request: Request) -> Principal:
        """Return the caller of a request, by bearer token or session cookie. Raises ProblemError 401."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        principal = None
        if scheme.lower() == "bearer":
            principal = self.principal_of(token.strip())
        elif not scheme and COOKIE in request.cookies:
            principal = self.principal_of_session(request.cookies[COOKIE])
        if principal is None:
            detail = "the token is not known here" if scheme else "send Authorization: Bearer <token>"
            raise ProblemError(401, "Not signed in", detail, headers={"WWW-Authenticate": "Bearer"})
        return principal

    def require(self, role: Role) -> Callable[[Request], Principal]:
        """Return a FastAPI dependency: the caller, who has at least `role`. Raises ProblemError 401 or 403."""

        async def dependency(request: Request) -> Principal:
            principal = self.authenticate(request)
            check(principal, role)
            return principal

        return dependency  # type: ignore[return-value]  # FastAPI awaits it


def check(principal: Principal, role: Role, project: str = "") -> None:
    """Raise ProblemError unless the caller may: 404 for a project that he may not know of, 403 for too low a role."""
    if project and not principal.sees(project):
        raise ProblemError(404, "Not found", f"no project {project!r}")
    if principal.role < role:
        needed, has = role.name.lower(), principal.role.name.lower()
        raise ProblemError(403, "Not allowed", f"{principal.name} has the role {has}; this needs {needed}")
