"""`env diff`, `env compare`: contracts beside each other, and environments with what is proven in them."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from landbridge.cli import output
from landbridge.cli.documents import parse_files, refuse
from landbridge.cli.exits import CliError, Exit
from landbridge.cli.options import Context, Data, EnvironmentName, Format, Output
from landbridge.cli.output import Column
from landbridge.cli.running import call

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient
    from landbridge.domain.candidate import Candidate
    from landbridge.domain.environment_compare import Row, Side

_SECTIONS = {"control": "Controls", "fact": "What it is", "class": "Classes", "connection": "Connections"}


def add_to(env: typer.Typer) -> None:
    """Add the commands below `env`."""
    env.command()(diff)
    env.command()(compare)


# -- versions ---------------------------------------------------------------------------------------------------------


def diff(
    name: EnvironmentName,
    first: Annotated[int, typer.Argument(metavar="[V1]", help="A version. [default: the one before]")] = 0,
    second: Annotated[int, typer.Argument(metavar="[V2]", help="A version. [default: the newest]")] = 0,
    file: Annotated[
        str,
        typer.Option("--file", "-f", metavar="FILE", help="A contract that is not registered yet.", show_default=False),
    ] = "",
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Show what differs between two versions of a contract.

    And which claims have to be proven again: evidence carries over only for what is equal. With --file the newest
    version, or V1, is compared with a contract before it is registered.
    """
    detail = call(data, context, lambda client: client.environment(name))
    known = {int(each["version"]): _spec(each) for each in detail.get("versions") or ()}
    old, new = _chosen(name, sorted(known), first, second, with_file=bool(file))
    becomes, told = (_file_spec(file, name), file) if file else (known[new], f"version {new}")
    from landbridge.domain.contract_diff import differences, to_prove

    found = differences(known[old], becomes)
    proof = to_prove(found)
    rows = [each._asdict() for each in found]
    answer = {"environment": name, "was": f"version {old}", "becomes": told, "differences": rows, "toProve": proof}
    if output.emit(answer, form):
        return
    columns = [
        Column("FIELD"),
        Column(f"VERSION {old}", fold=True),
        Column("FILE" if file else told.upper(), fold=True),
    ]
    output.table(columns, ([d.path, d.was or "-", d.becomes or "-"] for d in found), empty=f"{told} says the same")
    if found:
        print(f"\nTo be proven again: {', '.join(proof) or 'nothing, all evidence carries over'}")


def _chosen(name: str, known: Sequence[int], first: int, second: int, *, with_file: bool) -> tuple[int, int]:
    """Return the two versions. CliError names those that there are."""
    told = f"environment {name} has the versions {', '.join(map(str, known)) or 'none'}"
    missing = [version for version in (first, second) if version and version not in known]
    if missing or not known:
        raise CliError(f"{told}; expected one of them, found {missing[0] if missing else 'none'}", Exit.INVALID)
    if with_file:
        return first or known[-1], 0
    new = second or known[-1]
    before = [version for version in known if version < new]
    if not first and not before:
        raise CliError(f"{told}: nothing to compare {new} with; try --file with a new one", Exit.INVALID)
    return first or before[-1], new


def _spec(version: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(version["document"]).get("spec") or {}
    return found


def _file_spec(file: str, name: str) -> Mapping[str, Any]:
    good, problems = parse_files([file])
    refuse(problems)
    for item in good:
        if item.document.kind.name == "EnvironmentContract" and item.document.name == name:
            spec: Mapping[str, Any] = item.document.value["spec"]
            return spec
    raise CliError(f"{file}: expected the EnvironmentContract of {name}", Exit.INVALID)


# -- environments -----------------------------------------------------------------------------------------------------


def compare(
    left: Annotated[str, typer.Argument(metavar="A", help="An environment.")],
    right: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    everything: Annotated[bool, typer.Option("--all", help="Also what is the same on both sides.")] = False,
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Compare two environments control by control: what is in force, and what of it is proven.

    Then what they are and offer. By the newest active version of each contract; same means equally proven, too.
    """

    async def ask(client: "HttpClient") -> tuple[dict[str, Any], dict[str, Any]]:
        return await client.environment(left), await client.environment(right)

    a, b = (_candidate(detail) for detail in call(data, context, ask))
    from landbridge.domain.environment_compare import compare as compared
    from landbridge.domain.environment_compare import warnings

    rows, doubts = compared(a, b, datetime.now(UTC)), warnings(a, b)
    if output.emit(_answer(a, b, rows, doubts), form):
        return
    _print_compared(rows, a, b, everything=everything)
    for line in doubts:
        print(f"Warning: {line}")


def _candidate(detail: Mapping[str, Any]) -> "Candidate":
    """Make of an environment's page what deciding sees of it."""
    import msgspec

    from landbridge.domain.candidate import ACTIVE, EvidenceSet, build_candidates
    from landbridge.domain.contract_document import parse_contract
    from landbridge.domain.evidence import Evidence, claim_states
    from landbridge.schema.wire import report_v1

    items = msgspec.convert(detail.get("claims") or [], list[report_v1.Evidence])
    states = claim_states(
        Evidence(e.claim, e.result, e.at, e.expires, e.probe, e.subject, e.proven, e.claimed, e.detail) for e in items
    )
    versions = [(parse_contract(each["document"].encode()), str(each["phase"])) for each in detail["versions"]]
    found = build_candidates(versions, evidence=EvidenceSet(int(detail.get("evidenceContractVersion") or 0), states))
    active = [candidate for candidate in found if candidate.phase == ACTIVE]
    return (active or list(found))[0]


def _answer(a: "Candidate", b: "Candidate", rows: "Sequence[Row]", doubts: Sequence[str]) -> dict[str, Any]:
    def side(each: "Side") -> dict[str, str]:
        return each._asdict()

    return {
        "environments": [
            {"environment": each.environment, "contractVersion": each.contract_version, "phase": each.phase}
            for each in (a, b)
        ],
        "rows": [
            {"section": r.section, "name": r.name, "sides": [side(r.left), side(r.right)], "same": r.same} for r in rows
        ],
        "same": all(row.same for row in rows),
        "warnings": list(doubts),
    }


def _print_compared(rows: "Sequence[Row]", a: "Candidate", b: "Candidate", *, everything: bool) -> None:
    for section, title in _SECTIONS.items():
        of_section = [row for row in rows if row.section == section]
        shown = [row for row in of_section if everything or section == "control" or not row.same]
        if not shown:
            continue
        columns = [Column(title.upper()), *(Column(_title(each), fold=True) for each in (a, b)), Column("")]
        output.table(columns, ([row.name, row.left, row.right, "" if row.same else "differs"] for row in shown))
        print()
    hidden = sum(row.same and row.section != "control" for row in rows)
    if hidden and not everything:
        print(f"{hidden} more are the same; --all shows them")


def _title(candidate: "Candidate") -> str:
    return f"{candidate.environment} (contract {candidate.contract_version})"
