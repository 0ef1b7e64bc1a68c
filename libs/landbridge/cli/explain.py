"""The table of `explain`: one row per environment with verdict, violated rules and score, then the scores in detail."""

from collections.abc import Mapping
from typing import Any

from landbridge.cli import output
from landbridge.cli.output import Column

_ROUTES = {
    "preferred": "it ranked first",
    "overflow": "a better one was full or not eligible for now",
    "failover": "the previous environment was lost or failed",
    "drift": "the ranking changed since the previous attempt",
    "emergency-override": "a person forced it",
}
_NAMES_WIDTH, _SCORE_WIDTH = 32, 22  # columns of a terminal
_KINDS = {"never": "never", "not-now": "not now", "misconfigured": "misconfigured"}


def show(found: Mapping[str, Any], name: str) -> None:
    """Print an explanation."""
    decision, waiting = found.get("decision") or {}, found.get("waiting") or {}
    environments = found.get("environments") or []
    route = str(decision.get("route") or "")
    output.fields(
        [
            ("Operation", f"{found.get('operation')}  {name}".strip()),
            ("Phase", found.get("phase")),
            ("Chosen", _chosen(decision, found)),
            ("Route", f"{route}: {_ROUTES[route]}" if route in _ROUTES else route),
            ("Waits for", _waits(waiting)),
            (
                "Decided",
                f"{output.clock(str(decision.get('at')))}, policy {decision.get('policyVersion') or 'default'}"
                if decision
                else "",
            ),
        ]
    )
    print()
    if not environments:
        print(
            "No environment was judged yet."
            if found.get("phase") in ("accepted", "queued")
            else "Nothing is recorded about environments."
        )
        return
    columns = [
        Column("ENVIRONMENT"),
        Column("CONTRACT", right=True, wide=100),
        Column("VERDICT", styled=True),
        Column("SCORE", right=True),
        Column("WHY", fold=True),
    ]
    output.table(columns, (_row(item) for item in environments))
    _scores(environments)
    _nearest(found.get("nearestMiss"))


def _chosen(decision: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    environment = str(decision.get("environment") or "")
    number = int(found.get("round") or 0)
    return f"{environment} (round {number})" if environment and number > 1 else environment


def _waits(waiting: Mapping[str, Any]) -> str:
    if not waiting:
        return ""
    reason = str(waiting.get("condition") or waiting.get("reason") or "")
    return ": ".join(part for part in (reason, str(waiting.get("message") or "")) if part)


def _row(item: Mapping[str, Any]) -> list[Any]:
    violations = item.get("violations") or []
    score = item.get("score")
    return [
        f"{item.get('environment')}{' *' if item.get('chosen') else ''}",
        item.get("contractVersion") or "",
        verdict(item),
        "" if score is None else f"{score:.3f}",
        "\n".join(map(violated, violations)),
    ]


def verdict(item: Mapping[str, Any]) -> str:
    """Return one word: eligible, or the worst kind of what is violated."""
    if item.get("eligible"):
        return "eligible"
    kinds = {str(each.get("kind")) for each in item.get("violations") or ()}
    return next((_KINDS[kind] for kind in ("never", "misconfigured", "not-now") if kind in kinds), "not eligible")


def violated(violation: Mapping[str, Any]) -> str:
    """Return one line: the rule, what it wants, what was found, of which kind."""
    rule = str(violation.get("constraint") or violation.get("reason") or "rule")
    reason = str(violation.get("reason") or "")
    wanted, found = violation.get("wanted"), violation.get("found")
    told = ", ".join(part for part in (f"wanted {wanted}" if wanted else "", f"found {found}" if found else "") if part)
    kind = _KINDS.get(str(violation.get("kind")), "")
    head = rule if reason in ("", rule) or told else f"{rule}: {reason}"
    return f"{head}{f': {told}' if told else ''}{f' ({kind})' if kind else ''}"


def _scores(environments: Any) -> None:
    every = [item for item in environments if item.get("measurements")]
    if not every:
        return
    # Programs get all; people as many as fit beside each other, best first.
    room = max(1, (output.width() - _NAMES_WIDTH) // _SCORE_WIDTH) if output.terminal() else len(every)
    ranked = every[:room]
    print()
    columns = [
        Column("PREFERENCE"),
        Column("WEIGHT", right=True),
        *(Column(str(item["environment"]), right=True) for item in ranked),
        Column("SOURCE", fold=True, wide=100),
    ]
    output.table(columns, (_score_row(name, ranked) for name in _preferences(ranked)))
    if len(every) > len(ranked):
        print(f"… and {len(every) - len(ranked)} more; -o json has all")


def _preferences(ranked: list[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(each["preference"]) for item in ranked for each in item["measurements"]))


def _score_row(name: str, ranked: list[Mapping[str, Any]]) -> list[Any]:
    cells, weight, source = [], 0.0, ""
    for item in ranked:
        each = next((each for each in item["measurements"] if each["preference"] == name), None)
        cells.append(_measured(each) if each else "")
        if each:
            weight, source = float(each.get("weight") or 0), str(each.get("source") or source)
    return [name, f"{weight:g}", *cells, source]


def _measured(each: Mapping[str, Any]) -> str:
    if each.get("unknown") or each.get("value") is None:
        return f"unknown → {float(each.get('normalised') or 0):.2f}"
    return f"{float(each['value']):.4g} {each.get('unit') or ''} → {float(each.get('normalised') or 0):.2f}".replace(
        "  ", " "
    )


def _nearest(miss: Mapping[str, Any] | None) -> None:
    if not miss:
        return
    hopes = {
        "never": "its contract would have to change",
        "not-now": "it may fit later without anybody changing anything",
        "misconfigured": "somebody has to repair or configure something there",
    }
    print(f"\nNearest: {miss.get('environment')}; {hopes.get(str(miss.get('hope')), '')}".rstrip("; "))
