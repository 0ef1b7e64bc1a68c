"""What `get environments` and `get contracts` show."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from landbridge.cli import output
from landbridge.cli.listing_empty import empty
from landbridge.cli.options import Format
from landbridge.cli.output import Column
from landbridge.cli.running import asked

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient

_ENVIRONMENT_COLUMNS = (
    Column("NAME"),
    Column("LINK", styled=True),
    Column("CONTROL", styled=True),
    Column("CONTRACT"),
    Column("EXECUTOR", wide=100),
    Column("EVIDENCE", fold=True),
    Column("RUNNING", right=True),
)


async def show_environments(client: "HttpClient", form: Format) -> None:
    found = await client.environments()
    if not output.emit(found, form):
        output.table(_ENVIRONMENT_COLUMNS, map(_environment_row, found), empty=empty("environment"))


def _environment_row(item: Mapping[str, Any]) -> list[Any]:
    link, control = item.get("link") or {}, item.get("control") or {}
    word = "draining" if control.get("draining") else "paused" if control.get("paused") else _paused_parts(control)
    return [
        item.get("environment") or item.get("name"),
        link.get("state") or "never",
        word,
        _versions(item),
        item.get("executor"),
        _evidence(item.get("evidence") or {}),
        (item.get("phases") or {}).get("running", 0),
    ]


def _paused_parts(control: Mapping[str, Any]) -> str:
    """Say of which parts nothing new comes, briefly."""
    return "paused in part" if control.get("holds") else ""


def _versions(item: Mapping[str, Any]) -> str:
    return ", ".join(f"{each.get('version')} {each.get('phase', '')}".strip() for each in item.get("versions") or ())


def _evidence(evidence: Mapping[str, Any]) -> str:
    return ", ".join(f"{count} {name}" for name, count in evidence.items() if count) or "none yet"


async def show_environment(client: "HttpClient", name: str, form: Format) -> None:
    found = await client.environment(name)
    lost = (found.get("link") or {}).get("state") == "lost"
    told = await asked(client, f"/v1/environments/{name}/disconnection") if lost else {}
    if output.emit({**found, "disconnection": told} if told else found, form):
        return
    row = dict(
        zip((column.title.capitalize() for column in _ENVIRONMENT_COLUMNS), _environment_row(found), strict=True)
    )
    output.fields(row.items())
    _print_holds(found.get("control") or {})
    print_drift(found.get("drift") or ())
    if told:
        _print_lost(told)
    items = found.get("claims")
    if items:
        print()
        columns = [
            Column("CLAIM"),
            Column("RESULT", styled=True),
            Column("PROBE", wide=100),
            Column("AGE", right=True),
            Column("DETAIL", fold=True),
        ]
        output.table(
            columns,
            (
                [
                    each.get("claim"),
                    each.get("result"),
                    each.get("probe"),
                    output.age(str(each.get("at") or "")),
                    each.get("detail"),
                ]
                for each in items
            ),
        )


def _print_holds(control: Mapping[str, Any]) -> None:
    held = control.get("holds")
    if held:
        print()
        columns = [Column("PAUSED"), Column("BY"), Column("SINCE"), Column("REASON", fold=True)]
        output.table(columns, map(_hold_row, held))


def print_drift(items: Sequence[Mapping[str, Any]]) -> None:
    """Print where what runs is not what is recorded."""
    if items:
        print()
        columns = [
            Column("DRIFT", styled=True),
            Column("OPERATION"),
            Column("EPOCH"),
            Column("SINCE"),
            Column("RECORDED", fold=True),
            Column("FOUND", fold=True),
        ]
        output.table(columns, map(_drift_row, items))


def _drift_row(item: Mapping[str, Any]) -> list[Any]:
    shown = str(item.get("operation", ""))
    since = output.clock(str(item.get("since") or ""))
    start = [item.get("kind"), shown[:8] if output.terminal() else shown, item.get("epoch"), since]
    return [*start, item.get("wanted"), item.get("found")]


def _hold_row(item: Mapping[str, Any]) -> list[Any]:
    part = f"class {item['capabilityClass']}" if item.get("capabilityClass") else f"nodes {item.get('nodeSelector')}"
    return [part, item.get("by"), output.clock(str(item.get("at") or "")), item.get("reason")]


def _print_lost(told: Mapping[str, Any]) -> None:
    print()
    for line in told.get("text") or ():
        print(line)
    if told.get("operations"):
        print()
        columns = [Column("OPERATION"), Column("NAME"), Column("NOT BEFORE"), Column("WHAT BECOMES OF IT", fold=True)]
        output.table(columns, map(_lost_row, told["operations"]))


def _lost_row(item: Mapping[str, Any]) -> list[Any]:
    shown, at = str(item.get("operation", "")), str(item.get("notBefore") or "")
    when = output.clock(at) if at and output.terminal() else at
    return [shown[:8] if output.terminal() else shown, item.get("name"), when, item.get("text")]


async def show_contract(client: "HttpClient", name: str, form: Format) -> None:
    """Print the newest contract as YAML, a draft only where there is nothing else; all versions for programs."""
    versions = (await client.environment(name)).get("versions") or []
    if not output.emit(versions, form) and versions:
        import json

        shown = next((each for each in reversed(versions) if each.get("phase") != "draft"), versions[-1])
        output.emit(json.loads(shown["document"]), Format.YAML)
        others = [f"version {each['version']} ({each['phase']})" for each in versions if each is not shown]
        if others:
            output.note(f"{name} also has {', '.join(others)}: landbridge env diff {name}, or -o json for all of them")
