"""The lease as guardians see it: a file with its end on the boot clock, written whenever a renewal was granted.

The end is absolute on this machine's boot clock, so that reading the file late never lengthens the lease. A file
from another boot, an unreadable one and none at all are a lease that has run out.
"""

from dataclasses import dataclass
from pathlib import Path

from landbridge_dispatch.executors.local.files import read_json, write_json

LEASE_FILE = "lease.json"
START, WAIT, NEVER = "start", "wait", "never"


@dataclass(frozen=True, slots=True)
class Lease:
    """`until_ns` is on the boot clock of the boot that `boot` names."""

    term: int
    until_ns: int
    boot: str
    may_start: bool

    def is_valid(self, now_ns: int, boot: str) -> bool:
        return self.boot == boot and now_ns < self.until_ns

    def verdict(self, grant_term: int, now_ns: int, boot: str) -> str:
        """Make the check at the true start, as `landbridge.domain.ownership.leases.start_verdict` defines it."""
        if self.term < grant_term and self.boot == boot:
            return NEVER
        return START if self.is_valid(now_ns, boot) and self.term == grant_term and self.may_start else WAIT


NO_LEASE = Lease(term=0, until_ns=0, boot="", may_start=False)


def write_lease(home: Path, lease: Lease, file: str = LEASE_FILE) -> None:
    """Publish `lease` to the guardians. Not synced: after a power cut it is void in any case."""
    value = {"term": lease.term, "untilNs": lease.until_ns, "boot": lease.boot, "mayStart": lease.may_start}
    write_json(home / file, value, sync=False)


def read_lease(home: Path, file: str = LEASE_FILE) -> Lease:
    """Return the lease last published, or one that has run out."""
    try:
        value = read_json(home / file)
        if value is None:
            return NO_LEASE
        return Lease(int(value["term"]), int(value["untilNs"]), str(value["boot"]), value["mayStart"] is True)
    except (OSError, ValueError, KeyError, TypeError):
        return NO_LEASE
