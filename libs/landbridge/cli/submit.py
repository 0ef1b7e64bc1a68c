"""`submit`: send operations, with what the command line adds to them, and wait if asked to."""

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from landbridge.cli import output
from landbridge.cli.documents import FileDocument, parse_files, read_files, refuse
from landbridge.cli.exits import CliError, Exit
from landbridge.cli.files import seconds
from landbridge.cli.options import Context, Data, Files, Format, Output, Project, Queue, Timeout
from landbridge.cli.running import call

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient
    from landbridge.client.models import Submitted

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def add_to(app: typer.Typer) -> None:
    app.command()(submit)


def submit(  # noqa: PLR0917 - options of a command
    files: Files,
    project: Project = "",
    queue: Queue = "",
    preset: Annotated[
        list[str] | None,
        typer.Option("--preset", metavar="NAME", help="Apply a preset: NAME or NAME@VERSION.", show_default=False),
    ] = None,
    set_values: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Set a variable of env (a parameter, for a component's operation), or a field by its path below spec: "
            "LR=0.01, resources.requests.cpu=4.",
            show_default=False,
        ),
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option("--environment", "-e", metavar="NAME", help="Only in this environment.", show_default=False),
    ] = None,
    idempotency_key: Annotated[
        str,
        typer.Option(
            "--idempotency-key", metavar="KEY", help="Repeating it is safe. [default: a new one]", show_default=False
        ),
    ] = "",
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Return when it has ended, with its exit code.")] = False,
    timeout: Timeout = "",
    data: Data = None,
    context: Context = "",
    form: Output = Format.TABLE,
) -> None:
    """Submit operations and, with --wait, follow them.

    Several documents go together.
    With --wait: exit code 0 completed, 1 failed, 2 invalid, 3 unplaceable, 4 cancelled, 5 timed out, 6 unreachable.
    """
    changes = _Changes(project, queue, preset or [], set_values or [], environment or [])
    bodies = _bodies(files, changes)
    if idempotency_key and len(bodies) > 1:
        raise CliError(
            f"--idempotency-key: expected one operation, found {len(bodies)}; submit them one by one", Exit.INVALID
        )
    limit_s = seconds(timeout)
    codes = call(data, context, lambda client: _send(client, bodies, idempotency_key, wait, limit_s, form))
    if worst := next((code for code in codes if code is not Exit.DONE), None):
        raise typer.Exit(int(worst))


class _Changes:
    """What the command line changes in every document."""

    def __init__(
        self, project: str, queue: str, presets: Sequence[str], sets: Sequence[str], environments: Sequence[str]
    ) -> None:
        self._project, self._queue = project, queue
        self._presets, self._environments = list(presets), list(environments)
        self._sets = [_key_value(text) for text in sets]

    @property
    def any(self) -> bool:
        return bool(self._project or self._queue or self._presets or self._sets or self._environments)

    def apply(self, document: dict[str, Any]) -> None:
        metadata, spec = document.setdefault("metadata", {}), document.setdefault("spec", {})
        if self._project:
            metadata["project"] = self._project
        if self._queue:
            spec["queue"] = self._queue
        if self._presets:
            spec["presets"] = [*spec.get("presets", ()), *self._presets]
        if self._environments:
            _set(spec, ["constraints", "environments", "allow"], self._environments)
        for key, value in self._sets:
            _set(spec, _path(key, spec), value)


def _key_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise CliError(f"--set {text!r}: expected KEY=VALUE", Exit.INVALID)
    return key, value


def _path(key: str, spec: dict[str, Any]) -> list[str]:
    """Return where a key goes: a path as it is, a field of spec, else a parameter or variable."""
    from landbridge.schema.documents_v1 import OperationSpec

    parts = key.split(".")
    fields = {field.alias or name for name, field in OperationSpec.model_fields.items()}
    if len(parts) > 1 or key in fields:
        if parts[0] not in fields:
            raise CliError(
                f"--set {key}: spec has no field {parts[0]!r}; it has {', '.join(sorted(fields))}", Exit.INVALID
            )
        return parts
    if not _VARIABLE.fullmatch(key):
        raise CliError(f"--set {key}: expected a variable's name, or a path below spec with dots", Exit.INVALID)
    return ["parameters" if spec.get("component") else "env", key]


def _set(spec: dict[str, Any], path: Sequence[str], value: Any) -> None:
    place: Any = spec
    for part in path[:-1]:
        place = place.setdefault(part, {})
        if not isinstance(place, dict):
            raise CliError(f"--set {'.'.join(path)}: {part} is not a map in the document", Exit.INVALID)
    place[path[-1]] = _typed(value) if isinstance(value, str) and path[0] not in ("env", "parameters") else value


def _typed(text: str) -> Any:
    """Read a value as YAML does, so that lists and numbers can be given; quantities and names stay text."""
    import yaml

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return found if isinstance(found, bool | int | float | list | dict) else text


def _bodies(files: Sequence[str], changes: _Changes) -> list[bytes]:
    """Return what to send: the bytes as they are, or the changed documents. CliError with every problem."""
    good, problems = _changed(files, changes) if changes.any else parse_files(files)
    problems += [
        f"{item.file}: {item.document.kind.name} {item.document.name}: expected an Operation; use `landbridge apply`"
        for item in good
        if item.document.kind.name != "Operation"
    ]
    refuse(problems)
    return [item.document.body for item in good]


def _changed(files: Sequence[str], changes: _Changes) -> tuple[list[FileDocument], list[str]]:
    """Change the documents first and check them then: a missing queue may be what the command line gives."""
    import yaml

    from landbridge.domain.documents import Document, read_document

    good: list[FileDocument] = []
    problems: list[str] = []
    for name, body in read_files(files):
        try:
            values = [value for value in yaml.safe_load_all(body) if value is not None]
        except yaml.YAMLError:
            values = []
        if not values or not all(isinstance(value, dict) for value in values):
            problems += parse_files([name])[1] if name != "standard input" else [f"{name}: expected YAML documents"]
            continue
        for value in values:
            changes.apply(value)
            found = read_document(json.dumps(value, default=str).encode())
            if isinstance(found, Document):
                good.append(FileDocument(name, found))
            else:
                # Places would be those of the changed text, which nobody has seen.
                problems.append("\n".join(f"{name}: {problem.text}" for problem in found.problems))
    return good, problems


async def _send(
    client: "HttpClient", bodies: Sequence[bytes], key: str, wait: bool, limit_s: float | None, form: Format
) -> list[Exit]:
    if len(bodies) > 1:
        return await _send_many(client, bodies, wait, limit_s, form)
    submitted = await client.submit(bodies[0], idempotency_key=key)
    if form is Format.TABLE:
        _say_submitted(submitted)
    if not wait:
        output.emit(_row(submitted), form)
        return [Exit.DONE]
    row, code = await _wait_one(client, submitted, limit_s, form)
    output.emit(row, form)
    return [code]


async def _send_many(
    client: "HttpClient", bodies: Sequence[bytes], wait: bool, limit_s: float | None, form: Format
) -> list[Exit]:
    """Submit together, wait in turn: they run beside each other, and the slowest sets the time."""
    from landbridge.client.models import Refused

    rows: list[dict[str, Any]] = []
    codes: list[Exit] = []
    accepted: list[Submitted] = []
    for answer in await client.submit_many(list(bodies)):
        if isinstance(answer, Refused):
            codes.append(Exit.INVALID)
            rows.append({"refused": answer.message, "problems": [str(problem) for problem in answer.problems]})
            output.note("\n  ".join([f"refused: {answer.message}", *rows[-1]["problems"]]))
            continue
        accepted.append(answer)
        if form is Format.TABLE:
            _say_submitted(answer)
    for item in accepted:
        row, code = await _wait_one(client, item, limit_s, form, named=True) if wait else (_row(item), Exit.DONE)
        rows.append(row)
        codes.append(code)
    output.emit(rows, form)
    return codes


def _row(submitted: "Submitted") -> dict[str, Any]:
    return {
        "operation": submitted.id,
        "phase": submitted.phase,
        "existing": submitted.existing,
        "idempotencyKey": submitted.idempotency_key,
    }


def _say_submitted(submitted: "Submitted") -> None:
    if submitted.existing:
        print(f"{submitted.id}  {submitted.phase} (this key was used before for the same operation)", flush=True)
    else:
        print(f"{submitted.id}  {submitted.phase}, idempotency key {submitted.idempotency_key}", flush=True)


async def _wait_one(
    client: "HttpClient", submitted: "Submitted", limit_s: float | None, form: Format, *, named: bool = False
) -> tuple[dict[str, Any], Exit]:
    """Wait for one; what became of it, told to people at once."""
    from landbridge.cli import progress

    found = await progress.wait_told(client, submitted.id, limit_s, tell=form is Format.TABLE, named=named)
    if form is Format.TABLE:
        progress.say_outcome(found)
    return progress.summary(found), progress.outcome(found)
