"""The carbon intensity of the site's power now. `proven`: grams of CO2 equivalent per kWh.

When the source is silent, the last value that it told counts on with the time at which it was read, until it has run
out by its own saying or the evidence has expired.
"""

from typing import NamedTuple

from landbridge.domain import probe_kinds
from landbridge.domain.carbon import Told
from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.carbon_source import SourceError, read
from landbridge_dispatch.dispatcher.clocks import wall
from landbridge_dispatch.executors.protocol import Finding
from landbridge_dispatch.probes.context import ProbeContext


class _Good(NamedTuple):
    """The last value that was told, with the finding about it, whose time is that of the reading."""

    told: Told
    finding: Finding


async def run(probe: Probe, context: ProbeContext) -> Finding:  # noqa: ARG001 - every kind has the same shape
    """Ask the source that the bindings name."""
    source, now = context.bindings.carbon, wall()
    if source is None:
        return Finding(EvidenceResult.UNKNOWN, "carbon source", "none is bound here: add carbon to the site's bindings")
    try:
        told = await read(source, context.bindings.home, now)
    except SourceError as error:
        return _last(context, source.called, str(error))
    named = f"as {told.source} tells it" if told.source else ""
    finding = Finding(EvidenceResult.PROVEN, source.called, named, proven=told.point.grams, at=now)
    context.memory[probe_kinds.CARBON] = _Good(told, finding)
    return finding


def _last(context: ProbeContext, subject: str, why: str) -> Finding:
    good = context.memory.get(probe_kinds.CARBON)
    if not isinstance(good, _Good) or good.finding.subject != subject or good.told.point.until <= wall():
        return Finding(EvidenceResult.UNKNOWN, subject, why)
    finding = good.finding
    return Finding(finding.result, subject, f"last good value: {why}", proven=finding.proven, at=finding.at)
