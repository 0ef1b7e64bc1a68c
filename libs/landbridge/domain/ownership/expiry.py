"""When silence frees work: the expiry rule, the one active expirer's memory, and the centre's doubt in itself.

Times are milliseconds on the expirer's boot clock. It counts from when it SAW that a lease was granted, never earlier
than the grant; a new expirer, or one whose loop stood still, counts every lease as granted now.
"""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from landbridge.domain.ownership.policy import DEFAULT_TIMING, Timing
from landbridge.domain.ownership.rules import PRODUCTION, Rules


def release_wait_ms(stop_ms: int, timing: Timing = DEFAULT_TIMING, rules: Rules = PRODUCTION) -> int:
    """Return how long after a grant self-stopping work is surely dead: (TTL + T_stop)(1 + rho)/(1 - rho) + delta."""
    if not rules.expiry_waits_drift:
        return timing.ttl_ms
    slowest = (timing.ttl_ms + stop_ms) * (1000 + timing.rho_permille)
    return -(-slowest // (1000 - timing.rho_permille)) + timing.delta_ms


class Seen(msgspec.Struct, frozen=True):
    """How many grants one environment had, and when the expirer first saw that number."""

    grants: int
    at: int


class Watch(msgspec.Struct, frozen=True):
    """What the expirer remembers. Losing it is harmless: it begins anew and waits longer."""

    seen: dict[str, Seen] = {}
    looked_at: int = 0
    silent_since: dict[str, int] = {}
    """Environments whose lease ran out, and when."""
    held: bool = False
    """The centre suspects itself: nothing is released."""
    confirmed: dict[str, int] = {}
    """Environments whose silence a person confirmed, with the number of their grants by then."""


def look(watch: Watch, grants: Mapping[str, int], now: int, timing: Timing = DEFAULT_TIMING) -> Watch:
    """Take in the grant counts of all environments ever heard, and doubt the own hearing if most fall silent."""
    stood_still = now - watch.looked_at > timing.renewal_ms
    seen: dict[str, Seen] = {}
    silent: dict[str, int] = {}
    returned = False
    for name in sorted(grants):
        before = watch.seen.get(name)
        changed = before is None or before.grants != grants[name]
        at = now if before is None or changed or stood_still else before.at
        seen[name] = Seen(grants[name], at)
        if now - at > timing.ttl_ms:
            silent[name] = watch.silent_since.get(name, now)
        elif changed and name in watch.silent_since:
            returned = True
    window = timing.ttl_ms + timing.renewal_ms
    confirmed = {name: count for name, count in watch.confirmed.items() if grants.get(name) == count}
    together = sum(1 for name, since in silent.items() if now - since <= window and name not in confirmed)
    heard_before = len(seen) - len(silent) + together
    suspects = together * 2 > heard_before
    held = suspects or (watch.held and not returned and bool(silent))
    return Watch(seen, now, silent, held, confirmed)


def silent_ms(watch: Watch, environment: str, now: int) -> int:
    """Return for how long nothing was granted to this environment, as far as this expirer knows; 0 if unknown."""
    seen = watch.seen.get(environment)
    return 0 if seen is None else now - seen.at


def lift_hold(watch: Watch) -> Watch:
    """Return the watch after a person confirmed that the silence is real; it stays confirmed until it is broken."""
    silent = {name: watch.seen[name].grants for name in sorted(watch.silent_since) if name in watch.seen}
    return replace(watch, held=False, confirmed={**watch.confirmed, **silent})
