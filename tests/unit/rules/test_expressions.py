"""What an operator's expression may be: every refusal says where and what, and only what is understood is evaluated."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.domain.documents.read import Document, Refusal, read_document
from landbridge.domain.rules.check import MOST_STEPS
from landbridge.domain.rules.compiled import compile_expression
from landbridge.domain.rules.facts import ENVIRONMENT_FIELDS, OPERATION_FIELDS, environment_facts, operation_facts
from landbridge.domain.rules.library import library
from landbridge.domain.rules.parse import parse
from landbridge.domain.rules.types import BOOL, DOUBLE, INT, TEXT, Many, Plain, Thing, Type
from landbridge.domain.rules.variables import ACCELERATOR, CLASS, ENVIRONMENT, NEEDED, OFFERED, OPERATION, VARIABLES
from landbridge.domain.rules.words import LONGEST_EXPRESSION, ExpressionError
from support.deciding import an_environment, an_operation

# Expression, the character that is wrong (from 0), a part of what is said.
WRONG = [
    ("operation.cpus > 3.0", 10, "no field 'cpus'|did you mean \"cpu\"?"),
    ("opration.cpu > 3.0", 0, "no variable 'opration'|did you mean \"operation\"?"),
    ("operation.cpu > '3'", 14, "compares numbers or strings, found double and string"),
    ("operation.cpu >", 15, "expected a value, found the end"),
    ("operation.cpu", 10, "expected a condition (bool), found double"),
    ("operation.failedOver == 1", 21, "one type, found bool and int"),
    ("operation.project && true", 10, "expected a condition (bool) beside &&, found string"),
    ("!operation.replicas", 11, "expected a condition (bool) beside !, found int"),
    ("frobnicate(1)", 0, "no function 'frobnicate'|there are has, size"),
    ("environment.name.startwith('a')", 17, 'did you mean "startsWith"?'),
    ("environment.name.matches('a+')", 17, "use startsWith, endsWith or contains"),
    ("environment.classes.exists(one, one.acelerator)", 36, 'did you mean "accelerator"?'),
    ("environment.classes.exists(one)", 20, "expected exists(name, condition)"),
    ("environment.name.exists(x, true)", 12, "expected a list before .exists, found string"),
    ("environment.classes.all(operation, true)", 20, "'operation' is a name already"),
    ("environment.classes.all(x, x.name)", 29, "expected a condition (bool), found string"),
    ("environment.classes == environment.classes", 20, "compares plain values"),
    ("operation.project in 'a'", 18, "expected a list after in, found string"),
    ("operation.project in [1]", 18, "string cannot be in a list of int"),
    ("operation.project in ['a', 1]", 27, "expected string like the first, found int"),
    ("environment.regions['eu'] == 'eu'", 20, "expected a place in the list (int), found string"),
    ("operation.memoryGiB + 1 > 3.0", 20, "two ints or two doubles, found double and int|convert with double"),
    ("'a' + 'b' == 'ab'", 4, "rules reckon with numbers only"),
    ("operation.project == null", 21, "null is not used in rules|ask has"),
    ("operation.failedOver ? 1 : 'a'", 21, "one type on both sides of :"),
    ("operation == 1", 0, "expected a field of operation|such as operation.project"),
    ("has(operation)", 0, "expected has(something.field)"),
    ("{'a': 1}", 0, "maps and messages are not used"),
    ("1u == 1", 0, "unsigned numbers are not used"),
    ("operation.project == 'a", 21, "a text that does not end on its line"),
    ("'a\\q' == 'a'", 2, "found \\q"),
    ("operation.replicas > 99999999999999999999", 21, "expected at most 9223372036854775807"),
    ("true true", 5, "expected an operator or the end, found 'true'"),
    ("(true", 5, "expected ')', found the end"),
    ("operation.replicas # 2", 19, "unexpected character '#'"),
]
BOMBS = [
    "true" + " " * LONGEST_EXPRESSION,
    "(" * 900 + "true" + ")" * 900,
    "!" * 1_900 + "true",
    "&&".join(["true"] * 400),
    "[" * 600 + "]" * 600 + " == []",
    "environment.classes.all(a, environment.classes.all(b, a.name != b.name || a.name == b.name))",
    "environment.connections.exists(a, environment.connections.exists(b, a.name == b.name))",
    "['x'].map(x, x + x).map(x, x + x).exists(x, x == 'x')",
]


@pytest.mark.parametrize(("expression", "at", "told"), WRONG, ids=[case[0][:40] for case in WRONG])
def test_what_does_not_fit_is_told_with_its_place_and_what_to_do(expression: str, at: int, told: str) -> None:
    with pytest.raises(ExpressionError) as found:
        compile_expression(expression)
    said = f"{found.value.message}|{found.value.suggestion}"
    assert found.value.offset == at, said
    assert all(part in said for part in told.split("|")), said


@pytest.mark.parametrize("expression", BOMBS, ids=[bomb[:20] for bomb in BOMBS])
def test_what_could_take_long_or_much_never_reaches_the_evaluation(expression: str) -> None:
    with pytest.raises(ExpressionError):
        compile_expression(expression)


@given(st.text("operatin.cu<>=!&|?:()[]'\" 0123456789+-*/%hasz\n\\", max_size=80) | st.text(max_size=40))
@settings(max_examples=400, deadline=None)
def test_whatever_is_written_is_refused_or_compiled(text: str) -> None:
    refused: ExpressionError | None = None
    try:
        compile_expression(text)
    except ExpressionError as error:
        refused = error
    assert refused is None or (refused.message and 0 <= refused.offset <= len(text))


def test_a_document_with_a_wrong_expression_is_refused_with_line_and_suggestion() -> None:
    text = b"""apiVersion: landbridge/v1
kind: Rule
metadata: {name: few-gpus}
spec:
  message: at most four devices
  expression: "!has(operation.accelerator) || operation.accelerator.cout <= 4"
"""
    refusal = read_document(text)
    assert isinstance(refusal, Refusal)
    [problem] = refusal.problems
    assert (problem.path, problem.code, problem.line) == ("spec.expression", "bad-expression", 6)
    assert problem.message == "at character 54, before 'cout <= 4': accelerator has no field 'cout'"
    assert problem.suggestion == 'did you mean "count"?'
    assert isinstance(read_document(text.replace(b"cout", b"count")), Document)


# -- the table of variables and the values are one ---------------------------------------------------------------------


def _fits(value: object, type_: Type) -> bool:
    if isinstance(type_, Plain):
        return type(value) is {BOOL: bool, INT: int, DOUBLE: float, TEXT: str}[type_]
    if isinstance(type_, Many):
        return isinstance(value, list) and all(type_.of is not None and _fits(item, type_.of) for item in value)
    if not isinstance(value, dict):
        return False
    needed = {name for name, member in type_.members.items() if not member.optional}
    return needed <= set(value) <= set(type_.members) and all(
        _fits(part, type_.members[name].type) for name, part in value.items()
    )


def _things(*types: Type) -> list[Thing]:
    """All things that types are made of."""
    found: list[Thing] = []
    for type_ in types:
        inner = type_.of if isinstance(type_, Many) else type_
        if isinstance(inner, Thing):
            found += [inner, *_things(*(member.type for member in inner.members.values()))]
    return found


def _members(root: str) -> Thing:
    found = VARIABLES[root]
    assert isinstance(found, Thing)
    return found


def test_every_documented_field_has_a_value_of_its_type() -> None:
    assert set(_members(OPERATION).members) == set(OPERATION_FIELDS)
    assert set(_members(ENVIRONMENT).members) == set(ENVIRONMENT_FIELDS)
    gpu = {"class": "gpu-80gb", "count": 2, "memory": "80Gi", "precision": ["bf16"]}
    busy = an_operation(
        resources={"requests": {"cpu": "2500m", "memory": "3Gi"}, "accelerator": gpu},
        inputs={"x": {"connection": "events", "license": "MIT"}},
        outputs={"y": {"connection": "events"}},
        constraints={"jurisdictions": ["EU"], "controls": ["secure-boot"]},
        lifecycle={"expectedDuration": "90s", "timeout": "1h"},
    ).requirements
    rich = an_environment(
        classes={
            "gpu-80gb": {"count": 16, "perNode": 8, "memory": "80Gi", "precision": ["bf16"], "interruptible": True}
        },
        runtime={"executor": "kubernetes", "kubernetes": "1.35"},
        boundaries={"network": {"default": "deny"}, "controlPlane": {"managed": False}},
    )
    everything = {thing.name: frozenset(thing.members) for thing in _things(*VARIABLES.values())}
    assert set(everything) == {OPERATION, ENVIRONMENT, ACCELERATOR, NEEDED, CLASS, OFFERED}
    for requirements, candidate in ((busy, rich), (an_operation().requirements, an_environment())):
        assert _fits(operation_facts(requirements, everything), VARIABLES[OPERATION])
        assert _fits(environment_facts(candidate, everything), VARIABLES[ENVIRONMENT])
    values = operation_facts(busy, everything)
    assert (values["cpu"], values["memoryGiB"], values["expectedSeconds"]) == (2.5, 3.0, 90.0)


# -- what is accepted means what CEL means -----------------------------------------------------------------------------


def _literals() -> st.SearchStrategy[str]:
    return st.sampled_from(("1", "2", "3", "7", "-4", "(1 - 2)"))


_arithmetic = st.recursive(
    _literals(),
    lambda inner: st.tuples(inner, st.sampled_from((" + ", " - ", " * ", " % ", " / ")), inner).map("".join),
    max_leaves=5,
)
_conditions = st.recursive(
    st.tuples(_arithmetic, st.sampled_from((" < ", " == ", " != ", " >= ")), _arithmetic).map("".join)
    | st.sampled_from(("true", "false", "2 in [1, 2]", "'a' < 'b'", "size('abc') == 3")),
    lambda inner: (
        st.tuples(inner, st.sampled_from((" && ", " || ")), inner).map("".join)
        | inner.map(lambda one: f"!({one})")
        | st.tuples(inner, inner, inner).map(lambda three: f"({three[0]} ? {three[1]} : {three[2]})")
    ),
    max_leaves=6,
)


@given(_conditions)
@settings(max_examples=200, deadline=None)
def test_the_parser_and_the_library_read_an_expression_alike(expression: str) -> None:
    """Written again with all brackets, it gives the same answer or the same failure."""
    assert _run(expression) == _run(_bracketed(expression)), _bracketed(expression)


def _run(expression: str) -> object:
    try:
        return library().compile(expression).execute({})
    except Exception as error:
        return type(error).__name__


def _bracketed(expression: str) -> str:
    return _written(parse(expression))


def _written(node: object) -> str:
    from landbridge.domain.rules import syntax

    match node:
        case syntax.Literal(_, bool() as value):
            return str(value).lower()
        case syntax.Literal(_, value):
            return repr(value)
        case syntax.Listed(_, items):
            return f"[{', '.join(map(_written, items))}]"
        case syntax.Call(_, "?:", (condition, one, other)):
            return f"({_written(condition)} ? {_written(one)} : {_written(other)})"
        case syntax.Call(_, name, (one,)) if name.endswith("_"):
            return f"({name[:-1]}{_written(one)})"
        case syntax.Call(_, name, (one, other)):
            return f"({_written(one)} {name} {_written(other)})"
        case syntax.Call(_, name, arguments):
            return f"{name}({', '.join(map(_written, arguments))})"
    raise AssertionError(node)


def test_the_dearest_rule_that_is_accepted_ends_soon() -> None:
    """A bound on steps, not on time: but no step of this library is slow."""
    found = compile_expression("environment.classes.all(one, one.precision.all(p, p == 'x' || p != 'y'))")
    assert found.steps <= MOST_STEPS
    classes = {
        f"gpu-{n}": {"count": 8, "memory": "80Gi", "precision": [f"p{m}" for m in range(20)]} for n in range(199)
    }
    candidate = an_environment(classes=classes)
    assert found.evaluate(an_operation().requirements, candidate) is True
