"""The dispatcher's own metrics and what its health probes say. Labels are bounded: never an operation."""

from prometheus_client import Gauge

held = Gauge("landbridge_dispatcher_operations", "Operations that this environment remembers")
running = Gauge("landbridge_dispatcher_slots_used", "Slots whose work has not ended")
free = Gauge("landbridge_dispatcher_slots_free", "Slots that could be claimed for")
waiting_offers = Gauge("landbridge_dispatcher_offers_waiting", "Offers that wait for room")
waiting_reports = Gauge("landbridge_dispatcher_reports_waiting", "Reports that are not stored yet")
lease_usable = Gauge("landbridge_dispatcher_lease_usable", "1 while new work may start, else 0")
lease_seconds = Gauge("landbridge_dispatcher_lease_remaining_seconds", "Seconds until the lease ends, 0 if it has")
failed_probes = Gauge("landbridge_dispatcher_probes_failed", "Probes of the plan whose latest result is a failure")
