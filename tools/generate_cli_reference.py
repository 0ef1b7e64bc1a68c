"""Write docs/cli.md from the command itself; `--check` tells whether it is up to date (exit code 1 if not)."""

import sys
from pathlib import Path
from typing import Any

import click
import typer.main

from landbridge.cli.main import app

TARGET = Path(__file__).parents[1] / "docs" / "cli.md"
INTRODUCTION = """# Command line

<!-- Written by tools/generate_cli_reference.py from the command itself; do not edit. -->

`landbridge` finds the instance by `--data DIR`, else `LANDBRIDGE_DATA`, else a named context (`--context`,
`landbridge context use`), else `.landbridge` in the current folder. Reading commands take `-o table|json|yaml`.

| exit code | meaning |
|---|---|
| 0 | completed |
| 1 | failed |
| 2 | invalid: usage, document or request |
| 3 | unplaceable: no environment can run it as things stand |
| 4 | cancelled |
| 5 | the wait timed out; the operation goes on |
| 6 | unreachable |
"""


def main() -> int:
    """Write or compare; return the exit code."""
    text = INTRODUCTION + "".join(_section(typer.main.get_command(app), "landbridge"))
    if "--check" in sys.argv[1:]:
        if not TARGET.exists() or TARGET.read_text() != text:
            print("docs/cli.md is not what the command says; run: make schema")
            return 1
        return 0
    TARGET.write_text(text)
    return 0


def _section(command: Any, path: str) -> list[str]:
    parts: list[str] = []
    children = getattr(command, "commands", None)
    if path != "landbridge":
        parts.append(f"\n## {path}\n\n{_plain(command.help)}\n")
        if children is None:
            parts.append(_usage(command, path))
    for name, child in (children or {}).items():
        if not child.hidden:
            parts += _section(child, f"{path} {name}")
    return parts


def _usage(command: Any, path: str) -> str:
    arguments = [item for item in command.params if item.param_type_name == "argument"]
    options = [item for item in command.params if item.param_type_name == "option" and not item.hidden]
    words = " ".join(_argument(item) for item in arguments)
    lines = [f"\n```\n{path}{' [OPTIONS]' if options else ''}{f' {words}' if words else ''}\n```\n"]
    if options:
        lines.append("\n| option | meaning |\n|---|---|\n")
        lines += [f"| `{_names(item)}` | {_plain(item.help).replace('|', chr(92) + '|')} |\n" for item in options]
    return "".join(lines)


def _argument(item: Any) -> str:
    name = (item.metavar or item.name or "").upper().strip("[]")
    name = name.removesuffix("...") + ("..." if item.nargs == -1 else "")
    return name if item.required else f"[{name}]"


def _names(item: Any) -> str:
    value = "" if item.is_flag else f" {item.metavar or item.type.name.upper()}"
    if isinstance(item.type, click.Choice):
        value = " " + "\\|".join(str(getattr(each, "value", each)) for each in item.type.choices)
    return ", ".join(item.opts) + value


def _plain(text: str | None) -> str:
    return " ".join((text or "").split())


if __name__ == "__main__":
    raise SystemExit(main())
