"""Jinja2 templates, always escaped, and the text of times and numbers."""

from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

_environment = Environment(
    loader=PackageLoader("landbridge_dashboard", "templates"),
    autoescape=select_autoescape(default=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def page(
    fragment: str,
    title: str,
    *,
    section: str = "",
    principal: str = "",
    live: str = "",
    status: int = 200,
    **values: Any,
) -> HTMLResponse:
    """Return a whole page around `fragment`. `live` is the address of its event stream, empty for a still page."""
    text = _environment.get_template("layout.html").render(
        fragment=fragment,
        title=title,
        section=section,
        principal=principal,
        signed_in=bool(principal),
        live=live,
        **values,
    )
    return HTMLResponse(text, status, {"Cache-Control": "no-store"})


def part(fragment: str, **values: Any) -> str:
    """Return only the fragment, for an event of the live stream."""
    return _environment.get_template(fragment).render(**values)
