"""Write docs/reference/reasons.md from the table of reason codes; `--check` tells whether it is up to date."""

import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from landbridge.domain.constraints import CONSTRAINTS
from landbridge.domain.reasons import PROVING, REFUSALS, VIOLATIONS, Reason, Told
from landbridge.domain.reasons.waits import NO_PLACES, OUTLOOKS, TURNS

TARGET = Path(__file__).parents[1] / "docs" / "reference" / "reasons.md"
INTRODUCTION = """# Reason codes

<!-- Written by tools/generate_reasons.py from libs/landbridge/domain/reasons; do not edit. -->

Codes are stable: programs may rely on them. Texts are as people see them, in the command line, the API and the
dashboard alike; `<…>` varies, `[…]` may be missing. `landbridge plan FILE` tells them before, `landbridge explain ID`
after an operation was submitted.

Kinds: **never**: the environment cannot, whatever one waits for. **not now**: it may later, without anybody changing a
declaration. **misconfigured**: somebody has to correct something. An operation is *unplaceable* where no environment
has only *not now* against it.
"""
PROOF = """
### Evidence

The rules {rules} rely on evidence, and give these codes under their own names.
"""


def main() -> int:
    """Write or compare; return the exit code."""
    text = "".join(_page())
    if "--check" in sys.argv[1:]:
        if not TARGET.exists() or TARGET.read_text() != text:
            print("docs/reference/reasons.md is not what the table says; run: make schema")
            return 1
        return 0
    TARGET.write_text(text)
    return 0


def _page() -> Iterable[str]:
    yield INTRODUCTION
    yield "\n## Why an environment is not eligible\n"
    purposes = {constraint.name: _purpose(type(constraint)) for constraint in CONSTRAINTS}
    own = [reason for reason in VIOLATIONS if not reason.code.startswith("evidence-")]
    for rule, reasons in groupby(own, key=lambda reason: reason.rule):
        yield f"\n### {rule}\n\n{purposes[rule]}\n\n{_reasons(list(reasons))}"
    rules = ", ".join(f"`{rule}`" for rule in PROVING)
    yield PROOF.format(rules=rules)
    yield "\n" + _reasons([r for r in VIOLATIONS if r.rule == "evidence"])
    yield "\n## Why an operation waits\n"
    yield f"\nConditions:\n\n{_told(OUTLOOKS)}"
    yield f"\nWhere nothing is eligible, by what the nearest environment lacks:\n\n{_told(NO_PLACES)}"
    yield f"\nWhere it is not its turn:\n\n{_told(TURNS)}"
    yield "\n## Why a document is refused\n\nAll problems at once, each with path, line, message and suggestion.\n"
    for title, codes in REFUSALS:
        yield f"\n### {title}\n\n{_told(codes)}"


def _purpose(kind: type) -> str:
    """Return the first sentence of a rule's module."""
    return " ".join((sys.modules[kind.__module__].__doc__ or "").split("\n\n", maxsplit=1)[0].split())


def _reasons(reasons: Sequence[Reason]) -> str:
    rows = [
        f"| `{r.code}` | {_kind(r)} | wanted {_cell(r.wanted)}; found {_cell(r.found)} | {_cell(r.next)} |\n"
        for r in reasons
    ]
    return "| code | kind | text | what to do |\n|---|---|---|---|\n" + "".join(rows)


def _told(codes: Sequence[Told]) -> str:
    rows = [f"| `{told.code}` | {_cell(told.meaning)} | {_cell(told.next)} |\n" for told in codes]
    return "| code | text | what to do |\n|---|---|---|\n" + "".join(rows)


def _kind(reason: Reason) -> str:
    return reason.kind.value.replace("-", " ")


def _cell(text: str) -> str:
    named = text.replace("{environment}", "NAME").replace("{name}", "<name>")
    return named.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")


if __name__ == "__main__":
    raise SystemExit(main())
