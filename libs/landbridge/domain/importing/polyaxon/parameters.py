"""Parameters of Polyaxonfiles: values that stand in the texts of the run, or that a component of ours takes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from landbridge.domain.documents.names import is_name
from landbridge.domain.documents.places import Path
from landbridge.domain.importing.report import Left, Why
from landbridge.domain.importing.sheet import Sheet
from landbridge.domain.importing.variables import sheet_text, take_variable

_TEMPLATE: Final = re.compile(r"\{\{\s*(?:params\.)?([A-Za-z_][\w-]*)(?:\.(value|as_arg|as_str))?\s*\}\}")
_OPEN: Final = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_DECLARED: Final = Left(Why.NOT_NEEDED, "what a value may be, a Component says with type and choices")
_OUTPUT: Final = Left(
    Why.NO_COUNTERPART, "a value that a run reports", "log it as a metric, or name an output and its connection"
)
_RESULT: Final = Left(
    Why.NO_COUNTERPART, "comes from another run", "write the value, or name what that run wrote under inputs"
)


@dataclass(slots=True)
class Values:
    """Values by name, each with where it is written; `used` collects what stood in a text."""

    known: dict[str, tuple[Path, Any]] = field(default_factory=dict)
    used: dict[str, Path] = field(default_factory=dict)

    def fill(self, text: str, target: Path) -> tuple[str, list[str]]:
        """Return a text with its values, and the templates in it that nothing fills."""

        def value(match: re.Match[str]) -> str:
            found = self.known.get(match[1])
            if found is None or isinstance(found[1], Mapping | list):
                return match[0]
            self.used.setdefault(match[1], target)
            plain = sheet_text(found[1])
            return f"--{match[1]}={plain}" if match[2] == "as_arg" else plain

        filled = _TEMPLATE.sub(value, text) if "{{" in text else text
        return filled, _OPEN.findall(filled) if "{" in filled else []


def read_values(sheet: Sheet, component: Path) -> Values:
    """Read the values of inputs: what the operation gives, else the component's defaults."""
    values = Values()
    for index, declared in enumerate(sheet.list(*component, "inputs")):
        if isinstance(declared, Mapping) and declared.get("value") is not None:
            values.known[str(declared.get("name"))] = (*component, "inputs", index, "value"), declared["value"]
    for name, param in sheet.map("params").items():
        path: Path = ("params", name)
        if not isinstance(param, Mapping):
            values.known[str(name)] = path, param
        elif "ref" not in param and "value" in param:
            values.known[str(name)] = (*path, "value"), param["value"]
    return values


def take_parameters(sheet: Sheet, component: Path, values: Values) -> None:
    """Account for every parameter: filled in, given to a component of ours, or told."""
    for name in sheet.map("params"):
        _parameter(sheet, ("params", name), str(name), values)
    for index, declared in enumerate(sheet.list(*component, "inputs")):
        path: Path = (*component, "inputs", index)
        name = sheet.text(*path, "name")
        if name in values.used and values.known[name][0] == (*path, "value"):
            sheet.note((*path, "value"), values.used[name], "the default, filled in")
        elif isinstance(declared, Mapping) and "value" in declared and name in values.known:
            given = values.known[name][0] != (*path, "value")
            reason = "the operation gives another value" if given else "no text of the run asks for it"
            sheet.leave((*path, "value"), Left(Why.NOT_NEEDED, reason))
        sheet.leave_rest(path, _DECLARED)
    if sheet.has(*component, "outputs"):
        sheet.leave_rest((*component, "outputs"), _OUTPUT)


def _parameter(sheet: Sheet, path: Path, name: str, values: Values) -> None:
    param = sheet.at(*path)
    source = (*path, "value") if isinstance(param, Mapping) and "value" in param else path
    if isinstance(param, Mapping) and "ref" in param:
        sheet.leave(path, _RESULT)
        return
    if isinstance(param, Mapping) and isinstance(param.get("toEnv"), str):
        take_variable(sheet, source, param["toEnv"], param.get("value"))
        if sheet.has(*path, "toEnv"):
            sheet.leave((*path, "toEnv"), Left(Why.NOT_NEEDED, "the name of that variable"))
    if name in values.used and sheet.has(*source):
        sheet.note(source, values.used[name], "filled in where the run asks for it")
    elif sheet.has(*source):
        _given(sheet, source, name)
    if isinstance(param, Mapping) and sheet.has(*path):
        sheet.leave_rest(path, Left(Why.NO_COUNTERPART, "how Polyaxon hands a value on", "name data under inputs"))


def _given(sheet: Sheet, source: Path, name: str) -> None:
    value = sheet.at(*source)
    if isinstance(value, Mapping | list):
        sheet.leave(source, Left(Why.DECISION, "not one value", "write it out where the command needs it"))
    elif sheet.drafted("spec", "component") and is_name(name):
        sheet.put(source, ("spec", "parameters", name), sheet_text(value))
    elif sheet.drafted("spec", "component"):
        left = Left(
            Why.DECISION, "no name of a parameter here", f"call it {name.lower().replace('_', '-')} in the Component"
        )
        sheet.leave(source, left)
    else:
        reason = "no text of the run asks for it"
        sheet.leave(source, Left(Why.DECISION, reason, "add it to args or env if the program reads it"))
