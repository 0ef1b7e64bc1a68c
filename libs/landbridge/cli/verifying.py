"""`env verify`: all probes of an environment are run now; what they found, as a table and as an exit code."""

import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from landbridge.cli import output
from landbridge.cli.exits import CliError, Exit
from landbridge.cli.options import Context, Data, EnvironmentName, Format, Output, Reason
from landbridge.cli.output import Column
from landbridge.cli.running import call

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient

POLL_S = 1.0
# Of the last probe that may begin, since an environment runs a few at a time.
_SLACK_S = 60
_COLUMNS = (
    Column("PROBE"),
    Column("RESULT", styled=True),
    Column("FOUND", fold=True),
    Column("HOLDS FOR", right=True),
    Column("COST", fold=True),
)


class Suite(StrEnum):
    """Which probes count."""

    CLAIMS = "claims"
    FULL = "full"


def verify(
    name: EnvironmentName,
    *,
    suite: Annotated[
        Suite, typer.Option("--suite", help="What has to be proven: claims that work relies on, or measurements, too.")
    ] = Suite.CLAIMS,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for what they find, and exit 0 if all is proven.")] = False,
    draft: Annotated[
        bool, typer.Option("--draft", help="Look at what the draft of its contract claims, not at what is in force.")
    ] = False,
    timeout: Annotated[
        str,
        typer.Option("--timeout", metavar="T", help="How long to wait; as long as they may take.", show_default=False),
    ] = "",
    reason: Reason = "",
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Run all probes of an environment now.

    With --wait the table of what each found follows. The exit code is 0 if all is proven, 1 if something is not, 5 if
    some had not answered in time. With --draft that is told of the draft of its contract, which `env register --draft`
    has put beside what is in force.
    """
    limit_s = _seconds(timeout)

    async def work(client: "HttpClient") -> dict[str, Any]:
        before = await _probes(client, name, draft=draft) if wait or draft else {}
        await client.control(name, "verify", reason)
        if not wait:
            return {}
        return await _answered(client, name, before, suite, limit_s, draft=draft, tell=form is Format.TABLE)

    found = call(data, context, work)
    if not wait:
        print(f"environment {name}: asked to run its probes; see them with `landbridge get environment {name}`")
        return
    _show(name, found, form)


def _seconds(text: str) -> float | None:
    from landbridge.domain import units

    if not text:
        return None
    try:
        return units.parse_duration(text) / 1000
    except units.UnitError as error:
        raise CliError(f"--timeout: {error}", Exit.INVALID) from error


async def _probes(client: "HttpClient", name: str, *, draft: bool) -> dict[str, Any]:
    """Return the probes of what is in force, or of the draft: what is only planned for the other does not count."""
    found = dict(await client.read(f"/v1/environments/{quote(name, safe='')}/probes"))
    version = int(found.get("draftVersion") or 0)
    if draft and not version:
        hint = "landbridge env register FILE --draft"
        raise CliError(f"environment {name}: expected a draft of its contract, found none; {hint}", Exit.INVALID)
    if version and not (draft or found.get("contractVersion")):
        raise CliError(f"environment {name}: its contract is only a draft; look at that with --draft", Exit.INVALID)
    if version:
        kept = [
            each
            for each in found["probes"]
            if (version in each["versions"] if draft else each["versions"] != [version])
        ]
        found["probes"] = kept
    return found


async def _answered(
    client: "HttpClient",
    name: str,
    before: Mapping[str, Any],
    suite: Suite,
    limit_s: float | None,
    *,
    draft: bool,
    tell: bool,
) -> dict[str, Any]:
    """Follow the probes until each has a newer result than before, or the time is over."""
    import asyncio

    known = {item["name"]: item.get("at") for item in before["probes"]}
    counted = [item for item in before["probes"] if suite is Suite.FULL or item["required"]]
    longest_s = max((item["timeoutSeconds"] for item in counted), default=0)
    deadline = time.monotonic() + (limit_s if limit_s is not None else 2 * longest_s + _SLACK_S)
    told: set[str] = set()
    while True:
        now = await _probes(client, name, draft=draft)
        items = [item for item in now["probes"] if suite is Suite.FULL or item["required"]]
        for item in items:
            item["answered"] = bool(item.get("at")) and item["at"] != known.get(item["name"])
        fresh = [item for item in items if item["answered"] and item["name"] not in told]
        told |= {item["name"] for item in fresh}
        if tell:
            for number, item in enumerate(fresh, start=len(told) - len(fresh) + 1):
                output.note(f"[{number}/{len(items)}] {item['name']}: {item['result']}")
        if all(item["answered"] for item in items) or time.monotonic() >= deadline:
            return {**now, "probes": items}
        await asyncio.sleep(POLL_S)


def _show(name: str, found: Mapping[str, Any], form: Format) -> None:
    """Print what was found; raises SystemExit with what it means, unless all is proven."""
    items: Sequence[Mapping[str, Any]] = found["probes"]
    late = [item["name"] for item in items if not item["answered"]]
    bad = [item["name"] for item in items if item["answered"] and item["result"] != "proven"]
    if not output.emit({"environment": name, "probes": list(items), "proven": not late and not bad}, form):
        output.table(_COLUMNS, [_row(item) for item in items], empty=f"environment {name} has no probes")
        print(_sum(name, len(items), bad, late))
    if bad or late:
        raise SystemExit(Exit.FAILED if bad else Exit.TIMED_OUT)


def _row(item: Mapping[str, Any]) -> tuple[str, ...]:
    result = str(item["result"]) if item["answered"] else "no answer"
    return (item["name"], result, _found(item), _left(item) if item["answered"] else "", item.get("cost", ""))


def _found(item: Mapping[str, Any]) -> str:
    """Return what a probe saw, with the amounts that it counted."""
    amount = ""
    if item.get("proven") is not None:
        amount = _amount(item["kind"], item["proven"])
        if item.get("claimed") is not None:
            amount += f" of {_amount(item['kind'], item['claimed'])}"
    return "; ".join(filter(None, (amount, item.get("detail") or item.get("subject", ""))))


def _amount(kind: str, value: float) -> str:
    from landbridge.domain import probe_kinds, units

    if kind in (probe_kinds.BANDWIDTH, probe_kinds.LINK):
        return units.format_bandwidth(round(value))
    unit = {probe_kinds.CLOCK: " s", probe_kinds.CARBON: " g/kWh"}.get(kind, "")
    return f"{value:g}{unit}"


def _left(item: Mapping[str, Any]) -> str:
    seconds = item["secondsLeft"]
    return output.span(seconds) if seconds > 0 else "expired"


def _sum(name: str, count: int, bad: Sequence[str], late: Sequence[str]) -> str:
    if not bad and not late:
        return f"\nenvironment {name}: all {count} probes proven"
    parts = [f"not proven: {', '.join(bad)}"] if bad else []
    parts += [f"no answer in time: {', '.join(late)} (is its dispatcher connected?)"] if late else []
    return f"\nenvironment {name}: {count - len(bad) - len(late)} of {count} probes proven; {'; '.join(parts)}"
