"""Errors for people: each message names the thing, what was expected, what was found and the next step."""


class EmbeddedError(Exception):
    """Something on this machine keeps Landbridge from running here."""
