"""The tables of `explain` and `plan`: each environment with verdict, violated rules, score; then scores in detail."""

from collections.abc import Mapping, Sequence
from typing import Any

from landbridge.cli import output
from landbridge.cli.output import Column

_ROUTES = {
    "preferred": "no environment ranked higher",
    "overflow": "a better environment was full or not eligible for now",
    "failover": "the previous environment was lost or failed",
    "drift": "the ranking changed since the previous attempt",
    "emergency-override": "a person forced it",
}
_SOURCES_FROM, _SOURCES_WIDTH, _GAP = 100, 24, 2  # columns of a terminal
_NOWHERE = {
    "unplaceable": "no environment can run it as things stand",
    "not-now": "what is in the way may pass by itself",
}
_KINDS = {"never": "never", "not-now": "not now", "misconfigured": "misconfigured"}


def show(found: Mapping[str, Any], name: str) -> None:
    """Print an explanation: what was decided, and how it stands now."""
    decision, now = found.get("decision") or {}, found.get("now") or {}
    route = str(decision.get("route") or "")
    held_back = (found.get("waiting") or {}).get("by") == "dispatch"
    waits = not held_back and (bool(found.get("waiting")) or found.get("phase") in ("accepted", "queued", "retrying"))
    output.fields(
        [
            ("Operation", f"{found.get('operation')}  {name}".strip()),
            ("Phase", found.get("phase")),
            ("Chosen", _chosen(decision, found)),
            ("Route", f"{route}: {_ROUTES[route]}" if route in _ROUTES else route),
            *_override(decision.get("override") or {}),
            ("Waits for", _waits(found.get("waiting") or {}, now if waits else {}) if waits or held_back else ""),
            *(_turn(now) if waits else ()),
            (
                "Decided",
                f"{output.clock(str(decision.get('at')))}, policy {decision.get('policyVersion') or 'default'}"
                if decision
                else "",
            ),
            ("Now", found.get("nowMissing") if waits and not now else ""),
        ]
    )
    print()
    environments = (now.get("environments") if waits else None) or found.get("environments") or []
    if not environments:
        print(
            "No environment was judged yet."
            if found.get("phase") in ("accepted", "queued")
            else "Nothing is recorded about environments."
        )
        return
    _table(environments)
    _scores(environments)
    if not waits:
        _differs(environments, now.get("environments") or ())
    _nearest(now.get("nearestMiss") or found.get("nearestMiss"))


def _override(told: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Say who forced it, why, and what each overridden rule wanted and found."""
    if not told:
        return []
    broken = [
        f"{v.get('constraint')}: wanted {v.get('wanted')}, found {v.get('found')}" for v in told.get("overridden") or ()
    ]
    turn = [f"its turn in the queue: {told['waited']}"] if told.get("waited") else []
    return [("Forced by", f"{told.get('by')}: {told.get('reason')}"), *[("Overridden", line) for line in broken + turn]]


def show_plan(plan: Mapping[str, Any]) -> None:
    """Print where an operation would run and why not elsewhere."""
    environments = plan.get("environments") or []
    output.fields(
        [
            ("Operation", f"{plan.get('name')}  project {plan.get('project')}, queue {plan.get('queue')}"),
            ("Goes to", _goes(plan)),
            ("Waits for", _waits({}, plan)),
            *_turn(plan),
        ]
    )
    print()
    if not environments:
        print("No environment is registered; register one: landbridge env register FILE")
        return
    _table(environments)
    _scores(environments)
    _nearest(plan.get("nearestMiss"))


def show_plans(plans: Sequence[Mapping[str, Any]]) -> None:
    """Print of each of several operations in one line where it would run, and when."""
    columns = [
        Column("OPERATION"),
        Column("GOES TO"),
        Column("WAITS FOR", styled=True),
        Column("WHEN", fold=True),
    ]
    output.table(columns, map(_plan_row, plans))


def _plan_row(plan: Mapping[str, Any]) -> list[Any]:
    if plan.get("problems"):
        return [plan.get("name"), "-", "", "it would be refused, see below"]
    likely, turn = plan.get("likely") or {}, plan.get("waits") or {}
    where = f"{likely['environment']}{_by_class(likely)}" if likely else "nowhere"
    when = str((plan.get("forecast") or {}).get("text") or "").partition("; ")[0]
    return [plan.get("name"), where, turn.get("reason") or ("" if likely else plan.get("condition")), when]


def show_refused(refusal: Mapping[str, Any]) -> None:
    """Print why a submission was not accepted: everything that was wrong, with what to do."""
    at = str(refusal.get("at") or "")
    output.fields(
        [
            ("Submission", f"{refusal.get('submission')}  from {refusal.get('source')}"),
            ("Project", refusal.get("project")),
            ("Refused", f"{output.clock(at)} ({output.age(at)} ago); correct it and submit it again"),
            ("Conflicts", f"with operation {refusal['conflictsWith']}" if refusal.get("conflictsWith") else ""),
        ]
    )
    print()
    columns = [Column("CODE"), Column("PLACE"), Column("WHAT", fold=True), Column("NEXT", fold=True)]
    output.table(columns, map(_problem_row, refusal.get("problems") or ()))


def _problem_row(problem: Mapping[str, Any]) -> list[Any]:
    line = f"line {problem['line']}" if problem.get("line") else ""
    place = " ".join(part for part in (str(problem.get("path") or ""), line) if part)
    return [problem.get("code"), place, problem.get("message"), problem.get("suggestion")]


def _goes(plan: Mapping[str, Any]) -> str:
    likely, environments = plan.get("likely") or {}, plan.get("environments") or []
    if not plan.get("eligible"):
        condition = str(plan.get("condition"))
        return f"nowhere{' now' if condition == 'not-now' else ''}: {_NOWHERE.get(condition, condition)}"
    eligible = sum(bool(item.get("eligible")) for item in environments)
    where = f"{likely.get('environment')}{_by_class(likely)}"
    told = f"{where}, " + (f"best of {eligible} that can run it" if eligible > 1 else "the only one that can run it")
    full = ", ".join(map(_place, likely.get("full") or ()))
    if likely.get("route") == "overflow":
        told = f"{where}, because {full or 'a better one'} has no room"
    elif full:
        told += f"; {full} has no room"
    equals = likely.get("equals") or ()
    return f"{told}; {', '.join(equals)} would do as well, chance decides" if equals else told


def _place(name: str) -> str:
    """Write out the name of a place: an environment, where several classes of it could serve with one of them."""
    environment, _, served_by = name.partition("/")
    return f"{environment}{_by_class({'servedBy': served_by})}"


def _by_class(item: Mapping[str, Any]) -> str:
    return f" (class {item['servedBy']})" if item.get("servedBy") else ""


def _turn(now: Mapping[str, Any]) -> list[tuple[str, Any]]:
    place, forecast = now.get("place") or {}, now.get("forecast") or {}
    queued = f"{place.get('place')} of {place.get('length')} in queue {now.get('queue')}" if now.get("waits") else ""
    return [
        ("Place", queued),
        ("When", forecast.get("text")),
    ]


def _table(environments: Any) -> None:
    columns = [
        Column("ENVIRONMENT"),
        Column("CONTRACT", right=True, wide=100),
        Column("VERDICT", styled=True),
        Column("SCORE", right=True),
        Column("WHY", fold=True),
    ]
    output.table(columns, (_row(item) for item in environments))


def _differs(recorded: Any, now: Any) -> None:
    """Tell which verdicts would be others today: work that was placed keeps its place, the next round may differ."""
    before = {str(item.get("environment")): verdict(item) for item in recorded}
    changed = [item for item in now if verdict(item) != before.get(str(item.get("environment")), "not known then")]
    if changed:
        print("\nJudged again now:")
    for item in changed:
        was = before.get(str(item.get("environment")), "not known then")
        why = "; ".join(map(violated, item.get("violations") or ()))
        print(f"  {item.get('environment')}: {verdict(item)}, was {was}{f' ({why})' if why else ''}")


def _chosen(decision: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    environment = str(decision.get("environment") or "")
    number, served_by = int(found.get("round") or 0), decision.get("servedBy")
    told = [*([f"class {served_by}"] if served_by else []), *([f"round {number}"] if number > 1 else [])]
    return f"{environment} ({', '.join(told)})" if environment and told else environment


def _waits(waiting: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return what it waits for: its turn as it is now, else what it was told last."""
    turn = now.get("waits") or {}
    if turn:
        return f"{turn.get('reason')}: {turn.get('message')}"
    if not waiting or now.get("eligible"):
        return ""
    if now:
        condition = str(now.get("condition"))
        return f"{condition}: {_NOWHERE.get(condition, '')}"
    reason = str(waiting.get("condition") or waiting.get("reason") or "")
    return ": ".join(part for part in (reason, str(waiting.get("message") or "")) if part)


def _row(item: Mapping[str, Any]) -> list[Any]:
    score = item.get("score")
    why = [*_broken(item.get("violations") or ()), *_mending(item), *_alternatives(item)]
    return [
        f"{item.get('environment')}{' *' if item.get('chosen') else ''}",
        item.get("contractVersion") or "",
        verdict(item),
        "" if score is None else f"{score:.3f}",
        "\n".join(why),
    ]


def _broken(violations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line about each rule that is broken, so that one ends where the next begins also where lines fold."""
    return [f"{'- ' if len(violations) > 1 else ''}{violated(each)}" for each in violations]


def _alternatives(item: Mapping[str, Any]) -> list[str]:
    """Return a line about the accelerator classes that can serve there, where there are several."""
    found = item.get("alternatives") or ()
    told = [f"{each.get('class')}{' *' if each.get('chosen') else ''} {each.get('score'):.3f}" for each in found]
    return [f"by class {', '.join(told)}"] if told else []


def _mending(item: Mapping[str, Any]) -> list[str]:
    """Return a line about the one change after which it would fit; what takes several is told of the nearest only."""
    change = item.get("change") or {}
    return [f"-> would fit: {change['text']}"] if change.get("text") else []


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
    ranked = every[: _fitting(every)] if output.terminal() else every
    print()
    columns = [
        Column("PREFERENCE"),
        Column("WEIGHT", right=True),
        *(Column(str(item["environment"]), right=True) for item in ranked),
        Column("SOURCE", fold=True, wide=_SOURCES_FROM),
    ]
    output.table(columns, (_score_row(name, ranked) for name in _preferences(ranked)))
    if len(every) > len(ranked):
        print(f"… and {len(every) - len(ranked)} more; -o json has all")


def _fitting(every: list[Mapping[str, Any]]) -> int:
    """Return how many environments fit beside each other on the terminal with all of their scores, best first."""
    names, room = _preferences(every), output.width()
    room -= max(map(len, ("PREFERENCE", *names))) + len("WEIGHT") + 2 * _GAP
    room -= _SOURCES_WIDTH + _GAP if output.width() >= _SOURCES_FROM else 0
    for number, item in enumerate(every):
        room -= max(map(len, (str(item["environment"]), *map(_measured, item["measurements"])))) + _GAP
        if room + _GAP < 0:
            return max(number, 1)
    return len(every)


def _preferences(ranked: list[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(each["preference"]) for item in ranked for each in item["measurements"]))


def _score_row(name: str, ranked: list[Mapping[str, Any]]) -> list[Any]:
    cells, weight, sources = [], 0.0, dict[str, str]()
    for item in ranked:
        each = next((each for each in item["measurements"] if each["preference"] == name), None)
        cells.append(_measured(each) if each else "")
        if each:
            weight, sources[str(item["environment"])] = float(each.get("weight") or 0), str(each.get("source") or "")
    return [name, f"{weight:g}", *cells, _sources(sources)]


def _sources(sources: Mapping[str, str]) -> str:
    """Return where measurements come from: once if it is the same everywhere, else by environment."""
    if len(set(sources.values())) <= 1:
        return next(iter(sources.values()), "")
    return ";\n".join(f"{environment}: {source}" for environment, source in sources.items())


def _measured(each: Mapping[str, Any]) -> str:
    if each.get("unknown") or each.get("value") is None:
        return f"unknown → {float(each.get('normalised') or 0):.2f}"
    value, unit = float(each["value"]), str(each.get("unit") or "")
    if unit == "share of attempts":
        value, unit = value * 100, "% of attempts"
    told = f"{value:.6f}".rstrip("0") if 0 < abs(value) < 0.001 else f"{value:.4g}"
    return f"{told} {unit} → {float(each.get('normalised') or 0):.2f}".replace("  ", " ")


def _nearest(miss: Mapping[str, Any] | None) -> None:
    if not miss:
        return
    hopes = {
        "never": "its contract would have to change",
        "not-now": "it may fit later without anybody changing anything",
        "misconfigured": "somebody has to repair or configure something there",
    }
    changes = [str(each["text"]) for each in miss.get("changes") or () if each]
    told = hopes.get(str(miss.get("hope")), "")
    if len(changes) == 1:
        told = f"would fit after one change: {changes[0]}"
    elif changes:
        told = f"would fit after {len(changes)} changes: {', and '.join(changes)}"
    line = f"Nearest: {miss.get('environment')}; {told}".rstrip("; ")
    print("", *(output.wrap(line, output.width()) if output.terminal() else [line]), sep="\n")
