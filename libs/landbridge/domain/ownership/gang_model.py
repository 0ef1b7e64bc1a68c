"""The gang that an operation is a member of, and what its members are told about each other. Part of `centre_model`."""

import msgspec

GANG_BROKEN = "gang-broken"
"""Reason for which a member gives its place back: another one has lost its own, and they start together."""
GANG_MEMBER_LOST = "gang-member-lost"
"""Reason for which a member is cancelled: another one has ended without completing."""
GANG_CLAIMED = "gang-claimed"
"""Reason of the record that every member was claimed, so that all may start."""


class Gang(msgspec.Struct, frozen=True):
    """What an operation declares: the gang's name in its project, how many are members, what holds after the start.

    `apart`: once all were granted each goes on by itself. Without a name it is a member of none.
    """

    name: str = ""
    members: int = 0
    apart: bool = False

    def __bool__(self) -> bool:
        return bool(self.name)


NO_GANG = Gang()


class GangComplete(msgspec.Struct, frozen=True):
    """Every member is claimed, or was granted before: claims are granted from now on."""

    message: str = ""


class GangBroken(msgspec.Struct, frozen=True):
    """Another member has lost its place, or will not take the one that it was given: all begin a new round."""

    message: str


class GangShrunk(msgspec.Struct, frozen=True):
    """Another member has completed: those that wait are to be placed without it."""

    message: str


class GangWaits(msgspec.Struct, frozen=True):
    """The member is claimed and others are not yet; `message` says which."""

    message: str
