"""`env register`: a contract version, or the draft of one, is sent; what became of it is told."""

import time
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from landbridge.cli.documents import FileDocument, parse_files, refuse
from landbridge.cli.exits import CliError, Exit
from landbridge.cli.options import Context, Data
from landbridge.cli.running import call

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient

POLL_S: Final = 0.2
PATIENCE_S: Final = 10.0
_TOLD: Final = {
    "draft": "is kept as a draft. It is probed, and takes no work until it is registered without --draft",
    "canary": "is a canary. It takes work once its changed claims are proven; what is active goes on until then",
    "active": "is active",
}


def register(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Its contract; - is standard input.")],
    draft: Annotated[
        bool, typer.Option("--draft", help="Keep it as a draft: it can be looked at and verified, and takes no work.")
    ] = False,
    data: Data = None,
    context: Context = "",
) -> None:
    """Register an environment, or a new version of its contract.

    A first version is active at once, a later one a canary until its claims are proven. With --draft the version is
    only kept, shown (env diff) and probed (env verify --draft) beside what is in force; register the same file
    without it, and it becomes a canary. A newer version, or a newer draft, ends a draft.
    """
    good, problems = parse_files([file])
    problems += [
        f"{item.file}: expected an EnvironmentContract, found {item.document.kind.name}"
        for item in good
        if item.document.kind.name != "EnvironmentContract"
    ]
    refuse(problems)

    async def send(client: "HttpClient") -> None:
        for item in good:
            answer = await client.apply(item.document.body, draft=draft)
            print(await _outcome(client, item, answer, draft=draft), flush=True)
            print(_next_step(item, draft=draft))

    call(data, context, send)


def _next_step(item: FileDocument, *, draft: bool) -> str:
    name = item.document.name
    if draft:
        return (
            f"What it changes: landbridge env diff {name}\nWhat is proven: landbridge env verify {name} --draft --wait"
        )
    return f"To let its dispatcher join: landbridge env join {name} --bindings FILE"


async def _outcome(client: "HttpClient", item: FileDocument, answer: Mapping[str, Any], *, draft: bool) -> str:
    """Wait until the version is told of, and return its phase in words. CliError if it is refused."""
    import asyncio

    name, version = item.document.name, int(item.document.value["metadata"].get("version", 1))
    told = f"environment {name}: contract version {version}"
    deadline = time.monotonic() + PATIENCE_S
    while True:
        phase = await _phase(client, name, version, sha256(item.document.canonical).hexdigest())
        if phase in _TOLD and (phase == "draft") is draft:
            return f"{told} {_TOLD[phase]}"
        problems = await _refused(client, str(answer.get("submission") or ""))
        if problems:
            raise CliError("\n".join(problems), Exit.INVALID)
        if time.monotonic() >= deadline:
            return f"{told} was sent; what becomes of it: landbridge get environment {name}, landbridge get refusals"
        await asyncio.sleep(POLL_S)


async def _phase(client: "HttpClient", name: str, version: int, digest: str) -> str:
    """Return where the version stands that has this content; empty if there is none yet."""
    from landbridge.client.errors import NotFoundError

    try:
        found = await client.environment(name)
    except NotFoundError:
        return ""
    versions = (
        each for each in found.get("versions") or () if (each["version"], each.get("sha256")) == (version, digest)
    )
    return next((str(each.get("phase")) for each in versions), "")


async def _refused(client: "HttpClient", submission: str) -> list[str]:
    """Return what was wrong with a submission, as far as it has been told."""
    if not submission:
        return []
    found = (await client.read("/v1/refusals", {"limit": "50"}))["items"]
    problems = (each for item in found if item.get("submission") == submission for each in item.get("problems") or ())
    return [_problem(each) for each in problems]


def _problem(each: Mapping[str, Any]) -> str:
    hint = f"; {each['suggestion']}" if each.get("suggestion") else ""
    return f"{each.get('path', '')}: {each.get('message', '')}{hint}"
