"""Rules between the fields of an operation that hold for every part of one: operations, components and presets."""

from collections.abc import Callable, Iterator
from typing import Final
from unicodedata import normalize

from landbridge.domain.documents import names
from landbridge.domain.documents.places import Path
from landbridge.domain.documents.scope import Scope
from landbridge.domain.errors import Problem
from landbridge.domain.units import format_duration

_DAY_MS = 86_400_000
# What each policy reads; a parameter that has no effect is refused, because its author expects one.
_POLICY_PARAMETERS = {
    "continue": (),
    "must-finish": (),
    "checkpoint-then-stop": ("checkpointWithin", "grace"),
    "stop-after-grace": ("grace",),
}
_STOP_PARAMETERS = ("checkpointWithin", "grace")


def image(scope: Scope) -> Iterator[Problem]:
    if not scope.map("image"):
        return
    variants = scope.map("image", "variants")
    if not scope.text("image", "digest") and not variants:
        yield scope.problem(
            ("image",), "image-without-digest", "an image is pinned by digest", 'add digest: "sha256:..." (64 digits)'
        )
    for path in [("image", "name"), *(("image", "variants", name, "name") for name in variants)]:
        text = scope.text(*path)
        code, message, suggestion = names.repository_refusal(text) if text else ("", "", "")
        if code:
            yield scope.problem(path, code, message, suggestion)


# What tells which accelerators will do: a class, one product, or attributes of any.
_TELLS_WHICH: Final = ("class", "exception", "memory", "precision", "interconnect", "partition")


def accelerator(scope: Scope) -> Iterator[Problem]:
    if not scope.has("resources", "accelerator"):
        return
    path: Path = ("resources", "accelerator")
    if scope.number(*path, "count") == 0:
        yield scope.problem(
            (*path, "count"), "zero-accelerators", "expected at least 1", "remove accelerator if none is wanted"
        )
    if scope.map(*path) and not any(scope.has(*path, name) for name in _TELLS_WHICH):
        yield scope.problem(
            path,
            "missing-field",
            "an accelerator names its capability class, or attributes that any class may have",
            "add class, such as gpu-80gb, or memory, such as 40Gi",
        )


def resources(scope: Scope) -> Iterator[Problem]:
    for name in ("cpu", "memory"):
        path = ("resources", "requests", name)
        found = scope.at(*path)
        if found in (0, "0", "0m", "0Gi", "0Mi", "0.0"):
            yield scope.problem(path, "zero-resource", "expected more than none", f"remove {name} to get the default")


def lifecycle_times(scope: Scope) -> Iterator[Problem]:
    for name in ("expectedDuration", "timeout", "queueTimeout", "stopGrace"):
        if scope.duration_ms("lifecycle", name) == 0 and name != "stopGrace":
            yield scope.problem(
                ("lifecycle", name), "zero-duration", "expected more than 0", f"remove {name} for the default"
            )
    expected, timeout = scope.duration_ms("lifecycle", "expectedDuration"), scope.duration_ms("lifecycle", "timeout")
    if expected and timeout and timeout < expected:
        message = f"expected at least expectedDuration ({scope.text('lifecycle', 'expectedDuration')})"
        suggestion = f'write "{format_duration(expected * 3 // 2)}" or less work'
        yield scope.problem(("lifecycle", "timeout"), "timeout-too-short", message, suggestion)


def retries(scope: Scope) -> Iterator[Problem]:
    path: Path = ("lifecycle", "retries")
    backoff, longest = scope.duration_ms(*path, "backoff"), scope.duration_ms(*path, "maxBackoff")
    for name, value in (("backoff", backoff), ("maxBackoff", longest)):
        if value is not None and value > _DAY_MS:
            yield scope.problem((*path, name), "out-of-range", "expected at most 1d between two attempts")
    if backoff is not None and longest is not None and longest < backoff:
        yield scope.problem(
            (*path, "maxBackoff"), "out-of-range", f"expected at least backoff ({format_duration(backoff)})"
        )
    for index, code in enumerate(scope.list(*path, "exceptExitCodes")):
        if code == 0 and code is not False:
            yield scope.problem(
                (*path, "exceptExitCodes", index), "not-used", "exit code 0 is success and never retried"
            )


def disconnection(scope: Scope) -> Iterator[Problem]:
    path: Path = ("lifecycle", "disconnection")
    policy = scope.text(*path, "policy")
    if not scope.map(*path) or (policy and policy not in _POLICY_PARAMETERS):
        return
    wanted = _POLICY_PARAMETERS.get(policy or "continue", ())
    for name in _STOP_PARAMETERS:
        if scope.has(*path, name) and name not in wanted:
            others = [other for other, takes in _POLICY_PARAMETERS.items() if name in takes]
            message = f"has no effect with the policy {policy or 'continue'}"
            yield scope.problem(
                (*path, name), "not-used", message, f"remove it, or use {' or '.join(others)}", at_key=True
            )
        elif scope.duration_ms(*path, name) == 0:
            message = "a limit of 0 would stop the work at once, whenever a link blinks"
            yield scope.problem((*path, name), "zero-duration", message, "give the time that it may take, such as 30s")
        elif (scope.duration_ms(*path, name) or 0) > 7 * _DAY_MS:
            yield scope.problem(
                (*path, name), "out-of-range", "expected at most 7d", "use the policy continue for longer"
            )
    needed = {"checkpoint-then-stop": "checkpointWithin", "stop-after-grace": "grace"}.get(policy, "")
    if needed and not scope.has(*path, needed):
        message = f"the policy {policy} needs {needed}"
        yield scope.problem((*path, needed), "missing-field", message, f"add {needed}, such as 30s")


def recovery(scope: Scope) -> Iterator[Problem]:
    path: Path = ("lifecycle", "recovery")
    if scope.text(*path, "mode") == "never" and scope.list(*path, "environments"):
        yield scope.problem(
            (*path, "environments"), "not-used", "has no effect with the mode never", "remove it", at_key=True
        )
    forbidden = scope.names("constraints", "environments", "forbid")
    allowed = scope.names("constraints", "environments", "allow")
    for index, name in enumerate(scope.list("constraints", "environments", "allow")):
        if name in forbidden:
            where: Path = ("constraints", "environments", "allow", index)
            yield scope.problem(
                where, "contradiction", "this environment is also forbidden", "keep it in one of the lists"
            )
    for index, name in enumerate(scope.list(*path, "environments")):
        if isinstance(name, str) and (name in forbidden or (allowed and name not in allowed)):
            message = "this environment is ruled out by constraints.environments"
            yield scope.problem((*path, "environments", index), "contradiction", message, "make the two agree")


def connections(scope: Scope) -> Iterator[Problem]:
    for group in ("inputs", "outputs"):
        for name, entry in scope.map(group).items():
            if isinstance(entry, dict) and not entry.get("connection"):
                message = "data is named by its connection"
                yield scope.problem((group, name, "connection"), "missing-field", message, "add connection")
    if scope.map("checkpoints") and not scope.text("checkpoints", "connection"):
        message = "checkpoints are kept in a connection"
        yield scope.problem(("checkpoints", "connection"), "missing-field", message, "add connection")


def paths(scope: Scope) -> Iterator[Problem]:
    for group in ("inputs", "outputs"):
        for name in scope.map(group):
            yield from _path(scope, (group, name, "path"), names.connection_path_refusal)
            yield from _path(scope, (group, name, "mountPath"), names.mount_path_refusal)
    yield from _path(scope, ("checkpoints", "path"), names.connection_path_refusal)
    for part in ("path", "repository"):
        yield from _path(scope, ("source", part), names.connection_path_refusal)


def _path(scope: Scope, path: Path, judge: Callable[[str], tuple[str, str]]) -> Iterator[Problem]:
    text = scope.text(*path)
    message, suggestion = judge(text) if text else ("", "")
    if message:
        yield scope.problem(path, "unsafe-path", message, suggestion)


def twins(scope: Scope) -> Iterator[Problem]:
    """Refuse two places that are one: outputs of one path, and mounts inside each other."""
    written: dict[tuple[str, str], str] = {}
    for name in scope.map("outputs"):
        text = scope.text("outputs", name, "path")
        if text:
            key = (scope.text("outputs", name, "connection"), normalize("NFKC", text).casefold().rstrip("/"))
            other = written.setdefault(key, name)
            if other != name:
                message = f"the output {other} is written to the same path"
                yield scope.problem(
                    ("outputs", name, "path"), "same-path", message, "give each output a path of its own"
                )
    mounts: dict[str, str] = {}
    for group in ("inputs", "outputs"):
        for name in scope.map(group):
            text = scope.text(group, name, "mountPath").rstrip("/")
            clash = next(
                (m for m in mounts if text and (f"{m}/".startswith(f"{text}/") or f"{text}/".startswith(f"{m}/"))), ""
            )
            if clash:
                message = f"{mounts[clash]} is mounted there, or above or below it"
                yield scope.problem((group, name, "mountPath"), "same-path", message, "mount them beside each other")
            elif text:
                mounts[text] = f"{group}.{name}"


def variables(scope: Scope) -> Iterator[Problem]:
    for name in scope.map("env"):
        refusal = names.variable_refusal(name)
        if refusal:
            yield scope.problem(("env", name), "reserved-variable", refusal, "choose another name", at_key=True)


def acceptance(scope: Scope) -> Iterator[Problem]:
    for index, criterion in enumerate(scope.list("acceptance")):
        if not isinstance(criterion, dict):
            continue
        path: Path = ("acceptance", index)
        subjects = [name for name in ("metric", "output", "exitCodes") if criterion.get(name)]
        if len(subjects) != 1:
            message = "expected exactly one of metric, output and exitCodes"
            yield scope.problem(path, "bad-criterion", message, "write one criterion for each")
            continue
        yield from _criterion(scope, path, subjects[0], criterion)


def _criterion(scope: Scope, path: Path, subject: str, criterion: dict[str, object]) -> Iterator[Problem]:
    reads = {"metric": ("atLeast", "atMost"), "output": ("exists", "minSize", "sha256"), "exitCodes": ()}[subject]
    for name in criterion:
        if name in ("atLeast", "atMost", "exists", "minSize", "sha256") and name not in reads:
            yield scope.problem(
                (*path, name), "not-used", f"has no effect on a criterion of {subject}", "remove it", at_key=True
            )
    low, high = scope.number(*path, "atLeast"), scope.number(*path, "atMost")
    if subject == "metric" and low is None and high is None and not {"atLeast", "atMost"} & set(criterion):
        yield scope.problem(path, "bad-criterion", "a metric needs a bound", "add atLeast or atMost")
    if low is not None and high is not None and low > high:
        yield scope.problem(path, "contradiction", "atLeast is above atMost", "exchange them")


LOCAL_RULES = (
    image, accelerator, resources, lifecycle_times, retries, disconnection, recovery, connections, paths, twins,
    variables, acceptance,
)  # fmt: skip


def local_problems(scope: Scope) -> Iterator[Problem]:
    """Judge what the document says, whatever a preset or component may add."""
    for rule in LOCAL_RULES:
        yield from rule(scope)
