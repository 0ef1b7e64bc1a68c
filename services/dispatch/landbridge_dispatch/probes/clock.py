"""The clock agrees with the centre's, as measured in lease exchanges. `proven`: seconds that ours is ahead."""

from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.executors.protocol import Finding
from landbridge_dispatch.probes.context import ProbeContext

OFFSET_MAX_S = 5.0
# Coarse on purpose: evidence that trembles with every measurement would be news every time.
STEP_S = 0.5


async def run(probe: Probe, context: ProbeContext) -> Finding:  # noqa: ARG001 - every kind has the same shape
    """Compare with the best of the latest exchanges."""
    subject = f"boot {context.boot_id[:8]}"
    offset = context.clock.offset
    if offset is None:
        return Finding(EvidenceResult.UNKNOWN, subject, "no lease exchange has told the centre's time yet")
    ahead_s = round(-offset.total_seconds() / STEP_S) * STEP_S + 0.0
    if abs(ahead_s) <= OFFSET_MAX_S:
        return Finding(EvidenceResult.PROVEN, subject, proven=ahead_s)
    detail = f"{abs(ahead_s):g} s {'ahead of' if ahead_s > 0 else 'behind'} the centre, at most {OFFSET_MAX_S:g} s"
    return Finding(EvidenceResult.FAILED, subject, f"{detail}; set the clock of this machine", proven=ahead_s)
