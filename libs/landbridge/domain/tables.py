"""A CSV file as rows with the lines that they begin on. Written by others: everything in it is bounded and checked."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from landbridge.domain.documents.nearest import did_you_mean

MOST_BYTES: Final = 1024 * 1024
MOST_ROWS: Final = 10_000
MOST_PROBLEMS: Final = 100
_SEPARATORS: Final = (",", ";", "\t")
_LONGEST_CELL: Final = 2_000


class Problem(NamedTuple):
    """One problem: the line (0: the file as a whole), the column, what was expected and found, the next step."""

    line: int
    column: str
    message: str
    suggestion: str = ""

    def text(self, file: str) -> str:
        """Write it as one line."""
        place = f"{file}:{self.line}" if self.line else file
        column = f"{self.column}: " if self.column else ""
        return f"{place}: {column}{self.message}{f'; {self.suggestion}' if self.suggestion else ''}"


class Row(NamedTuple):
    """The cells of a row by column, without the space around them, and the line that it begins on."""

    line: int
    cells: Mapping[str, str]


class Table(NamedTuple):
    """Rows, what is wrong, and whether a comma is the sign before fractions: cells are then separated by semicolons."""

    rows: list[Row]
    problems: list[Problem]
    decimal_comma: bool = False


def read_table(data: bytes, columns: Iterable[str], required: Iterable[str], *, most_rows: int = MOST_ROWS) -> Table:
    """Read rows by the names of the first line. A file that cannot be read has no rows, and says why."""
    text = _decoded(data)
    if isinstance(text, Problem):
        return Table([], [text])
    lines = text.splitlines(keepends=True)
    start = next((number for number, line in enumerate(lines) if not _blank(line)), None)
    if start is None:
        return Table([], [Problem(0, "", "expected rows, found an empty file")])
    separator = max(_SEPARATORS, key=lines[start].count)
    reader = csv.reader(lines[start:], delimiter=separator, strict=True)
    try:
        names = [name.strip().lower().replace(" ", "_") for name in next(reader)]
    except csv.Error as error:
        return Table([], [Problem(start + 1, "", f"expected the names of columns, found: {error}")])
    problems = list(_of_names(names, start + 1, list(columns), list(required)))
    if problems:
        return Table([], problems)
    rows: list[Row] = []
    try:
        for row in _rows(reader, names, start, problems):
            rows.append(row)
            if len(rows) > most_rows:
                problems.append(Problem(row.line, "", f"expected at most {most_rows} rows", "split the file"))
                break
    except csv.Error as error:
        problems.append(Problem(start + reader.line_num, "", f"expected rows of CSV, found: {error}"))
    return Table(rows, problems, decimal_comma=separator == ";")


def _decoded(data: bytes) -> str | Problem:
    if len(data) > MOST_BYTES:
        return Problem(
            0, "", f"expected at most {MOST_BYTES // 1024} KiB, found {-(-len(data) // 1024)}", "split the file"
        )
    if b"\0" in data:
        return Problem(0, "", "expected text, found zero bytes", "save it as CSV in UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Problem(line, "", f"expected UTF-8, found byte 0x{data[error.start]:02x}", "save it as CSV in UTF-8")


def _blank(line: str) -> bool:
    return not line.strip() or line.startswith("#")


def _of_names(names: list[str], line: int, columns: list[str], required: list[str]) -> Iterator[Problem]:
    for name in dict.fromkeys(names):
        if name not in columns:
            told = did_you_mean(name, columns) or f"known columns: {', '.join(columns)}"
            yield Problem(line, "", f'unknown column "{name[:80]}"', told)
        elif names.count(name) > 1:
            yield Problem(line, name, f"found {names.count(name)} columns of this name", "keep one")
    for name in required:
        if name not in names:
            yield Problem(line, "", f'column "{name}" is missing', "the first line names the columns")


def _rows(reader: Iterator[list[str]], names: list[str], start: int, problems: list[Problem]) -> Iterator[Row]:
    line = start + 2
    for cells in reader:
        begins, line = line, start + reader.line_num + 1  # type: ignore[attr-defined]
        if not any(cell.strip() for cell in cells) or cells[0].startswith("#"):
            continue
        if len(cells) != len(names):
            hint = "put a value that contains the separator in quotation marks"
            problems.append(Problem(begins, "", f"expected {len(names)} cells, found {len(cells)}", hint))
        elif any(len(cell) > _LONGEST_CELL for cell in cells):
            problems.append(Problem(begins, "", f"expected cells of at most {_LONGEST_CELL} characters"))
        else:
            yield Row(begins, {name: cell.strip() for name, cell in zip(names, cells, strict=True)})
