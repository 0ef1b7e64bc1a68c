"""The report of an import for people: what to do first, then what is left out, then what was mapped."""

import os
import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, TextIO

from landbridge.cli import output
from landbridge.domain.documents.places import path_text

if TYPE_CHECKING:
    from landbridge.domain.importing import Imported, Mapped, Missing, Unmapped, Why
    from landbridge.domain.importing.report import Left

_HEADS = {
    "needs-a-name": "give a name",
    "needs-a-decision": "decide",
    "secret": "secret",
    "unreadable": "unclear",
}
_REST = {
    "not-needed": "done without being said",
    "no-counterpart": "nothing like it here",
    "unknown-field": "unknown fields",
}


def print_report(imported: "Imported", file: str, out: str, to: TextIO, *, again: bool) -> None:
    """Print one report to a stream."""
    from landbridge.domain.importing import FORMATS

    page = _Page(to)
    if again:
        page.line()
    asks = sorted((each for each in imported.unmapped if each.left.why.asks), key=lambda each: _order(each.left.why))
    rest = [each for each in imported.unmapped if not each.left.why.asks]
    name = imported.operation["metadata"].get("name") or "(no name yet)"
    page.line(f"{file}: {FORMATS[imported.format].title} as operation {name}", "bold")
    counts = [f"{len(imported.mapped)} mapped", f"{len(asks)} for you to look at", f"{len(rest)} left out"]
    verdict = f"{len(imported.missing)} to add before it is valid" if imported.missing else "valid"
    page.line(f"{', '.join(counts)}; {verdict}", "yellow" if imported.missing else "green")
    _missing(page, imported.missing)
    _asks(page, asks)
    _rest(page, rest)
    _mapped(page, imported.mapped)
    _next(page, imported, file, out)


def _order(why: "Why") -> int:
    """Names first: they are quickly given. Sorting keeps the order of the file within each kind."""
    return list(_HEADS).index(why.value)


class _Page:
    """Lines on a stream, within the terminal's width if people look at it."""

    def __init__(self, to: TextIO) -> None:
        self._to = to
        self._people = to.isatty() or output.terminal()
        self.width = min(output.width(), 120) if self._people else 120

    def line(self, text: str = "", style: str = "") -> None:
        parts = [text]
        if self._people and len(text) > self.width:
            pad = " " * (len(text) - len(text.lstrip()) + 4)
            parts = textwrap.wrap(text, self.width, subsequent_indent=pad, break_on_hyphens=False)
        for part in parts:
            print(self._styled(part, style), file=self._to)

    def entry(self, head: str, lines: Sequence[str], style: str = "") -> None:
        """Print a head, and what belongs to it below it."""
        self.line(f"  {head}", style)
        for line in lines:
            for part in output.wrap(line, self.width - 6):
                print(f"      {part}", file=self._to)

    def _styled(self, text: str, style: str) -> str:
        codes = {"bold": "1", "yellow": "33", "green": "32", "cyan": "36", "dim": "2"}
        if style not in codes or not self._to.isatty() or os.environ.get("NO_COLOR"):
            return text
        return f"\x1b[{codes[style]}m{text}\x1b[0m"


def _missing(page: _Page, missing: "Sequence[Missing]") -> None:
    if not missing:
        return
    page.line()
    page.line("TO ADD OR CHANGE in the operation", "bold")
    for each in missing:
        told = f"{each.message}; {each.suggestion}" if each.suggestion else each.message
        page.entry(each.target or "(the whole)", [told], "cyan")


def _asks(page: _Page, asks: "Sequence[Unmapped]") -> None:
    if not asks:
        return
    page.line()
    page.line("FOR YOU TO LOOK AT", "bold")
    for left, group in groupby(asks, lambda each: (each.left, each.answer)):
        same = list(group)
        heads = [f"{path_text(each.source)}{f'  {each.found}' if each.found else ''}" for each in same]
        lines = [f"{_HEADS[left[0].why.value]}: {left[0].reason}", left[0].advice]
        if left[1]:
            lines.append(f"--map {_quoted(left[1])}=NAME")
        page.entry("\n  ".join(heads), [line for line in lines if line], "cyan")


def _rest(page: _Page, rest: "Sequence[Unmapped]") -> None:
    if not rest:
        return
    page.line()
    page.line("LEFT OUT", "bold")
    order = list(_REST)
    for why, group in groupby(
        sorted(rest, key=lambda each: order.index(each.left.why.value)), lambda each: each.left.why
    ):
        page.line(f"  {_REST[why.value]}", "dim")
        for left, same in _alike(group):
            told = "; ".join(part for part in (left.reason, left.advice) if part)
            first, *more = output.wrap(f"{', '.join(same)}: {told}", page.width - 6)
            page.line(f"    {first}")
            for line in more:
                page.line(f"      {line}")


def _alike(rest: "Iterable[Unmapped]") -> "list[tuple[Left, list[str]]]":
    """Return each reason once, with all fields that it holds for, and what they say where that is short."""
    found: dict[Left, list[str]] = {}
    for each in rest:
        said = f" ({each.found})" if each.found and len(each.found) < 30 else ""
        found.setdefault(each.left, []).append(f"{path_text(each.source)}{said}")
    return list(found.items())


def _mapped(page: _Page, mapped: "Sequence[Mapped]") -> None:
    if not mapped:
        return
    page.line()
    page.line("MAPPED", "bold")
    sources = [path_text(each.source) for each in mapped]
    space = min(max(map(len, sources)), 44)
    for source, each in zip(sources, mapped, strict=True):
        line = f"    {source.ljust(space)}  {path_text(each.target)}"
        page.line(line)
        for part in output.wrap(each.note, page.width - space - 10) if each.note else []:
            page.line(f"    {' ' * space}    {part}", "dim")


def _next(page: _Page, imported: "Imported", file: str, out: str) -> None:
    page.line()
    answers = list(dict.fromkeys(each.answer for each in imported.unmapped if each.answer))
    if any(each.target == "metadata.project" for each in imported.missing) or answers:
        page.line("Give what you know, in one go:")
        words = [f"--map {_quoted(answer)}=NAME" for answer in answers]
        project = "" if imported.operation["metadata"].get("project") else " --project NAME"
        lines = [f"landbridge import {_quoted(file)}{project}{f' --out {_quoted(out)}' if out else ''}", *words]
        for number, line in enumerate(lines):
            more = " \\" if number + 1 < len(lines) else ""
            page.line(f"{'      ' if number else '  '}{line}{more}")
    if imported.missing:
        step = "add what is missing" + (f" in {out}" if out else "")
        page.line(f"Next: {step}, then landbridge validate{f' {out}' if out else ''}")
    else:
        page.line(f"Next: landbridge render {out or 'FILE'}, then landbridge submit {out or 'FILE'}")


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)
