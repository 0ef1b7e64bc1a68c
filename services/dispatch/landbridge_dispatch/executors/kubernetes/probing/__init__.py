"""Probes of a cluster: what its contract claims, tried out."""
