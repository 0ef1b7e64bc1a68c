"""Environment variables, wherever a format keeps them."""

from collections.abc import Mapping
from typing import Final

from landbridge.domain.documents.credentials import credential_in, secret_in_variable
from landbridge.domain.documents.names import variable_refusal
from landbridge.domain.documents.places import Path
from landbridge.domain.documents.providers import PORTABLE
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.sheet import Sheet

SECRET: Final = Left(
    Why.SECRET,
    "carries a secret, and an operation never does",
    "name a connection whose binding at the site hands the variable out; change the secret if it was shared",
)
_CALLER: Final = Left(
    Why.DECISION,
    "its value comes from the caller's own shell",
    "set it in spec.env; a secret comes from a connection's binding",
)


def take_variables(sheet: Sheet, base: Path) -> None:
    """Map a map of variables."""
    for name in sheet.map(*base):
        take_variable(sheet, (*base, name), str(name), sheet.at(*base, name))


def take_variable(sheet: Sheet, source: Path, name: str, value: object) -> None:
    """Map one variable, unless its name is reserved or its value has no place in an operation."""
    refusal = variable_refusal(name)
    if refusal:
        sheet.leave(source, Left(Why.NO_COUNTERPART, refusal, "choose another name in the program"))
        return
    if value is None:
        sheet.leave(source, _CALLER)
        return
    text = sheet_text(value)
    if credential_in(text) or secret_in_variable(name, text):
        sheet.leave(source, SECRET)
        return
    rule = next((rule for rule in PORTABLE if rule.is_in(text.lower())), None)
    if rule is not None:
        sheet.leave(source, Left(Why.NAME, f"holds {rule.what}", rule.instead))
        return
    sheet.put(source, ("spec", "env", name), text)


def sheet_text(value: object) -> str:
    """Return a scalar as the program would see it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if isinstance(value, Mapping | list) else str(value)
