"""A capability class is there: processors and memory of this machine against what the contract claims.

Accelerators are counted by executors that can see them; plain processes prove none.
"""

import platform

from landbridge.domain import units
from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.executors.claimed import claimed_amount, claimed_part
from landbridge_dispatch.executors.protocol import Finding
from landbridge_dispatch.probes.context import ProbeContext


async def run(probe: Probe, context: ProbeContext) -> Finding:
    """Compare the machine with the claim; the smaller share of both resources is what is proven."""
    part, claimed = claimed_part(probe), claimed_amount(probe)
    subject = f"{platform.machine()} kernel {platform.release()}, boot {context.boot_id[:8]}"
    if part.get("count") is not None:
        return Finding(
            EvidenceResult.FAILED,
            subject,
            "plain processes prove no accelerators; offer the class where an executor can see its devices",
            proven=0.0,
            claimed=claimed,
        )
    capacity = context.executor.capacity()
    shares: dict[str, float] = {}
    if part.get("cpu"):
        shares["processors"] = capacity.cpu_millicores / units.parse_cpu(str(part["cpu"]))
    if part.get("memory"):
        shares["memory"] = capacity.memory_bytes / units.parse_bytes(str(part["memory"]))
    if not shares:
        return Finding(EvidenceResult.UNKNOWN, subject, "the class states neither processors nor memory")
    scarce = min(shares, key=lambda name: shares[name])
    share = min(1.0, shares[scarce])
    proven = None if claimed is None else round(claimed * share, 3)
    machine = f"{capacity.cpu_millicores / 1000:g} processors, {units.format_bytes(capacity.memory_bytes >> 20 << 20)}"
    detail = "" if share == 1 else f"{scarce}: {share:.0%} of the claim; this machine has {machine}"
    return Finding(EvidenceResult.PROVEN, subject, detail, proven=proven, claimed=claimed)
