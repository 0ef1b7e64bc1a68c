"""Write docs/reference/rule-variables.md from what rules may ask about; `--check` tells whether it is up to date."""

import sys
from collections.abc import Iterable
from pathlib import Path

from landbridge.domain.rules.check import FUNCTIONS, MACROS, MOST_STEPS
from landbridge.domain.rules.types import Many, Thing, Type
from landbridge.domain.rules.variables import VARIABLES
from landbridge.domain.rules.words import LONGEST_EXPRESSION

TARGET = Path(__file__).parents[1] / "docs" / "reference" / "rule-variables.md"
INTRODUCTION = f"""# Variables of rules

<!-- Written by tools/generate_rules.py from libs/landbridge/domain/rules; do not edit. -->

What the `expression` of a [Rule](rule.md) may ask about. It is CEL with names and types checked when the document is
applied: no nulls, maps, bytes, unsigned numbers or regular expressions; `+` reckons with numbers only; functions are
{", ".join(f"`{name}`" for name in FUNCTIONS)}; loops {", ".join(f"`{name}`" for name in MACROS)}. At most
{LONGEST_EXPRESSION} characters and {MOST_STEPS} steps, if every list is as long as it may be.

A field that may be *missing* is asked for with `has(…)` first: where it is missing, reading it is an error, and an
environment for which a rule cannot be evaluated is not eligible.
"""


def main() -> int:
    """Write or compare; return the exit code."""
    text = "".join(_page())
    if "--check" in sys.argv[1:]:
        if not TARGET.exists() or TARGET.read_text() != text:
            print("docs/reference/rule-variables.md is not what the table says; run: make schema")
            return 1
        return 0
    TARGET.write_text(text)
    return 0


def _page() -> Iterable[str]:
    yield INTRODUCTION
    waiting: list[Thing] = [found for found in VARIABLES.values() if isinstance(found, Thing)]
    while waiting:
        thing = waiting.pop(0)
        yield f"\n## {thing.name}\n\n| field | type | meaning |\n|---|---|---|\n"
        for name, member in thing.members.items():
            missing = " May be missing." if member.optional else ""
            yield f"| `{name}` | {_shown(member.type)} | {member.meaning}{missing} |\n"
            inner = member.type.of if isinstance(member.type, Many) else member.type
            if isinstance(inner, Thing):
                waiting.append(inner)


def _shown(found: Type) -> str:
    if isinstance(found, Many):
        return f"list of {_shown(found.of)}" if found.of is not None else "list"
    name = str(found)
    return f"[{name}](#{name.replace(' ', '-')})" if isinstance(found, Thing) else name


if __name__ == "__main__":
    raise SystemExit(main())
