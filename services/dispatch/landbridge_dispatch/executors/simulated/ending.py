"""What a simulated attempt leaves behind: the same report that a real one makes, with made-up contents."""

import hashlib
from typing import Any

import msgspec

from landbridge.schema.wire import report_v1 as wire
from landbridge_dispatch.executors.local.evidence import accepted_exit_codes, judge_acceptance
from landbridge_dispatch.executors.local.outcome import Ending, judge
from landbridge_dispatch.executors.protocol import Chunk
from landbridge_dispatch.executors.simulated.model import COMMAND, Plan, parse_directives
from landbridge_dispatch.specification import Spec

_NO_OUTPUTS: dict[str, wire.OutputRef] = {}
COMPLETED = Ending("completed", "", "", 0, None)


class Remains(msgspec.Struct, frozen=True):
    """Ending and contents of a finished attempt."""

    ending: Ending
    outputs: dict[str, wire.OutputRef] = {}
    metrics: dict[str, float] = {}
    acceptance: tuple[wire.AcceptanceResult, ...] = ()


class Contents(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What an attempt would produce, kept from its beginning: the specification itself is not."""

    outputs: dict[str, tuple[str, str]] = {}
    """Connection and path of each output that will be there."""
    missing: tuple[str, ...] = ()
    metrics: dict[str, float] = {}
    acceptance: list[dict[str, Any]] = []


NOTHING = Contents()


def contents_of(operation: str, attempt: str, spec: Spec) -> Contents:
    """Return what the attempt will produce. A metric that nobody gave a value lies just within its bounds."""
    if not spec.outputs and not spec.acceptance:
        return NOTHING
    words = parse_directives(spec) if spec.command and spec.command[0] == COMMAND else {}
    metrics = {name[7:]: float(value) for name, value in words.items() if name.startswith("metric.")}
    for criterion in spec.acceptance:
        bound = criterion.at_least if criterion.at_least is not None else criterion.at_most
        if criterion.metric and bound is not None and not words:
            metrics.setdefault(criterion.metric, bound)
    return Contents(
        {name: (output.connection, f"{operation}/{attempt}/{name}") for name, output in spec.outputs.items()},
        tuple(filter(None, words.get("missing", "").split(","))),
        metrics,
        [msgspec.to_builtins(criterion) for criterion in spec.acceptance],
    )


def remains_of(plan: Plan, contents: Contents, cause: str) -> Remains:
    """Return how the attempt ended. `cause`: why it was stopped, empty if it was not."""
    if contents is NOTHING and not cause and not (plan.exit_code or plan.signal or plan.out_of_memory):
        return Remains(COMPLETED)
    killed = plan.out_of_memory or (cause and plan.ignore_term)
    status = 9 if killed else 15 if cause else plan.signal or plan.exit_code << 8
    cause = cause or ("out-of-memory" if plan.out_of_memory else "")
    outputs = {} if cause else {name: _output(place) for name, place in contents.outputs.items()}
    outputs = {name: output for name, output in outputs.items() if name not in contents.missing}
    results = judge_acceptance(
        contents.acceptance,
        plan.exit_code,
        contents.metrics,
        {key: msgspec.to_builtins(o) for key, o in outputs.items()},
    )
    ending = judge(
        status,
        cause=cause,
        out_of_memory=plan.out_of_memory,
        unmet=[result["criterion"] for result in results if not result["met"]],
        accepted_codes=accepted_exit_codes(contents.acceptance),
    )
    return Remains(ending, outputs, contents.metrics, msgspec.convert(results, tuple[wire.AcceptanceResult, ...]))


def output_bytes(path: str) -> bytes:
    """Return the made-up content of an output."""
    return f"simulated output {path}\n".encode()


def cut(body: bytes, offset: int, limit: int, tail: int, *, ended: bool) -> Chunk:
    """Return a piece of made-up content, as a piece of a file would be."""
    start = max(0, len(body) - tail) if tail else min(offset, len(body))
    data = body[start : start + limit]
    return Chunk(data, start + len(data), ended and start + len(data) >= len(body))


def _output(place: tuple[str, str]) -> wire.OutputRef:
    body = output_bytes(place[1])
    digest = hashlib.sha256(body).hexdigest()
    return wire.OutputRef(connection=place[0], path=place[1], bytes=len(body), sha256=digest, exists=True)
