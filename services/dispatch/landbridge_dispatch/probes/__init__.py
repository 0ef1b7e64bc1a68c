"""Probes that a dispatcher runs beside its executor's own: one kind a module."""

from collections.abc import Awaitable, Callable

from landbridge.domain import probe_kinds
from landbridge.schema.wire.command_v1 import Probe
from landbridge_dispatch.executors.protocol import Finding
from landbridge_dispatch.probes import boundary, capacity, carbon, clock, connection
from landbridge_dispatch.probes.context import ProbeContext

Run = Callable[[Probe, ProbeContext], Awaitable[Finding]]

KINDS: dict[str, Run] = {
    probe_kinds.CLOCK: clock.run,
    probe_kinds.CAPACITY: capacity.run,
    probe_kinds.CONNECTION: connection.run,
    probe_kinds.BOUNDARY: boundary.run,
    probe_kinds.CARBON: carbon.run,
}
