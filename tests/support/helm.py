"""Render a Helm chart that uses a few constructs only: values, quote, toJson, toYaml, if, range. Others are refused.

Not Helm: whitespace and everything else that no chart of ours uses is left out. Trimming (`{{-`) works as there.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

_ACTION = re.compile(r"(\s*)\{\{-\s*(.*?)\s*\}\}|\{\{\s*(.*?)\s*\}\}")
Object = dict[str, Any]


def render(chart: Path, release: str, **values: Any) -> list[Object]:
    """Return the objects of a chart, with these values over its own."""
    root = {
        "Values": {**yaml.safe_load((chart / "values.yaml").read_text()), **values},
        "Release": {"Namespace": release},
    }
    found: list[Object] = []
    for path in sorted((chart / "templates").glob("*.yaml")):
        tokens = _tokens(path.read_text())
        text, rest = _block(tokens, 0, root, root)
        assert rest == len(tokens), f"{path.name}: an end too many"
        found += [item for item in yaml.safe_load_all(text) if item]
    return found


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, at = [], 0
    for match in _ACTION.finditer(text):
        # Trimming takes the white space before the action, which the pattern has taken in.
        tokens += [("text", text[at : match.start()]), ("do", match[2] if match[2] is not None else match[3])]
        at = match.end()
    return [*tokens, ("text", text[at:])]


def _block(tokens: list[tuple[str, str]], at: int, dot: Any, root: Object) -> tuple[str, int]:
    """Render up to the matching end; return the text and where it goes on."""
    out = ""
    while at < len(tokens):
        kind, text = tokens[at]
        at += 1
        if kind == "text":
            out += text
        elif text == "end":
            return out, at
        elif text.startswith("range "):
            start = at
            for item in _value(text.removeprefix("range "), dot, root):
                inner, at = _block(tokens, start, item, root)
                out += inner
            if at == start:
                _, at = _block(tokens, start, None, root)
        elif text.startswith("if "):
            inner, at = _block(tokens, at, dot, root)
            out += inner if _value(text.removeprefix("if "), dot, root) else ""
        else:
            out += str(_value(text, dot, root))
    return out, at


def _value(text: str, dot: Any, root: Object) -> Any:
    first, *functions = [part.strip() for part in text.split("|")]
    words = first.split()
    functions = [*reversed(words[:-1]), *functions]
    value = _look_up(words[-1], dot, root)
    for name in functions:
        value = _FUNCTIONS[name](value)
    return value


def _look_up(path: str, dot: Any, root: Object) -> Any:
    if dot is None:
        return ""
    value = root if path.startswith("$") else dot
    for name in filter(None, path.lstrip("$").split(".")):
        value = value[name]
    return value


_FUNCTIONS: dict[str, Callable[[Any], str]] = {
    "quote": lambda value: json.dumps(str(value), ensure_ascii=False),
    "toJson": json.dumps,
    "toYaml": lambda value: yaml.safe_dump(value, sort_keys=False).removesuffix("\n"),
}
