"""Rules that need the whole operation: judged on the rendered one where presets or a component take part."""

from collections.abc import Iterator

from landbridge.domain.documents.nearest import did_you_mean
from landbridge.domain.documents.scope import Scope
from landbridge.domain.errors import Problem

LONG_WORK_MS = 3_600_000


def something_runs(scope: Scope) -> Iterator[Problem]:
    if scope.has("image") or scope.has("command"):
        return
    if scope.has("source"):
        message = "code alone does not run: an image or a command is required"
        yield scope.problem(("command",), "nothing-to-run", message, "add command, such as [python, train.py]")
        return
    yield scope.problem((), "nothing-to-run", "an image or a command is required", "add image (with digest) or command")


def empty_command(scope: Scope) -> Iterator[Problem]:
    if scope.at("command") == []:
        yield scope.problem(("command",), "nothing-to-run", "the command is empty", "name a program, or remove command")
    elif scope.at("command", 0) == "":
        yield scope.problem(("command", 0), "nothing-to-run", "the program's name is empty", "name a program")


def image_registry(scope: Scope) -> Iterator[Problem]:
    if scope.map("image"):
        for name in ("registry", "name"):
            if not scope.text("image", name):
                message = "an image is named by its registry connection and repository"
                yield scope.problem(("image", name), "missing-field", message, f"add {name}")


def code_source(scope: Scope) -> Iterator[Problem]:
    if scope.map("source"):
        for name in ("connection", "commit"):
            if not scope.text("source", name):
                message = "code is named by its Git connection and commit"
                yield scope.problem(("source", name), "missing-field", message, f"add {name}")


def replicas(scope: Scope) -> Iterator[Problem]:
    kind, count = scope.text("type") or "job", scope.number("replicas")
    if kind == "distributed-job" and not count:
        yield scope.problem(("replicas",), "missing-field", "a distributed job has replicas", "add replicas, such as 2")
    elif kind == "job" and count is not None and count != 1:
        message = f"a job has one replica, found {count:g}"
        yield scope.problem(("replicas",), "not-used", message, "use the type distributed-job, or remove replicas")
    elif kind == "service" and count == 0:
        yield scope.problem(("replicas",), "out-of-range", "expected at least 1, found 0", "remove replicas for one")


def gang(scope: Scope) -> Iterator[Problem]:
    """Tell what does not belong together in a gang: of replicas, or of the operations that name it."""
    kind, path = scope.text("type") or "job", ("gang",)
    named = scope.text("gang", "name")
    if scope.has("gang") and (kind == "service" or (kind == "job" and not named)):
        hint = "name the gang that it is a member of, or remove it" if kind == "job" else "remove it"
        yield scope.problem(path, "not-used", f"has no effect on a {kind}", hint, at_key=True)
        return
    if named and not scope.has("gang", "members"):
        message = "a gang of operations says how many they are"
        yield scope.problem((*path, "members"), "missing-field", message, "add members, such as 2")
    if named and kind == "job" and scope.has("gang", "framework"):
        message = "has no effect on a job: a framework is told by the replicas of one operation"
        yield scope.problem((*path, "framework"), "not-used", message, "use the type distributed-job, or remove it")
    for field in ("members", "afterStart"):
        if not named and scope.has("gang", field):
            message = "belongs to a gang of several operations, which has a name"
            yield scope.problem((*path, field), "not-used", message, "add gang.name, or remove it", at_key=True)
    policy = ("lifecycle", "disconnection", "policy")
    if named and scope.text("gang", "afterStart") != "apart" and scope.text(*policy) == "must-finish":
        message = "must-finish work cannot be stopped, and members of a gang that stays together may have to be"
        yield scope.problem(policy, "gang-must-finish", message, "use another policy, or gang.afterStart: apart")


def ports(scope: Scope) -> Iterator[Problem]:
    kind = scope.text("type") or "job"
    known = scope.map("ports")
    if kind == "service":
        if not known:
            message = "a service answers on ports"
            yield scope.problem(("ports",), "missing-field", message, "add ports, such as {http: {port: 8080}}")
        for name, port in known.items():
            if isinstance(port, dict) and "port" not in port:
                yield scope.problem(
                    ("ports", name, "port"), "missing-field", "a port has a number", "add port, such as 8080"
                )
        target = scope.text("route", "port")
        if target and known and target not in known:
            message = f"no such port; ports are {', '.join(known)}"
            yield scope.problem(("route", "port"), "unknown-reference", message, did_you_mean(target, known))
        return
    for name in ("ports", "route"):
        if scope.has(name):
            message = f"has no effect on a {kind}: only a service answers callers"
            yield scope.problem((name,), "not-used", message, "use the type service, or remove it", at_key=True)


def long_work(scope: Scope) -> Iterator[Problem]:
    """P4: hours of work are not lost by surprise."""
    expected = scope.duration_ms("lifecycle", "expectedDuration") or 0
    if expected <= LONG_WORK_MS or scope.text("type") == "service" or scope.map("checkpoints"):
        return
    if scope.text("lifecycle", "recovery", "mode") != "never":
        message = "work of more than 1h needs checkpoints, or says that it cannot be recovered"
        suggestion = "add spec.checkpoints, or spec.lifecycle.recovery: {mode: never}"
        yield scope.problem(("lifecycle", "expectedDuration"), "long-without-checkpoints", message, suggestion)


def checkpoints_needed(scope: Scope) -> Iterator[Problem]:
    if scope.map("checkpoints"):
        return
    wants = (
        (("lifecycle", "disconnection", "policy"), "checkpoint-then-stop", "the policy"),
        (("lifecycle", "recovery", "mode"), "resume", "the recovery mode"),
    )
    for path, value, what in wants:
        if scope.text(*path) == value:
            message = f"{what} {value} needs checkpoints"
            yield scope.problem(path, "checkpoints-missing", message, "add spec.checkpoints with a connection")


def accepted_outputs(scope: Scope) -> Iterator[Problem]:
    known = scope.map("outputs")
    for index, criterion in enumerate(scope.list("acceptance")):
        name = criterion.get("output") if isinstance(criterion, dict) else None
        if isinstance(name, str) and name and name not in known:
            message = f"no such output; outputs are {', '.join(known)}" if known else "no such output: there are none"
            yield scope.problem(
                ("acceptance", index, "output"), "unknown-reference", message, did_you_mean(name, known)
            )


COMPLETE_RULES = (
    something_runs, empty_command, image_registry, code_source, replicas, gang, ports, long_work, checkpoints_needed,
    accepted_outputs,
)  # fmt: skip


def complete_problems(scope: Scope) -> Iterator[Problem]:
    """Judge an operation that nothing will be added to."""
    for rule in COMPLETE_RULES:
        yield from rule(scope)
