"""The coordinator's metrics. Labels are bounded: kinds, phases, reasons of ours; never operations."""

from prometheus_client import Counter, Gauge

transitions = Counter("landbridge_operation_transitions", "Operations that moved into a phase", ["phase"])
alarms = Counter("landbridge_ownership_alarms", "Contradictions between the centre and environments", ["kind"])
claims = Counter("landbridge_claims", "Claims by answer: granted, or the reason of the refusal", ["answer"])
links = Gauge("landbridge_environment_connected", "1 while the centre hears the environment", ["environment"])
held = Gauge("landbridge_expiry_held", "1 while the centre suspects itself and releases nothing")
drifting = Gauge("landbridge_environment_drift", "Differences between what runs there and the record", ["environment"])
