"""A boundary holds: what must be let in is, and what must be refused is, by the same check that every offer passes."""

import msgspec

from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.policy import Disconnection
from landbridge.domain.probe_kinds import REFUSED
from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.executors.claimed import claimed_part
from landbridge_dispatch.executors.protocol import Finding, RefusalCode, Work
from landbridge_dispatch.probes.context import ProbeContext
from landbridge_dispatch.specification import read_operation

STRANGER = "landbridge-probe-stranger"


async def run(probe: Probe, context: ProbeContext) -> Finding:
    """Try operations that nobody has submitted against the site's own policy; none of them is started."""
    subject = "the dispatcher's admission check"
    boundary = probe.parameters.get("boundary", "")
    if boundary != "identity":
        return Finding(EvidenceResult.UNKNOWN, subject, f"boundary {boundary} is not enforced by this executor")
    if probe.parameters.get("expect") == REFUSED:
        return await _must_refuse(context, subject)
    return await _must_admit(sorted(claimed_part(probe).get("roles", {})), context, subject)


async def _must_admit(roles: list[str], context: ProbeContext, subject: str) -> Finding:
    refusals = await context.executor.check([_operation(context, identity=role) for role in roles])
    for role, refusal in zip(roles, refusals, strict=True):
        if refusal is not None:
            return Finding(EvidenceResult.FAILED, subject, f"role {role} is not let in: {refusal}")
    return Finding(EvidenceResult.PROVEN, subject, f"let in: {', '.join(roles) or 'no role claimed'}")


async def _must_refuse(context: ProbeContext, subject: str) -> Finding:
    tries = {
        "an unknown role": (_operation(context, identity=STRANGER), RefusalCode.IDENTITY),
        "an unbound connection": (
            _operation(context, inputs={"probe": {"connection": STRANGER}}),
            RefusalCode.CONNECTION_MISSING,
        ),
    }
    if context.bindings.accepts.projects and "*" not in context.bindings.accepts.projects:
        tries["a foreign project"] = (_operation(context, project=STRANGER), RefusalCode.PROJECT)
    for what, (work, code) in tries.items():
        [refusal] = await context.executor.check([work])
        if refusal is None or refusal.code is not code:
            return Finding(EvidenceResult.FAILED, subject, f"{what} was not refused as {code}")
    return Finding(EvidenceResult.PROVEN, subject, f"refused: {', '.join(tries)}")


def _operation(context: ProbeContext, *, project: str = "", **spec: object) -> Work:
    accepted = [name for name in context.bindings.accepts.projects if name != "*"]
    chosen = project or (accepted[0] if accepted else STRANGER)
    document = {"metadata": {"name": "probe", "project": chosen}, "spec": {"command": ["true"], **spec}}
    body = msgspec.json.encode(document)
    return Work(
        operation="00000000-0000-0000-0000-000000000000",
        epoch=Epoch(0, 1),
        project=chosen,
        attempt=1,
        term=0,
        spec=body,
        spec_sha256="",
        view=read_operation(body),
        policy=Disconnection(),
    )
