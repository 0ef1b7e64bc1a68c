"""What `get operations` shows."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from landbridge.cli import output
from landbridge.cli.listing_empty import empty
from landbridge.cli.listing_environments import print_drift
from landbridge.cli.options import Format
from landbridge.cli.output import Column
from landbridge.cli.running import asked

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient

OPERATION_COLUMNS = (
    Column("ID"),
    Column("NAME"),
    Column("PROJECT", wide=90),
    Column("QUEUE", wide=110),
    Column("PHASE", styled=True),
    Column("ENVIRONMENT"),
    Column("ATTEMPT", right=True, wide=110),
    Column("AGE", right=True),
    Column("WHY", fold=True),
)
_RESOLVED = ("host", "hardware", "principal")


async def show_operations(client: "HttpClient", filters: Mapping[str, str], limit: int, form: Format) -> None:
    found = await client.operations(limit=limit, **filters)
    if output.emit([item.raw for item in found], form):
        return
    print_operations([item.raw for item in found], filtered=any(filters.values()))
    if len(found) == limit and output.terminal():
        print(f"\nthe newest {limit}; see more with --limit")


def print_operations(items: Sequence[Mapping[str, Any]], *, filtered: bool = False) -> None:
    output.table(OPERATION_COLUMNS, map(_operation_row, items), empty=empty("operation", filtered))


def _operation_row(item: Mapping[str, Any]) -> list[Any]:
    shown = str(item.get("operation", ""))
    return [
        shown[:8] if output.terminal() else shown,
        item.get("name"),
        item.get("project"),
        item.get("queue"),
        item.get("phase"),
        item.get("environment"),
        item.get("attempt") or "",
        output.age(str(item.get("acceptedAt") or "")),
        why(item),
    ]


def why(item: Mapping[str, Any]) -> str:
    """Return in a few words why an operation waits, failed or is special; empty for the usual course."""
    conditions = [str(condition["type"]) for condition in item.get("conditions") or ()]
    waiting = item.get("waiting") or {}
    reason = ""
    if item.get("phase") in ("failed", "cancelled", "retrying"):
        reason = str(item.get("reason") or item.get("message") or "")
    elif waiting:
        reason = str(waiting.get("condition") or waiting.get("reason") or "")
    words = [*conditions, *([reason] if reason and reason not in conditions else [])]
    return ", ".join(words)


async def show_operation(client: "HttpClient", name: str, form: Format) -> None:
    found = (await client.get(name)).raw
    uncertain = {"control-lost", "possible-overlap"} & {str(item["type"]) for item in found.get("conditions") or ()}
    told = await asked(client, f"/v1/operations/{found.get('operation')}/ownership") if uncertain else {}
    if output.emit({**found, "ownership": told} if told else found, form):
        return
    attempts = list(found.get("attempts") or ())
    last = attempts[-1] if attempts else {}
    resolved = last.get("resolved") or {}
    output.fields(
        [
            ("Operation", found.get("operation")),
            ("Name", found.get("name")),
            ("Project", found.get("project")),
            ("Queue", found.get("queue")),
            ("Phase", found.get("phase")),
            ("Conditions", ", ".join(str(item["type"]) for item in found.get("conditions") or ())),
            ("Uncertain", " ".join(told.get("text") or ())),
            ("Reason", found.get("reason") if found.get("reason") != found.get("phase") else ""),
            ("Message", found.get("message") or (found.get("waiting") or {}).get("message")),
            ("Environment", found.get("environment")),
            ("Attempt", found.get("attempt")),
            ("Accepted", _when(found.get("acceptedAt"))),
            ("Started", _when(found.get("startedAt"))),
            ("Ended", _when(found.get("endedAt"))),
            ("Exit code", last.get("exitCode")),
            ("Metrics", ", ".join(f"{key} {value:g}" for key, value in sorted((last.get("metrics") or {}).items()))),
            (
                "Ran on",
                " · ".join(str(resolved[key]) for key in ("host", "hardware", "principal") if resolved.get(key)),
            ),
            ("Submitted by", found.get("submittedBy")),
            ("Retry of", found.get("retryOf")),
        ]
    )
    print_drift(found.get("drift") or ())
    criteria = [
        (item.get("criterion"), "yes" if item.get("met") else "no", item.get("found"))
        for item in last.get("acceptance") or ()
    ]
    if criteria:
        print()
        output.table([Column("ACCEPTANCE", fold=True), Column("MET", styled=True), Column("FOUND")], criteria)


def _when(at: object) -> str:
    text = str(at or "")
    return f"{output.clock(text)} ({output.age(text)} ago)" if text else ""
