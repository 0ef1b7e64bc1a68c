"""What `get` shows of each kind."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from landbridge.cli import output
from landbridge.cli.exits import CliError, Exit
from landbridge.cli.files import seconds
from landbridge.cli.options import Format
from landbridge.cli.output import Column

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient

_OTHERS = {
    **dict.fromkeys(("refusal", "refusals"), "refusal"),
    **dict.fromkeys(("alert", "alerts"), "alert"),
    **dict.fromkeys(("environment", "environments", "env", "envs"), "environment"),
    **dict.fromkeys(("op", "ops"), "operation"),
    **dict.fromkeys(("class", "classes"), "capability-class"),
    **dict.fromkeys(("contract", "contracts"), "environment-contract"),
}
_EMPTY = {
    "operation": "no operations{filtered}; submit one with `landbridge submit FILE`",
    "environment": "no environments yet; register one with `landbridge env register FILE`",
    "refusal": "no refused submissions{filtered}",
    "alert": "no alerts: nothing is known to be wrong",
}
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
_ENVIRONMENT_COLUMNS = (
    Column("NAME"),
    Column("LINK", styled=True),
    Column("CONTROL", styled=True),
    Column("CONTRACT"),
    Column("EXECUTOR", wide=100),
    Column("EVIDENCE", fold=True),
    Column("RUNNING", right=True),
)


def slug_of(text: str) -> str:
    """Return the slug of a kind in any usual spelling. CliError lists the kinds."""
    if text.lower() in _OTHERS:
        return _OTHERS[text.lower()]
    from landbridge.domain.documents.kinds import KINDS, find_kind

    found = find_kind(text)
    if found is None:
        known = sorted({*(kind.slug for kind in KINDS.values()), *_OTHERS.values()})
        raise CliError(f"kind {text!r}: not known; the kinds are {', '.join(known)}", Exit.INVALID)
    return found.slug


def since(text: str) -> str:
    """Return an RFC 3339 time for `30m`, `2d` or a date."""
    if not text:
        return ""
    at = output.moment(text)
    if at is None:
        at = datetime.now(UTC) - timedelta(seconds=seconds(text, "--since", ", or a date") or 0)
    return at.isoformat()


async def show(
    client: "HttpClient", slug: str, name: str, filters: Mapping[str, str], limit: int, form: Format
) -> None:
    """Print the list of a kind, or one of it."""
    if slug == "operation":
        await (_one_operation(client, name, form) if name else _operations(client, filters, limit, form))
    elif slug == "environment":
        await (_one_environment(client, name, form) if name else _environments(client, form))
    elif slug == "refusal":
        await _refusals(client, filters, limit, form)
    elif slug == "alert":
        await _alerts(client, form)
    elif slug == "environment-contract":
        await (_contract(client, name, form) if name else _environments(client, form))
    elif slug == "queue" and not name:
        await _queues(client, form)
    else:
        await (_one_document(client, slug, name, form) if name else _documents(client, slug, form))


def empty(kind: str, filtered: bool = False) -> str:
    text = _EMPTY.get(kind, f"no {kind} documents yet; make one with `landbridge apply FILE`")
    return text.replace("{filtered}", " that fit" if filtered else " yet" if kind == "operation" else "")


# -- operations -------------------------------------------------------------------------------------------------------


async def _operations(client: "HttpClient", filters: Mapping[str, str], limit: int, form: Format) -> None:
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


async def _one_operation(client: "HttpClient", name: str, form: Format) -> None:
    found = (await client.get(name)).raw
    uncertain = {"control-lost", "possible-overlap"} & {str(item["type"]) for item in found.get("conditions") or ()}
    told = await _asked(client, f"/v1/operations/{found.get('operation')}/ownership") if uncertain else {}
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


# -- environments -----------------------------------------------------------------------------------------------------


async def _environments(client: "HttpClient", form: Format) -> None:
    found = await client.environments()
    if not output.emit(found, form):
        output.table(_ENVIRONMENT_COLUMNS, map(_environment_row, found), empty=empty("environment"))


def _environment_row(item: Mapping[str, Any]) -> list[Any]:
    link, control = item.get("link") or {}, item.get("control") or {}
    word = "paused" if control.get("paused") else "draining" if control.get("draining") else ""
    return [
        item.get("environment") or item.get("name"),
        link.get("state") or "never",
        word,
        _versions(item),
        item.get("executor"),
        _evidence(item.get("evidence") or {}),
        (item.get("phases") or {}).get("running", 0),
    ]


def _versions(item: Mapping[str, Any]) -> str:
    return ", ".join(f"{each.get('version')} {each.get('phase', '')}".strip() for each in item.get("versions") or ())


def _evidence(evidence: Mapping[str, Any]) -> str:
    return ", ".join(f"{count} {name}" for name, count in evidence.items() if count) or "none yet"


async def _asked(client: "HttpClient", path: str) -> dict[str, Any]:
    """Return what the coordinator knows; nothing where it does not answer or has not heard of it."""
    from landbridge.client.errors import LandbridgeError

    try:
        return dict(await client.read(path))
    except LandbridgeError:
        return {}


async def _one_environment(client: "HttpClient", name: str, form: Format) -> None:
    found = await client.environment(name)
    lost = (found.get("link") or {}).get("state") == "lost"
    told = await _asked(client, f"/v1/environments/{name}/disconnection") if lost else {}
    if output.emit({**found, "disconnection": told} if told else found, form):
        return
    row = dict(
        zip((column.title.capitalize() for column in _ENVIRONMENT_COLUMNS), _environment_row(found), strict=True)
    )
    output.fields(row.items())
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


async def _contract(client: "HttpClient", name: str, form: Format) -> None:
    """Print the newest contract as YAML; all versions for programs."""
    versions = (await client.environment(name)).get("versions") or []
    if not output.emit(versions, form) and versions:
        import json

        output.emit(json.loads(versions[-1]["document"]), Format.YAML)


# -- the rest ---------------------------------------------------------------------------------------------------------


async def _documents(client: "HttpClient", slug: str, form: Format) -> None:
    found = await client.documents(slug)
    if not output.emit(found, form):
        columns = [
            Column("NAME"),
            Column("VERSION", right=True),
            Column("AGE", right=True),
            Column("DESCRIPTION", fold=True),
        ]
        output.table(columns, map(_document_row, found), empty=empty(slug))


def _document_row(item: Mapping[str, Any]) -> list[Any]:
    document = item.get("document") if isinstance(item.get("document"), Mapping) else item
    spec = (document or {}).get("spec") or {}
    name = item.get("name") or ((document or {}).get("metadata") or {}).get("name")
    return [name, item.get("version"), output.age(str(item.get("at") or "")), spec.get("description")]


async def _one_document(client: "HttpClient", slug: str, name: str, form: Format) -> None:
    found = await client.document(slug, name)
    # A document is read as it is written: YAML serves people, too.
    output.emit(found.get("document", found), Format.YAML if form is Format.TABLE else form)


async def _queues(client: "HttpClient", form: Format) -> None:
    found = await client.read("/v1/queues")
    if output.emit(found, form):
        return
    columns = [
        Column("QUEUE"),
        Column("PRIORITY", right=True),
        Column("CONCURRENCY", right=True),
        Column("WAITING", right=True),
        Column("ACTIVE", right=True),
        Column("OLDEST", right=True),
        Column("DESCRIPTION", fold=True, wide=100),
    ]
    output.table(columns, map(_queue_row, found["items"]), empty=empty("queue"))


def _queue_row(item: Mapping[str, Any]) -> list[Any]:
    spec = item.get("spec") or {}
    return [
        item.get("queue"),
        spec.get("priority"),
        spec.get("concurrency"),
        item.get("waiting"),
        item.get("active"),
        output.age(str(item.get("oldestWaiting") or "")),
        spec.get("description"),
    ]


async def _refusals(client: "HttpClient", filters: Mapping[str, str], limit: int, form: Format) -> None:
    params = {name: value for name, value in filters.items() if value and name in {"project", "since"}}
    found = (await client.read("/v1/refusals", {**params, "limit": str(limit)}))["items"]
    if output.emit(found, form):
        return
    columns = [Column("AGE", right=True), Column("PROJECT"), Column("SOURCE", wide=100), Column("PROBLEMS", fold=True)]
    rows = (
        [
            output.age(str(item.get("at") or "")),
            item.get("project"),
            item.get("source"),
            "\n".join(f"{each.get('path', '')}: {each.get('message', '')}" for each in item.get("problems") or ()),
        ]
        for item in found
    )
    output.table(columns, rows, empty=empty("refusal", bool(params)))


async def _alerts(client: "HttpClient", form: Format) -> None:
    found = (await client.read("/v1/alerts"))["items"]
    if output.emit(found, form):
        return
    columns = [Column("SEVERITY", styled=True), Column("RULE"), Column("AGE", right=True), Column("SUMMARY", fold=True)]
    rows = (
        [item.get("severity"), item.get("rule"), output.age(str(item.get("startsAt") or "")), item.get("summary")]
        for item in found
        if item.get("state", "firing") == "firing"
    )
    output.table(columns, rows, empty=empty("alert"))
