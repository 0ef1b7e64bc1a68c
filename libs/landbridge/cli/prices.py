"""`env import-prices`: the cost section of a contract, from a price list that a provider or an accountant wrote."""

import json
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from landbridge.cli import output
from landbridge.cli.documents import parse_files, read_files, refuse
from landbridge.cli.exits import CliError, Exit

if TYPE_CHECKING:
    from landbridge.domain.prices import Section

_SOURCE_LENGTH = 200


def add_to(env: typer.Typer) -> None:
    """Add the command below `env`."""
    env.command("import-prices")(import_prices)


def import_prices(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The price list, CSV; - is standard input.")],
    environment: Annotated[
        str, typer.Option("--environment", "-e", metavar="NAME", help="The environment.", show_default=False)
    ] = "",
    contract: Annotated[
        str,
        typer.Option(
            "--contract",
            metavar="FILE",
            help="Its contract: classes are compared with what it offers.",
            show_default=False,
        ),
    ] = "",
    at: Annotated[
        str, typer.Option("--at", metavar="DATE", help="Prices of that day. [default: now]", show_default=False)
    ] = "",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write it there instead.", show_default=False)
    ] = None,
) -> None:
    """Write the cost section of an environment's contract from a price list.

    Everything that is wrong in the list is told at once, with line and suggestion. A price that is not listed, has
    ended or is stated to be unknown stays unknown, which is never zero; `prepaid` becomes the zero that a contract
    means by it. Nothing is sent: put the section into the contract's next version and register that.
    """
    from landbridge.domain.prices import cost_section, read_prices

    classes, name = _contract(contract, environment)
    [(told, data)] = read_files([file])
    moment = _moment(at)
    listed = read_prices(data)
    section = cost_section(listed.rows, name, moment, classes)
    refuse([problem.text(told) for problem in sorted({*listed.problems, *section.problems})])
    text = "\n".join([*_head(section, name, moment, told), *_body(section)]) + "\n"
    if out is None:
        print(text, end="")
    else:
        out.write_text(text)
        print(f"{out}: the cost section of {name}, {len(section.prices)} classes with a price")
    for subject, why in section.unknown.items():
        output.note(f"{subject} stays unknown: {why}")


def _contract(file: str, environment: str) -> tuple[Collection[str] | None, str]:
    """Return the classes that a contract offers, and the environment's name."""
    if not file:
        if not environment:
            raise CliError("expected an environment: --environment NAME or --contract FILE", Exit.INVALID)
        return None, environment
    good, problems = parse_files([file])
    refuse(problems)
    if len(good) != 1 or good[0].document.kind.name != "EnvironmentContract":
        raise CliError(f"{file}: expected one EnvironmentContract", Exit.INVALID)
    document = good[0].document
    if environment not in ("", document.name):
        raise CliError(f"{file}: expected the contract of {environment}, found that of {document.name}", Exit.INVALID)
    spec: dict[str, Any] = document.value.get("spec") or {}
    return list(spec.get("classes") or {}), document.name


def _moment(text: str) -> datetime:
    if not text:
        return datetime.now(UTC)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise CliError(f'--at: expected a date such as 2027-01-01, found "{text}"', Exit.INVALID) from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def _head(section: "Section", name: str, at: datetime, file: str) -> Iterator[str]:
    from landbridge.domain.prices.section import last_day

    yield f"# Prices of {name} on {at:%Y-%m-%d}, from {_plain(file)}"
    for subject, why in section.unknown.items():
        yield f"# {subject} stays unknown: {_plain(why)}"
    if section.until is not None:
        yield f"# The first of these prices ends with {last_day(section.until)}: import a newer list then."
        yield "# From the moments under ends on prices are unknown."


def _body(section: "Section") -> Iterator[str]:
    from landbridge.domain.prices.price_list import EGRESS
    from landbridge.domain.prices.section import as_number

    if not section.prices and section.egress is None:
        yield "cost: {}"
        return
    yield "cost:"
    yield f"  currency: {section.currency}"
    yield f"  source: {json.dumps(_plain('; '.join(section.sources))[:_SOURCE_LENGTH], ensure_ascii=False)}"
    if section.prices:
        yield "  perHour:"
    for name, row in section.prices.items():
        prepaid = "" if row.price else "paid in advance, "
        yield f"    {name}: {as_number(row.price or 0)}  # {prepaid}line {row.line}, {_plain(row.source)}"
    if section.egress is not None:
        row = section.egress
        yield f"  egressPerGB: {as_number(row.price or 0)}  # line {row.line}, {_plain(row.source)}"
    ends = {name: row.until for name, row in section.prices.items() if row.until is not None}
    if section.egress is not None and section.egress.until is not None:
        ends[EGRESS] = section.egress.until
    if ends:
        yield "  ends:"
    for name, end in ends.items():
        yield f'    {name}: "{end.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"'


def _plain(text: str) -> str:
    """Keep what others wrote on one line: it stands in a comment."""
    return "".join(c if c.isprintable() else " " for c in text)
