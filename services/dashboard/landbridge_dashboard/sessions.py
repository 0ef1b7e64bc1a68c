"""Signing in with a token, once, for a signed cookie; signing out."""

from urllib.parse import parse_qs, quote

from fastapi import FastAPI, Request, Response
from fastapi.responses import RedirectResponse

from landbridge.runtime.auth import COOKIE, Authenticator
from landbridge_dashboard.render import page

_MAX_FORM_BYTES = 4096


def local_path(path: str) -> str:
    """Return `path` if it stays on this site, else `/`."""
    safe = path.startswith("/") and not path.startswith(("//", "/\\")) and "\n" not in path and "\r" not in path
    return path if safe else "/"


def add_routes(app: FastAPI, auth: Authenticator) -> None:
    """Add /sign-in and /sign-out."""

    def signed_in(request: Request, token: str, then: str) -> Response:
        session = auth.new_session(token)
        if session is None:
            problem = "This token is not known here. It may have been withdrawn, or be another instance's."
            return page("sign_in.html", "Sign in", status=401, problem=problem, next=then)
        answer = RedirectResponse(then, status_code=303)
        secure = request.url.scheme == "https"
        answer.set_cookie(COOKIE, session, max_age=12 * 3600, httponly=True, samesite="lax", secure=secure)
        return answer

    @app.get("/sign-in", include_in_schema=False)
    async def sign_in_page(request: Request, token: str = "", next: str = "/") -> Response:  # noqa: A002  its name in the URL
        if token:
            return signed_in(request, token, local_path(next))
        return page("sign_in.html", "Sign in", next=local_path(next), problem="")

    @app.post("/sign-in", include_in_schema=False)
    async def sign_in(request: Request) -> Response:
        body = await request.body()
        fields = parse_qs(body[:_MAX_FORM_BYTES].decode("utf-8", "replace"))
        return signed_in(request, fields.get("token", [""])[0].strip(), local_path(fields.get("next", ["/"])[0]))

    @app.get("/sign-out", include_in_schema=False)
    async def sign_out() -> Response:
        answer = RedirectResponse("/sign-in", status_code=303)
        answer.delete_cookie(COOKIE)
        return answer


def to_sign_in(request: Request) -> Response:
    """Send a visitor who has no session to the sign-in page, and back afterwards."""
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(f"/sign-in?next={quote(wanted, safe='')}", status_code=303)
