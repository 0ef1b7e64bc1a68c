# Generated from proto/ by tools/generate_schema.py. Do not edit: change the proto file and run it again.
"""Identity values that commands, reports, requests and events share."""


import msgspec

__all__ = [
    "Epoch",
    "PlacementRef",
]


class Epoch(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True, order=True):
    """The fencing token of a placement. Epochs of one operation only grow; the text form is "generation.counter"."""

    generation: int
    counter: int


class PlacementRef(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """One placement of one operation."""

    operation: str
    epoch: Epoch

