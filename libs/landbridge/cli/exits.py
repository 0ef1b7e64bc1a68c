"""Exit codes, which scripts may rely on."""

from enum import IntEnum


class Exit(IntEnum):
    """What the exit code of a command means."""

    DONE = 0  # also: the operation that was waited for is completed
    FAILED = 1  # the operation failed, or the command did
    INVALID = 2  # the document or the command line is wrong
    UNPLACEABLE = 3  # no environment can run the operation as things stand
    CANCELLED = 4
    TIMED_OUT = 5  # what was waited for did not happen in time; it goes on
    UNREACHABLE = 6  # nobody answers at the address


class CliError(Exception):
    """A command cannot be done: text for people and an exit code."""

    def __init__(self, message: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.code = code
