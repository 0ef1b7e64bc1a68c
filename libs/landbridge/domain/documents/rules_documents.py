"""Rules of the documents that are not operations, and of what every document says about itself."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from landbridge.domain.documents.kinds import Kind
from landbridge.domain.documents.names import label_refusal
from landbridge.domain.documents.nearest import did_you_mean
from landbridge.domain.documents.parameter_values import is_pattern, matches, value_refusal
from landbridge.domain.documents.rules_operation import local_problems, variables
from landbridge.domain.documents.scope import Scope
from landbridge.domain.documents.source import Source
from landbridge.domain.documents.walk import at, list_at, map_at, text_at, texts
from landbridge.domain.errors import Problem
from landbridge.domain.rules.compiled import compile_expression
from landbridge.domain.rules.words import LONGEST_EXPRESSION, ExpressionError

_SHOWN: Final = 20  # characters of an expression from the place of its problem
PARAMETER: Final = re.compile(r"\$\(parameters\.([a-z0-9-]{1,63})\)")


def metadata_problems(source: Source, kind: Kind) -> Iterator[Problem]:
    """Judge labels and version."""
    for group in ("labels", "annotations"):
        for key, value in map_at(source.value, "metadata", group).items():
            message, suggestion = label_refusal(key, value if isinstance(value, str) and group == "labels" else "")
            if message and not source.is_spoiled(("metadata", group, key)):
                yield source.problem(("metadata", group, key), "bad-label", message, suggestion, at_key=True)
    version = at(source.value, "metadata", "version")
    if kind.versioned and version in (None, 0) and not source.is_spoiled(("metadata", "version")):
        message = "a version is required: it never changes, and two may be in use side by side"
        yield source.problem(("metadata", "version"), "missing-field", message, "add version: 1, or the next number")


def component_problems(source: Source) -> Iterator[Problem]:
    """Judge a component: its operation, and that parameters are declared and usable."""
    yield from local_problems(Scope(source, ("spec", "operation")))
    yield from _no_indirection(source, ("spec", "operation"))
    declared = map_at(source.value, "spec", "parameters")
    for item in texts(at(source.value, "spec", "operation"), ("spec", "operation")):
        for name in PARAMETER.findall(item.text):
            if name not in declared:
                message = f"no such parameter: {name}"
                yield source.problem(item.path, "unknown-reference", message, did_you_mean(name, declared))
    for name in declared:
        yield from _parameter(source, name)


def _parameter(source: Source, name: str) -> Iterator[Problem]:
    """Judge one declared parameter: its pattern, and that its choices and its default are values that it takes."""
    path = ("spec", "parameters", name)
    declared = map_at(source.value, *path)
    pattern, default = text_at(declared, "pattern"), declared.get("default")
    if not is_pattern(pattern):
        message = "not a regular expression (of the kind without look-around and back-references)"
        yield source.problem((*path, "pattern"), "bad-pattern", message)
    for index, choice in enumerate(list_at(declared, "choices")):
        refusal = value_refusal({"type": declared.get("type")}, str(choice))
        if refusal[0]:
            yield source.problem((*path, "choices", index), "bad-parameter", *refusal)
    if not isinstance(default, str):
        return
    if not matches(pattern, default):
        yield source.problem((*path, "pattern"), "bad-pattern", "the default does not match the parameter's pattern")
        return
    refusal = value_refusal(declared, default)
    if refusal[0]:
        yield source.problem((*path, "default"), "bad-parameter", *refusal)


def preset_problems(source: Source) -> Iterator[Problem]:
    """Judge a preset: the part of an operation that it sets."""
    yield from local_problems(Scope(source, ("spec", "patch")))
    yield from _no_indirection(source, ("spec", "patch"))
    for name in map_at(source.value, "spec", "environments"):
        yield from variables(Scope(source, ("spec", "environments", name)))


def _no_indirection(source: Source, base: tuple[str, ...]) -> Iterator[Problem]:
    """Refuse presets and components that name others: order would matter, and a chain could come back to its start."""
    for field in ("component", "parameters", "presets"):
        if at(source.value, *base, field):
            message = "only an operation names presets and a component, so that no chain of them can be a loop"
            suggestion = "remove it; name both in the operation, or presets in the project's defaults"
            yield source.problem((*base, field), "not-used", message, suggestion, at_key=True)


def queue_problems(source: Source) -> Iterator[Problem]:
    """Judge a queue."""
    name = text_at(source.value, "metadata", "name")
    if name and text_at(source.value, "spec", "parent") == name:
        yield source.problem(("spec", "parent"), "contradiction", "a queue is not its own parent", "name another queue")


def contract_problems(source: Source) -> Iterator[Problem]:
    """Judge an environment contract: claims only, and what its executor needs."""
    if at(source.value, "status") is not None:
        message = "status is written by the contract verifier alone, from evidence"
        yield source.problem(("status",), "status-refused", message, "remove it; spec is what you claim", at_key=True)
    executor = text_at(source.value, "spec", "runtime", "executor")
    if executor == "kubernetes" and not text_at(source.value, "spec", "runtime", "kubernetes"):
        message = "a Kubernetes environment states its version"
        yield source.problem(
            ("spec", "runtime", "kubernetes"), "missing-field", message, 'add kubernetes, such as "1.35"'
        )
    if executor and executor != "simulated" and at(source.value, "spec", "runtime", "simulation") is not None:
        message = f"has no effect with the executor {executor}"
        yield source.problem(("spec", "runtime", "simulation"), "not-used", message, "remove it", at_key=True)
    name = text_at(source.value, "metadata", "name")
    for other in map_at(source.value, "spec", "links"):
        if other == name:
            yield source.problem(
                ("spec", "links", other), "contradiction", "an environment has no link to itself", at_key=True
            )


def _environments(source: Source) -> Iterator[Problem]:
    forbidden = at(source.value, "spec", "environments", "forbid")
    allowed = at(source.value, "spec", "environments", "allow")
    for index, name in enumerate(allowed if isinstance(allowed, list) else []):
        if isinstance(forbidden, list) and name in forbidden:
            path = ("spec", "environments", "allow", index)
            yield source.problem(
                path, "contradiction", "this environment is also forbidden", "keep it in one of the lists"
            )


def project_problems(source: Source) -> Iterator[Problem]:
    """Judge a project."""
    yield from _environments(source)
    yield from local_problems(Scope(source, ("spec", "defaults")))


def rule_problems(source: Source) -> Iterator[Problem]:
    """Judge an operator's rule: that its expression is one, and that every name and type in it fits."""
    expression = text_at(source.value, "spec", "expression")
    if not expression or len(expression) > LONGEST_EXPRESSION:  # told by the shape
        return
    path = ("spec", "expression")
    try:
        compile_expression(expression)
    except ExpressionError as error:
        near = expression[error.offset :].partition("\n")[0][:_SHOWN]
        where = f"at character {error.offset + 1}" + (f", before {near!r}" if near else "")
        yield source.problem(path, "bad-expression", f"{where}: {error.message}", error.suggestion)


DOCUMENT_RULES: Final[dict[str, Callable[[Source], Iterator[Problem]]]] = {
    "Component": component_problems,
    "Preset": preset_problems,
    "Project": project_problems,
    "Queue": queue_problems,
    "Rule": rule_problems,
    "EnvironmentContract": contract_problems,
}
