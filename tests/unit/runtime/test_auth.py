"""Tokens, roles, sessions."""

import json
import time

import pytest
from starlette.requests import Request

from landbridge.runtime.auth import COOKIE, Authenticator, Principal, Role, check, digest, new_token
from landbridge.runtime.problems import ProblemError

ADMIN = "admin-token-for-tests"


def authenticator() -> Authenticator:
    return Authenticator(digest(ADMIN))


def request(**headers: str) -> Request:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "headers": raw, "method": "GET", "path": "/"})


def entry(token: str, role: str = "submitter", projects: tuple[str, ...] = ("vision",)) -> bytes:
    return json.dumps({"name": "ci", "role": role, "projects": projects, "tokenSha256": digest(token)}).encode()


def test_the_admin_token_opens_everything() -> None:
    found = authenticator().principal_of(ADMIN)
    assert found is not None
    assert found.may(Role.ADMIN, "any")


def test_an_entry_of_the_catalogue_opens_its_projects_until_it_is_deleted() -> None:
    auth, token = authenticator(), new_token()
    assert auth.apply("ci", entry(token))
    found = auth.principal_of(token)
    assert found == Principal("ci", Role.SUBMITTER, frozenset({"vision"}))
    assert found.may(Role.SUBMITTER, "vision")
    assert not found.may(Role.SUBMITTER, "audio")
    assert not found.may(Role.OPERATOR, "vision")
    assert auth.apply("ci", b"", deleted=True)
    assert auth.principal_of(token) is None


def test_a_new_token_of_the_same_name_replaces_the_old() -> None:
    auth, old, new = authenticator(), new_token(), new_token()
    auth.apply("ci", entry(old))
    auth.apply("ci", entry(new))
    assert auth.principal_of(old) is None
    assert auth.principal_of(new) is not None


@pytest.mark.parametrize("document", [b"", b"[]", b"{}", b'{"role":"king","tokenSha256":"%s"}' % (b"0" * 64), b"\xff"])
def test_an_unusable_entry_opens_nothing(document: bytes) -> None:
    assert not authenticator().apply("ci", document)


def test_without_an_admin_hash_no_token_is_admin() -> None:
    assert Authenticator("").principal_of("") is None
    assert Authenticator("").principal_of("x" * 40) is None


def test_a_request_is_authenticated_by_bearer_token() -> None:
    assert authenticator().authenticate(request(authorization=f"Bearer {ADMIN}")).role is Role.ADMIN
    for header in ({}, {"authorization": "Bearer wrong-token-000000"}, {"authorization": f"Basic {ADMIN}"}):
        with pytest.raises(ProblemError) as refused:
            authenticator().authenticate(request(**header))
        assert refused.value.status == 401
        assert ADMIN not in str(refused.value.body())


def test_a_session_lasts_until_its_end_or_its_token_is_withdrawn() -> None:
    auth, token = authenticator(), new_token()
    auth.apply("ci", entry(token, role="viewer"))
    cookie = auth.new_session(token)
    assert cookie is not None
    assert token not in cookie
    found = auth.authenticate(request(cookie=f"{COOKIE}={cookie}"))
    assert found.name == "ci"
    assert auth.principal_of_session(cookie, now=time.time() + 13 * 3600) is None
    auth.apply("ci", b"", deleted=True)
    assert auth.principal_of_session(cookie) is None
    assert auth.new_session("unknown-token-000000") is None


def test_a_changed_cookie_is_refused() -> None:
    auth = authenticator()
    cookie = auth.new_session(ADMIN)
    assert cookie is not None
    token_digest, end, signature = cookie.split(".")
    for forged in (f"{token_digest}.{int(end) + 1}.{signature}", f"{token_digest}.{end}.", "", "..", "é.é.é"):
        assert auth.principal_of_session(forged) is None
    assert Authenticator(digest("another-admin-token")).principal_of_session(cookie) is None


def test_projects_of_others_do_not_exist_for_a_principal() -> None:
    principal = Principal("ci", Role.VIEWER, frozenset({"vision"}))
    check(principal, Role.VIEWER, "vision")
    for project, role, status in (("audio", Role.VIEWER, 404), ("vision", Role.OPERATOR, 403)):
        with pytest.raises(ProblemError) as refused:
            check(principal, role, project)
        assert refused.value.status == status
