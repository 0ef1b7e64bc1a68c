"""Printing: tables for people, JSON and YAML for programs. Colour only on a terminal and without NO_COLOR."""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from landbridge.cli.options import Format

_PHASE_STYLES = {
    "completed": "green",
    "failed": "red",
    "cancelled": "yellow",
    "running": "cyan",
    "retrying": "yellow",
    "queued": "dim",
    "accepted": "dim",
    "pending": "blue",
}
_WORD_STYLES = {
    **_PHASE_STYLES,
    **dict.fromkeys(("eligible", "connected", "ready", "proven", "ok", "yes", "active", "same"), "green"),
    **dict.fromkeys(("lost", "never", "differs", "crash-loop", "no answer", "expired", "unplaceable"), "red"),
    **dict.fromkeys(
        ("not now", "restarting", "starting", "reconciling", "warning", "unknown", "paused", "paused in part"), "yellow"
    ),
    **dict.fromkeys(("draining", "misconfigured"), "yellow"),
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `fold` may be broken into lines when space is short; `wide` is left out below that many columns."""

    title: str
    fold: bool = False
    right: bool = False
    wide: int = 0
    styled: bool = False


def terminal() -> bool:
    """Whether people look at standard output."""
    return sys.stdout.isatty()


def width() -> int:
    """Columns of the terminal; COLUMNS wins."""
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return 80


def table(columns: Sequence[Column], rows: Iterable[Sequence[Any]], *, empty: str = "") -> None:
    """Print rows; on a terminal within its width and coloured, else one line a row, whole, parted by two blanks."""
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    if not cells:
        if empty:
            # A remark for people is no row of a table: programs read only rows from standard output.
            print(empty, file=sys.stdout if terminal() else sys.stderr)
        return
    if terminal():
        _rich_table(columns, cells)
    else:
        _plain_table(columns, cells)


def _plain_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    lines = [[column.title for column in columns], *([" ".join(cell.split("\n")) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        parts = [
            cell.rjust(space) if column.right else cell.ljust(space)
            for cell, space, column in zip(line, widths, columns, strict=True)
        ]
        print("  ".join(parts).rstrip())


def _rich_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    space = width()
    shown = [i for i, column in enumerate(columns) if space >= column.wide]
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    for i in shown:
        column = columns[i]
        grid.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=not column.fold,
            overflow="fold" if column.fold else "ellipsis",
        )
    for row in rows:
        grid.add_row(*(Text(row[i], style=style_of(row[i]) if columns[i].styled else "") for i in shown))
    console().print(grid)


def style_of(word: str) -> str:
    """Return the style of a phase, verdict or state."""
    return _WORD_STYLES.get(word.split("\n", maxsplit=1)[0].strip(), "")


def console() -> Any:
    """Return a rich console for standard output; it honours NO_COLOR by itself."""
    from rich.console import Console

    return Console(width=width(), highlight=False, soft_wrap=False)


def styled(text: str, style: str = "") -> str:
    """Return text with colour codes on a coloured terminal."""
    codes = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "bold": "1", "dim": "2"}
    if not style or style not in codes or not terminal() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{codes[style]}m{text}\x1b[0m"


def fields(pairs: Iterable[tuple[str, Any]]) -> None:
    """Print names and values below each other; empty values are left out."""
    shown = [(name, str(value)) for name, value in pairs if value not in (None, "", [], {})]
    space = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        lines = wrap(value, width() - space - 2) if terminal() else value.split("\n")
        style = style_of(value)
        print(f"{styled(name.ljust(space), 'dim')}  {styled(lines[0], style)}")
        for line in lines[1:]:
            print(f"{' ' * space}  {line}")


def wrap(text: str, space: int) -> list[str]:
    """Break text into lines of at most `space` characters, at blanks where possible."""
    import textwrap

    return [
        line
        for part in text.split("\n")
        for line in (textwrap.wrap(part, max(20, space), break_on_hyphens=False) or [""])
    ]


def emit(value: Any, form: Format) -> bool:
    """Print JSON or YAML; False for the table format, which the caller prints."""
    if form is Format.JSON:
        print(json.dumps(value, indent=2, ensure_ascii=False, default=str))
        return True
    if form is Format.YAML:
        import yaml

        sys.stdout.write(yaml.safe_dump(_plain(value), sort_keys=False, allow_unicode=True, width=100))
        return True
    return False


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def moment(text: str) -> datetime | None:
    """Read an RFC 3339 time; None for anything else."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def age(text: str, now: datetime | None = None) -> str:
    """Return how long ago a time was, in one or two units: 12s, 5m, 3h, 2d."""
    at = moment(text)
    if at is None:
        return ""
    return span(((now or datetime.now(UTC)) - at).total_seconds())


def span(seconds: float) -> str:
    """Return a length of time in one unit, two where the second still says something."""
    rest = max(0, int(seconds))
    for unit, size, below, name in ((86400, 3600, 2 * 86400, "d"), (3600, 60, 2 * 3600, "h"), (60, 1, 2 * 60, "m")):
        if rest >= unit:
            smaller = {"d": "h", "h": "m", "m": "s"}[name]
            part = rest % unit // size
            return f"{rest // unit}{name}{part}{smaller}" if part and rest < below * 5 else f"{rest // unit}{name}"
    return f"{rest}s"


def clock(text: str) -> str:
    """Return the local time of day, with the date where it is another day."""
    at = moment(text)
    if at is None:
        return text
    local = at.astimezone()
    form = "%H:%M:%S" if local.date() == datetime.now(UTC).astimezone().date() else "%Y-%m-%d %H:%M:%S"
    return local.strftime(form)


def size(count: int) -> str:
    """Return bytes for people: 512 B, 3.4 KiB, 12 MiB."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{count} B" if unit == "B" else f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def note(text: str) -> None:
    """Say something that is not the result: on standard error."""
    print(text, file=sys.stderr, flush=True)
