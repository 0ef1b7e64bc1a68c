"""What `get` shows of each kind."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from landbridge.cli import output
from landbridge.cli.exits import CliError, Exit
from landbridge.cli.files import seconds
from landbridge.cli.listing_empty import empty
from landbridge.cli.listing_environments import show_contract, show_environment, show_environments
from landbridge.cli.listing_operations import show_operation, show_operations
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


def slug_of(text: str) -> str:
    """Return the slug of a kind in any usual spelling. CliError lists the kinds."""
    if text.lower() in _OTHERS:
        return _OTHERS[text.lower()]
    from landbridge.domain.kind_names import KIND_NAMES, find_kind_name

    found = find_kind_name(text)
    if found is None:
        known = sorted({*(kind.slug for kind in KIND_NAMES), *_OTHERS.values()})
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
        await (show_operation(client, name, form) if name else show_operations(client, filters, limit, form))
    elif slug == "environment":
        await (show_environment(client, name, form) if name else show_environments(client, form))
    elif slug == "refusal":
        await _refusals(client, filters, limit, form)
    elif slug == "alert":
        await _alerts(client, form)
    elif slug == "environment-contract":
        await (show_contract(client, name, form) if name else show_environments(client, form))
    elif slug == "queue" and not name:
        await _queues(client, form)
    else:
        await (_one_document(client, slug, name, form) if name else _documents(client, slug, form))


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
