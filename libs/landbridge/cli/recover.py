"""`recover`: what is wrong after a loss in the centre, what would be done about it, and doing it, step by step."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from landbridge.cli import output
from landbridge.cli.decisions import show
from landbridge.cli.exits import CliError, Exit
from landbridge.cli.options import Context, Data, DryRun, Format, Output, Why, Yes
from landbridge.cli.running import call

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient

# In the order in which an operation passes them.
_WRITERS = ("intake", "eligibility", "ranking", "coordinator", "contract-verifier")
_BEHIND_S = 3.0
STEPS = ("generation", "republish", "lineage")
_STEP = Annotated[
    list[str] | None,
    typer.Option(
        "--step", metavar="STEP", help=f"Do this, whatever was found: {', '.join(STEPS)}.", show_default=False
    ),
]


def add_to(app: typer.Typer) -> None:
    app.command()(recover)


def recover(
    step: _STEP = None,
    generation: Annotated[
        int, typer.Option("--generation", min=0, help="Begin this one. [default: above all seen]", show_default=False)
    ] = 0,
    hours: Annotated[int, typer.Option("--hours", min=1, help="How far back to publish again.")] = 168,
    reason: Why = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Find what the centre has lost and put it right.

    After a restore of its database, a lost stream or a lost projection: says what is wrong and what it will do, then
    does it.
    """
    unknown = [name for name in step or () if name not in STEPS]
    if unknown:
        raise CliError(f"--step {unknown[0]}: expected one of {', '.join(STEPS)}", Exit.INVALID)

    async def run(client: "HttpClient") -> None:
        found = await diagnose(client)
        steps = list(dict.fromkeys(step or [item["step"] for item in found["findings"] if item["step"] in STEPS]))
        steps.sort(key=STEPS.index)
        if output.emit({**found, "steps": steps}, form):
            return
        _print(found)
        if steps:
            await _carry_out(client, steps, generation, hours, reason, dry_run=dry_run, yes=yes)

    call(data, context, run)


async def diagnose(client: "HttpClient") -> dict[str, Any]:
    """Return what the coordinator and lineage know, with findings and the step against each."""
    found: dict[str, Any] = dict(await client.read("/v1/recovery"))
    projected = await _projected(client)
    if projected < found["operations"]:
        import asyncio

        await asyncio.sleep(_BEHIND_S)  # it may only be behind
        projected = await _projected(client)
    compared = await client.decide("/v1/recovery/lineage", {}, dry_run=True)
    findings = list(found["findings"])
    if projected < found["operations"]:
        text = (
            f"lineage shows {projected} operations, the coordinator has {found['operations']}: its projection is lost"
        )
        findings.append({"code": "projection-lost", "text": text, "step": "republish"})
    if not compared["equal"]:
        text = f"{compared['differing']} of {compared['operations']} operations differ from what their facts say"
        findings.append({"code": "projection-differs", "text": text, "step": "lineage"})
    return {**found, "projected": projected, "findings": findings}


async def _projected(client: "HttpClient") -> int:
    overview = await client.read("/v1/overview")
    return sum((overview.get("phases") or {}).values())


def _print(found: dict[str, Any]) -> None:
    stored = "not known" if found["stored"] < 0 else found["stored"]
    output.fields(
        [
            ("Generation", f"{found['generation']}{', recovering' if found['recovering'] else ''}"),
            ("Operations", f"{found['operations']} here, {found['projected']} in lineage"),
            ("Stream", f"last message {stored}, {found['logged']} logged by the coordinator"),
        ]
    )
    print()
    for item in found["findings"]:
        print(f"- {item['text']}")
    if not found["findings"]:
        print("Nothing is found wrong.")


async def _carry_out(
    client: "HttpClient", steps: list[str], generation: int, hours: int, reason: str, *, dry_run: bool, yes: bool
) -> None:
    print("\nWhat will be done:")
    for name in steps:
        print(f"\n[{name}]")
        await _do(client, name, generation, hours, reason, dry_run=True)
    if dry_run:
        return
    if not reason:
        raise CliError("--reason TEXT is needed: it is kept with what it concerns", Exit.INVALID)
    if not yes:
        if not sys.stdin.isatty():
            raise CliError("nobody to ask: look at the above and repeat it with --yes", Exit.INVALID)
        if not typer.confirm("Go on?"):
            raise CliError("nothing was changed")
    for name in steps:
        print(f"\n[{name}]")
        await _do(client, name, generation, hours, reason, dry_run=False)
    print("\ndone; run it again to see what is left")


async def _do(client: "HttpClient", step: str, generation: int, hours: int, reason: str, *, dry_run: bool) -> None:
    if step == "generation":
        body = {"reason": reason, "generation": generation}
        show(await client.decide("/v1/recovery/generation", body, dry_run=dry_run))
    elif step == "republish":
        for service in _WRITERS:
            path = f"/v1/recovery/republish/{service}?hours={hours}{'&dryRun=true' if dry_run else ''}"
            answer = await client.decide(path, {})
            counts = ", ".join(f"{count} {family}" for family, count in sorted(answer["events"].items())) or "nothing"
            print(
                f"{service}: {counts} {'to publish' if dry_run else 'published'} again; whoever knows them ignores them"
            )
    else:
        answer = await client.decide("/v1/recovery/lineage", {}, dry_run=dry_run)
        done = "to write" if dry_run else "written"
        print(f"lineage: {answer['differing' if dry_run else 'repaired']} operation(s) {done} again from their facts")
