# Generated from proto/ by tools/generate_schema.py. Do not edit: change the proto file and run it again.
"""Identity values that commands, reports, requests and events share."""

from typing import Annotated

from pydantic import Field
from landbridge.schema.base import Closed

__all__ = [
    "Epoch",
    "PlacementRef",
]


class Epoch(Closed):
    """The fencing token of a placement. Epochs of one operation only grow; the text form is "generation.counter"."""

    # Raised when the centre's authority itself was restored or rebuilt.
    generation: Annotated[int, Field(ge=0)]
    # Raised with every placement of the operation.
    counter: Annotated[int, Field(ge=0)]


class PlacementRef(Closed):
    """One placement of one operation."""

    # The operation's id.
    operation: Annotated[str, Field(min_length=1, max_length=64)]
    # The placement's epoch.
    epoch: Epoch

