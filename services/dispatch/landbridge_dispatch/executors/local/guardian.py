"""The guardian of one workload: forked by the launcher, it outlives launcher and dispatcher, never its workload.

It takes the slot, checks the lease at true start, starts the workload, holds its timers, stops all of it when asked or
when its policy says so, and records what happened. Single-threaded: every wait is one poll.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from landbridge_dispatch.executors.local import evidence, files, processes, procfs, slots
from landbridge_dispatch.executors.local.cgroups import Cgroup
from landbridge_dispatch.executors.local.course import MS, Course, Stage, StopRequest
from landbridge_dispatch.executors.local.lease import NEVER, START, read_lease
from landbridge_dispatch.executors.local.order import Order, read_order
from landbridge_dispatch.executors.local.outcome import Ending, judge
from landbridge_dispatch.executors.local.outlog import OutputLog
from landbridge_dispatch.executors.local.preparation import NotStartedError, Prepared, prepare
from landbridge_dispatch.executors.local.watches import CheckpointWatch, MemoryWatch

LEASE_RETRY_S = 0.1
ROOM_RETRY_S = 0.5


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the launcher knows and hands on. `life_fd` reaches its end when the launcher dies."""

    home: Path
    boot: str
    life_fd: int
    cgroup_base: Path | None


def run(surroundings: Surroundings, name: str, secrets: dict[str, str]) -> None:
    """Guard the workload of slot `name` to its end. Returns at once if the slot is taken or not there."""
    slot = surroundings.home / slots.SLOTS / name
    os.setsid()
    procfs.prctl(procfs.PR_SET_CHILD_SUBREAPER, 1)
    procfs.prctl(procfs.PR_SET_NAME, b"lb-guardian")
    identity = slots.GuardianId(os.getpid(), procfs.start_ticks(os.getpid()) or 0, surroundings.boot)
    order = read_order(slot)
    if order is None or not slots.claim_guardian(slot, identity):
        return
    guardian = Guardian(surroundings, slot, order)
    try:
        guardian.start(secrets)
    except NotStartedError as refusal:
        guardian.record_not_started(refusal)
    else:
        guardian.watch()
        guardian.record_end()
    slots.announce(surroundings.home, name)


class Guardian:
    """One workload from its start to its end."""

    def __init__(self, surroundings: Surroundings, slot: Path, order: Order) -> None:
        self._around = surroundings
        self._slot = slot
        self._order = order
        self._log = OutputLog(slot, order.log_bytes)
        self._wakeup = _arm_signals()
        self._leaders: list[int] = []
        self._statuses: dict[int, int] = {}
        self._first_failure: int | None = None
        self._cgroup: Cgroup | None = None
        self._stop: StopRequest | None = None
        self._course = Course(order.disconnection, started_ns=0, timeout_ms=0, grace_ms=0)
        self._state: dict[str, Any] = {}
        self._checkpoints = CheckpointWatch(order.checkpoint, slot / slots.WORK)
        self._memory = MemoryWatch(order.memory_bytes)
        self._oom_kills_before = procfs.oom_kills()

    def start(self, secrets: dict[str, str]) -> None:
        """Start all ranks or none. Raises NotStartedError; nothing is left running then."""
        self._may_start()
        prepared = prepare(self._slot, self._order, secrets, self._around.cgroup_base)
        self._cgroup = prepared.cgroup
        try:
            held = self._hold_all(prepared)
            now = procfs.boottime_ns()
            self._state = {
                "state": slots.RUNNING,
                "pid": held[0].pid,
                "startedAt": time.time(),
                "startedBootNs": now,
            }
            self._record(self._state)
            # True start: nothing slow comes between this look at the lease and exec. Timers run from before it.
            self._may_start()
            self._audit("start", pid=held[0].pid, term=self._order.grant_term)
            self._course = Course(
                self._order.disconnection,
                started_ns=now,
                timeout_ms=self._order.timeout_ms,
                grace_ms=self._order.grace_ms,
                checkpoints=self._order.checkpoint is not None,
            )
            self._release_all(held)
        except BaseException:
            # Held children end when their pipes close with this process at the latest; here they are made to.
            processes.kill_everything()
            raise
        slots.announce(self._around.home, self._slot.name)

    def _may_start(self) -> None:
        """Return once the lease allows it. Raises NotStartedError if it never will, or not within a bounded time."""
        deadline = procfs.boottime_ns() + self._order.start_wait_ms * MS
        while True:
            stop = slots.stop_requested(self._slot)
            if stop is not None:
                raise NotStartedError(stop.reason, "stopped before it had started", denied=True)
            granted = slots.grant_term(self._slot, self._order.grant_term)
            lease, now = read_lease(self._around.home, self._order.lease_file), procfs.boottime_ns()
            verdict = lease.verdict(granted, now, self._around.boot)
            if verdict == START:
                return
            if verdict == NEVER or now >= deadline:
                found = f"granted in term {granted}, lease of term {lease.term}"
                raise NotStartedError("no-lease", f"no lease that allows starting: {found}", denied=True)
            time.sleep(LEASE_RETRY_S)

    def _hold_all(self, prepared: Prepared) -> list[processes.Held]:
        try:
            held = [processes.hold(start) for start in prepared.starts(self._log.write_fd)]
        except OSError as failure:
            raise NotStartedError("failed-to-start", f"cannot start a process: {failure.strerror}") from failure
        self._log.close_writer()
        self._leaders = [child.pid for child in held]
        return held

    def _release_all(self, held: list[processes.Held]) -> None:
        failures = [failure for child in held if (failure := child.release()) is not None]
        if failures:
            self._audit("stop", reason="failed-to-start")
            raise NotStartedError("failed-to-start", f"{failures[0].filename}: {failures[0].strerror}")

    def watch(self) -> None:
        """Go on until every process of the workload is gone."""
        poll = select.poll()
        for fd in (self._wakeup, self._log.read_fd, self._around.life_fd):
            poll.register(fd, select.POLLIN)
        while True:
            for fd, _ in poll.poll(self._wait_ms()):
                self._handle(poll, fd)
            processes.reap(self._statuses)
            self._see_failures()
            # What ended by itself must not be taken for stopped: look before acting.
            if all(leader in self._statuses for leader in self._leaders):
                break
            self._act()
        if self._cgroup is not None:
            self._cgroup.kill()
        self._statuses |= processes.kill_everything()
        self._log.finish()

    def _handle(self, poll: select.poll, fd: int) -> None:
        if fd == self._wakeup:
            with contextlib.suppress(BlockingIOError):
                if bytes([signal.SIGTERM]) in os.read(self._wakeup, 4096):
                    self._stop = self._stop or StopRequest("host-shut-down", self._order.grace_ms)
            self._stop = slots.stop_requested(self._slot) or self._stop
        elif fd == self._log.read_fd:
            if not self._log.pump():
                poll.unregister(fd)
        else:
            # The launcher is gone. The workload goes on by its policy, which needs no launcher.
            poll.unregister(fd)
            with files.room_lacking():
                slots.audit(self._around.home, "launcher-lost", slot=self._slot.name)

    def _see_failures(self) -> None:
        """End the other ranks when one has failed: a gang is all or nothing."""
        failed = next((leader for leader in self._leaders if self._statuses.get(leader)), None)
        if failed is None or self._first_failure is not None:
            return
        self._first_failure = failed
        self._course.end_gang(procfs.boottime_ns())
        self._end_leaders()

    def _act(self) -> None:
        now = procfs.boottime_ns()
        before = self._course.stage
        if self._checkpoints.look(now, at_once=before is Stage.CHECKPOINTING):
            self._record_checkpoint()
        until = 0
        if self._order.disconnection.stops_itself:
            lease = read_lease(self._around.home, self._order.lease_file)
            until = lease.until_ns if lease.boot == self._around.boot else 0
        sealed = self._checkpoints.sealed_since_asked
        self._course.advance(now, lease_until_ns=until, stop=self._stop, sealed=sealed)
        if self._cgroup is None and self._memory.exceeded(now):
            self._course.exceed_memory()
        if self._course.stage is not before:
            self._enter(self._course.stage)

    def _enter(self, stage: Stage) -> None:
        if stage is Stage.CHECKPOINTING:
            self._checkpoints.ask()
            for leader in self._leaders:
                # Does nothing to a program that ignores it, unlike the user signals.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(leader, signal.SIGURG)
        elif stage is Stage.TERMINATING:
            self._end_leaders()
        elif stage is Stage.KILLING:
            self._statuses |= processes.kill_everything()

    def _end_leaders(self) -> None:
        for leader in self._leaders:
            if leader not in self._statuses:
                processes.ask_to_end(leader)

    def _wait_ms(self) -> int | None:
        now = procfs.boottime_ns()
        memory = None if self._cgroup is not None else self._memory.next_ns()
        moments = (self._course.next_wake_ns(now), self._checkpoints.next_ns(), memory)
        known = [moment for moment in moments if moment is not None]
        # Rounded up: waking just before the moment would spin.
        return max(0, (min(known) - now) // MS + 1) if known else None

    def _record_checkpoint(self) -> None:
        self._state |= {"checkpoint": self._checkpoints.manifest, "sealedAt": self._checkpoints.sealed_at}
        # While the workload runs nothing may wait, for its timers run: on a full disk the end tells of it.
        with files.room_lacking():
            slots.append_state(self._slot, self._state)
        slots.announce(self._around.home, self._slot.name)

    def record_end(self) -> None:
        """Judge what happened and leave it in the slot, durably."""
        finished_at = time.time()
        self._audit("stop", reason=self._course.cause or "exit")
        if self._checkpoints.look(0, at_once=True):
            self._state |= {"checkpoint": self._checkpoints.manifest, "sealedAt": self._checkpoints.sealed_at}
        metrics = evidence.read_metrics(self._slot / slots.WORK / slots.METRICS)
        outputs = {
            name: {"connection": place.connection, "path": place.path, **evidence.measure_output(Path(place.directory))}
            for name, place in self._order.outputs.items()
        }
        status = self._statuses[self._first_failure or self._leaders[0]]
        code = os.waitstatus_to_exitcode(status)
        acceptance = evidence.judge_acceptance(self._order.acceptance, code if code >= 0 else None, metrics, outputs)
        ending = self._ending(status, [item["criterion"] for item in acceptance if not item["met"]])
        found = {"outputs": outputs, "metrics": metrics, "acceptance": acceptance}
        end = {"state": slots.FINISHED, "finishedAt": finished_at}
        self._record(self._state | end | ending.to_json() | found)
        if self._cgroup is not None:
            self._cgroup.remove()

    def _ending(self, status: int, unmet: list[str]) -> Ending:
        killed = self._cgroup.oom_kills() if self._cgroup else procfs.oom_kills() - self._oom_kills_before
        # Without a cgroup the count is the whole machine's: believed only for a SIGKILL that nobody here sent.
        by_kernel = killed > 0 and (self._cgroup is not None or os.waitstatus_to_exitcode(status) == -signal.SIGKILL)
        return judge(
            status,
            cause=self._course.cause,
            out_of_memory=by_kernel,
            unmet=unmet,
            accepted_codes=evidence.accepted_exit_codes(self._order.acceptance),
            memory_bytes=self._order.memory_bytes,
        )

    def record_not_started(self, refusal: NotStartedError) -> None:
        """Leave the slot occupied, so that nothing can start in it later."""
        if self._cgroup is not None:
            self._cgroup.remove()
        told = {"reason": refusal.code, "message": str(refusal), "denied": refusal.denied}
        self._record({"state": slots.TOMBSTONE, "at": time.time(), **told})

    def _record(self, state: dict[str, Any]) -> None:
        """Record what must not be lost; on a full disk once there is room again."""
        _until_room(lambda: slots.append_state(self._slot, state))

    def _audit(self, event: str, **facts: Any) -> None:
        order = self._order
        epoch = f"{order.generation}.{order.counter}"
        name = self._slot.name

        def write() -> None:
            slots.audit(self._around.home, event, slot=name, operation=order.operation, epoch=epoch, **facts)

        _until_room(write)


def _until_room(write: Callable[[], None]) -> None:
    """Write, again and again while the disk is full. Only while no timer of a workload has to be kept."""
    while True:
        with files.room_lacking():
            return write()
        time.sleep(ROOM_RETRY_S)


def _arm_signals() -> int:
    """Return the read end of a pipe that gets a byte, the signal's number, for every signal."""
    read, write = os.pipe()
    for fd in (read, write):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for signum in (signal.SIGCHLD, procfs.WAKE, signal.SIGTERM):
        signal.signal(signum, _note)
    for signum in (signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    return read


def _note(_signum: int, _frame: object) -> None:
    """Only the byte in the wake-up pipe counts."""
