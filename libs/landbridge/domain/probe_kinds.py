"""Names of the kinds of probes: the contract-verifier plans them, dispatchers and executors run them.

Every probe has the parameter `claimed`: the part of the contract that it proves, as canonical JSON. Others by kind:

workload      run a trivial workload through the executor, start to end
clock         compare the clock with the centre's; `proven` is the offset in seconds (positive: ahead of the centre)
capacity      `class`; count what works of a capability class; `proven` and `claimed` are amounts
connection    `connection`, `type`, `access`; reach it as workloads do, read and, where claimed, write
bandwidth     `connection`, `type`, `access`; how fast a connection is; `proven` is bits per second
storage       `storage`; provision, write, read
link          `environment`; measure bandwidth and latency to another environment
boundary      `boundary`, `expect` = allowed | refused; something that must be let through, or must be refused
carbon        read the carbon intensity of now from the site's source; `proven` is grams per kWh
self-stop     cut the lease of a canary and measure whether it stops itself in time
"""

from typing import Final

WORKLOAD: Final = "workload"
CLOCK: Final = "clock"
CAPACITY: Final = "capacity"
CONNECTION: Final = "connection"
BANDWIDTH: Final = "bandwidth"
STORAGE: Final = "storage"
LINK: Final = "link"
BOUNDARY: Final = "boundary"
SELF_STOP: Final = "self-stop"
CARBON: Final = "carbon"

ALLOWED: Final = "allowed"
REFUSED: Final = "refused"
