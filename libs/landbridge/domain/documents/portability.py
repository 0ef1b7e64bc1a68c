"""What ties an operation to one provider or hands it a credential, and what to write instead.

An operation names capability classes and connections; instance types, bucket URLs, cloud endpoints and secrets live in
the environments (I2). Matches are named by kind, never quoted: a refusal must not repeat a secret.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final
from unicodedata import normalize
from urllib.parse import unquote

from landbridge.domain.documents.credentials import (
    credential_in,
    may_hold_credential,
    secret_after_flag,
    secret_in_variable,
)
from landbridge.domain.documents.places import Path
from landbridge.domain.documents.providers import EVERYWHERE, PORTABLE, Rule
from landbridge.domain.documents.source import Source
from landbridge.domain.documents.walk import Text, all_text, list_at, map_at, texts
from landbridge.domain.errors import Problem

_DROP_CREDENTIAL: Final = (
    "remove it, and change it at its source because it was sent here; name a connection, or a role in spec.identity: "
    "the environment hands out short-lived credentials"
)
_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]"
)

# Where an operation's fields stand: in an Operation, a Component, a Preset.
_BASES: Final = (("spec",), ("spec", "operation"), ("spec", "patch"))
# Fields where people explain: a reason may name the machine that was measured. Secrets are refused there as well.
_EXPLAINS: Final = frozenset(("description", "reason", "justification"))


def portability_problems(source: Source, kind: str) -> Iterator[Problem]:
    """Find provider details and credentials anywhere in a document of `kind`.

    Contracts and catalogue entries describe places, so they may name instance types; bindings and secrets have no
    place in them either.
    """
    portable = kind in ("Operation", "Component", "Preset")
    rules = PORTABLE if portable else EVERYWHERE
    everything = all_text(source.value)
    if (
        not everything.isascii()
        or "%" in everything
        or may_hold_credential(everything)
        or _names_provider(everything, rules)
    ):
        for item in texts(source.value):
            if not source.is_spoiled(item.path):
                yield from _judge(source, item, rules)
    if portable:
        yield from _variables(source)
        yield from _arguments(source)


def _judge(source: Source, item: Text, rules: tuple[Rule, ...]) -> Iterator[Problem]:
    plain = _plain(item.text)
    secret = credential_in(item.text) or (credential_in(plain) if plain != item.text else "")
    if secret:
        message = f"{secret} may not be part of a document"
        yield source.problem(item.path, "credential", message, _DROP_CREDENTIAL, at_key=item.is_key)
        return
    if item.path[-1] in _EXPLAINS:
        return
    rule = _names_provider(plain, rules)
    if rule is not None:
        yield source.problem(item.path, rule.code, f"holds {rule.what}", rule.instead, at_key=item.is_key)


def _names_provider(text: str, rules: tuple[Rule, ...]) -> Rule | None:
    lower = text.lower()
    return next((rule for rule in rules if rule.is_in(lower)), None)


def _plain(text: str) -> str:
    """Undo what hides a text from a pattern: percent-encoding, look-alike forms and invisible characters."""
    if "%" in text:
        text = unquote(text)
        text = unquote(text) if "%" in text else text
    return text if text.isascii() else _INVISIBLE.sub("", normalize("NFKC", text))


def _variables(source: Source) -> Iterator[Problem]:
    for path, variables in _maps_named_env(source.value):
        for name, value in variables.items():
            if isinstance(value, str) and secret_in_variable(name, value) and not credential_in(value):
                message = "a variable of this name carries a secret"
                yield source.problem((*path, name), "credential", message, _DROP_CREDENTIAL)


def _maps_named_env(value: object) -> Iterator[tuple[Path, Mapping[str, object]]]:
    for base in _BASES:
        yield (*base, "env"), map_at(value, *base, "env")
    for name in map_at(value, "spec", "environments"):
        yield ("spec", "environments", name, "env"), map_at(value, "spec", "environments", name, "env")


def _arguments(source: Source) -> Iterator[Problem]:
    for base in _BASES:
        for name in ("command", "args"):
            items = list_at(source.value, *base, name)
            for index in range(1, len(items)):
                flag, value = items[index - 1], items[index]
                if isinstance(flag, str) and isinstance(value, str) and secret_after_flag(flag, value):
                    message = "the value of a password or key flag"
                    yield source.problem((*base, name, index), "credential", message, _DROP_CREDENTIAL)
