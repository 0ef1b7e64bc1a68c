"""Ranking's metrics. Labels are bounded: environments and codes; never operations."""

from prometheus_client import Counter, Gauge

unowned = Gauge("landbridge_unowned_charges", "Charges shown as held by no placement", ["environment"])
given_back = Counter("landbridge_charges_given_back", "Charges that the audit gave back", ["reason"])
