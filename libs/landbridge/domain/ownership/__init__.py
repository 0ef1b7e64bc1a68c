"""Who owns a placement: pure decisions of the centre and of the environments.

`centre` decides for one operation, `leases_centre` and `expiry` for one environment's lease, `reconcile` compares an
inventory with both; `environment` and `leases` are the other side of the same protocol, inside the environment.
Nothing here reads a clock, waits, or talks: state, message and time go in, state and effects come out.
"""
