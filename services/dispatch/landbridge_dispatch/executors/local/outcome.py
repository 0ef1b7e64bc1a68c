"""How an attempt ended, from what was seen: one rule for every way to end. Pure."""

import os
import signal
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Ending:
    """`outcome` is completed, failed or cancelled; `reason` a code; `message` for people."""

    outcome: str
    reason: str
    message: str
    exit_code: int | None = None
    signal: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "outcome": self.outcome,
            "reason": self.reason,
            "message": self.message,
            "exitCode": self.exit_code,
            "signal": self.signal,
        }


def judge(
    status: int,
    *,
    cause: str,
    out_of_memory: bool,
    unmet: list[str],
    accepted_codes: frozenset[int] = frozenset({0}),
    memory_bytes: int = 0,
) -> Ending:
    """Return the ending for a wait status. `cause`: why we stopped it, if we did; `unmet`: acceptance criteria."""
    code = os.waitstatus_to_exitcode(status)
    exit_code, signum = (code, None) if code >= 0 else (None, -code)
    if cause == "out-of-memory" or (out_of_memory and code != 0 and not cause):
        limit = f" (limit {memory_bytes} bytes)" if memory_bytes else ""
        return Ending("failed", "out-of-memory", f"used more memory than it may{limit}", exit_code, signum)
    if cause == "timeout":
        return Ending("failed", cause, "ran longer than lifecycle.timeout allows", exit_code, signum)
    if cause:
        return Ending("cancelled", cause, _STOPPED.get(cause, f"stopped: {cause}"), exit_code, signum)
    if signum is not None:
        return Ending("failed", "signal", f"ended by signal {signum} ({_signal_name(signum)})", exit_code, signum)
    if code not in accepted_codes and code != 0:
        return Ending("failed", "exit-code", f"exited with code {code}", exit_code, signum)
    if unmet:
        return Ending("failed", "acceptance-not-met", "not met: " + "; ".join(unmet), exit_code, signum)
    return Ending("completed", "", "", exit_code, signum)


_STOPPED = {
    "cancelled": "stopped on request",
    "gang-not-started": "stopped because not all of its replicas had started in time",
    "moved": "stopped to be moved to another environment",
    "preempted": "stopped so that other work finds room",
    "self-stopped": "stopped itself as declared after the environment's lease had run out",
    "stopped-on-site": "stopped by an operator on site",
}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unnamed"
