"""Subjects of messages as the contracts state them, and which filters take them."""

import re
from itertools import product

from landbridge.bus import subjects
from schemagen.model import Packages

# Documents have no subject of their own; this is where applications publish them.
_DOCUMENTS = {"Operation": (subjects.submit(subjects.ANY),)}


def patterns_of(message: str, packages: Packages) -> tuple[str, ...]:
    """Return the subjects of a message with `*` for what varies; `<a|b>` in the contract gives one for each word."""
    for package in packages.values():
        found = package.messages.get(message)
        if found is not None and found.rules.get("subject"):
            return expand(str(found.rules["subject"]))
    return _DOCUMENTS.get(message, ())


def expand(subject: str) -> tuple[str, ...]:
    """Return `subject` for every combination of its alternatives, its placeholders as `*`."""
    parts = []
    for token in subject.split("."):
        match = re.fullmatch(r"<(.+)>", token)
        if match is None:
            parts.append([token])
        else:
            parts.append(match[1].split("|") if "|" in match[1] else ["*"])
    return tuple(".".join(choice) for choice in product(*parts))


def takes(wanted: str, subject: str) -> bool:
    """Tell whether a filter takes every subject of a pattern."""
    filters, tokens = wanted.split("."), subject.split(".")
    for index, part in enumerate(filters):
        if part == ">":
            return len(tokens) > index
        if index >= len(tokens) or part not in ("*", tokens[index]):
            return False
    return len(filters) == len(tokens)
