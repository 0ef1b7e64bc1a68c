"""What the pages of operations show: JSON of the API in, values for the templates out. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from landbridge_dashboard.text import TONES, clock, duration, number, seconds_between, size

Json = Mapping[str, Any]
_KIND_TONES = {"never": "bad", "not-now": "warn", "misconfigured": "bad"}
_TITLES = {
    "assessed": "Eligibility assessed",
    "decided": "Placement decided",
    "requeued": "Assessed again",
    "freed": "Capacity freed",
    "observed": "Late or refused report",
    "condition": "Condition",
    "waiting": "Waits",
}


def operation_row(item: Json) -> dict[str, Any]:
    """Return one row of a list of operations."""
    conditions = [held["type"] for held in item.get("conditions", ())]
    waiting = item.get("waiting") or {}
    return {
        "id": item["operation"],
        "name": item.get("name", ""),
        "phase": item["phase"],
        "tone": TONES.get(item["phase"], ""),
        "condition": ", ".join(conditions) or waiting.get("condition", ""),
        "environment": item.get("environment", ""),
        "project": item["project"],
        "queue": item.get("queue", ""),
        "attempt": item.get("attempt") or 0,
        "changed": item.get("changedAt") or "",
        "changed_text": clock(item.get("changedAt")),
    }


def operation_head(item: Json) -> dict[str, Any]:
    """Return the head of an operation's page, with what a person should know first."""
    row = operation_row(item)
    waiting = item.get("waiting") or {}
    text = item.get("message") or waiting.get("message", "")
    tone = "bad" if item["phase"] == "failed" else "warn"
    shown = item["phase"] in ("failed", "retrying", "queued", "accepted", "cancelled") or bool(item.get("conditions"))
    for held in item.get("conditions", ()):
        text = held.get("message") or text
    reason = item.get("reason") or waiting.get("reason", "")
    notice = ": ".join(part for part in (reason, text) if part)
    return {**row, "notice": notice if shown else "", "notice_tone": tone}


def facts(item: Json) -> list[tuple[str, str]]:
    """Return what really ran: the resolved context of the last attempt, and totals."""
    attempts: Sequence[Json] = item.get("attempts", ())
    last: Json = attempts[-1] if attempts else {}
    resolved: Json = last.get("resolved") or {}
    found = [
        ("Environment", item.get("environment", "")),
        ("Attempts", str(len(attempts)) if attempts else ""),
        ("Accepted", clock(item.get("acceptedAt"))),
        ("Ran for", duration(seconds_between(last.get("startedAt"), last.get("finishedAt"))) if last else ""),
        ("Exit code", str(last["exitCode"]) if last.get("exitCode") is not None else ""),
        ("Signal", str(last["signal"]) if last.get("signal") else ""),
        ("Executor", resolved.get("executor", "")),
        ("Workload", resolved.get("workload", "")),
        ("Host", resolved.get("host", "")),
        ("Hardware", " ".join(filter(None, (resolved.get("hardware", ""), resolved.get("architecture", ""))))),
        ("Principal", resolved.get("principal", "")),
        ("Image", resolved.get("imageDigest", "")),
        ("Endpoint", resolved.get("endpoint", "")),
        ("Contract", f"version {resolved['contractVersion']}" if resolved.get("contractVersion") else ""),
        ("Cost", _cost(resolved)),
        ("Submitted by", item.get("submittedBy", "")),
        ("Retry of", item.get("retryOf", "")),
        ("Specification", f"sha256 {item['specSha256'][:16]}…" if item.get("specSha256") else ""),
    ]
    found += [(f"Connection {name}", place) for name, place in sorted((resolved.get("connections") or {}).items())]
    found += [(f"Metric {name}", number(value)) for name, value in sorted((last.get("metrics") or {}).items())]
    for result in last.get("acceptance") or ():
        met = "met" if result.get("met") else "not met"
        found.append((f"Accept {result.get('criterion', '')}", f"{met}; found {result.get('found', '')}"))
    return [(label, value) for label, value in found if value and value != "—"]


def _cost(resolved: Json) -> str:
    if resolved.get("costPerHour") is None:
        return ""
    return f"{number(float(resolved['costPerHour']))} {resolved.get('currency', '')} an hour"


def outputs(item: Json) -> list[tuple[str, str]]:
    """Return the outputs of the last attempt."""
    attempts: Sequence[Json] = item.get("attempts", ())
    found: Mapping[str, Json] = (attempts[-1].get("outputs") or {}) if attempts else {}
    return [
        (name, f"{ref.get('connection', '')}: {ref.get('path', '')} ({size(ref.get('bytes', 0))})")
        for name, ref in sorted(found.items())
    ]


def placement(explanation: Json) -> dict[str, Any]:
    """Return every environment's verdict and score: as decided, and while it waits as it stands now."""
    decision, waiting = explanation.get("decision"), explanation.get("waiting")
    now: Json = explanation.get("now") or {}
    if decision and not waiting:
        summary = f"Round {explanation['round']}: {decision['environment']} chosen, route {decision['route']}."
        summary += overridden(decision.get("override"))
    elif waiting:
        summary = f"Waits: {_waits(now) or waiting.get('message') or waiting.get('reason', '')}".rstrip(".") + "."
    else:
        summary = "No environment was chosen yet."
    miss = (now.get("nearestMiss") if waiting else None) or explanation.get("nearestMiss")
    if miss:
        broken = len(miss["violations"])
        rules = "1 rule" if broken == 1 else f"{broken} rules"
        summary += f" Nearest miss: {miss['environment']} ({rules} broken, {miss['hope']})."
    shown = (now.get("environments") if waiting else None) or explanation.get("environments", ())
    return {
        "summary": summary,
        "turn": _turn(now) if waiting or not decision else [],
        "changes": [each["text"] for each in (miss or {}).get("changes") or ()],
        "environments": [_verdict(each) for each in shown],
    }


def overridden(told: Json | None) -> str:
    """Say who placed an operation by emergency override, why, and what was overridden; empty for other routes."""
    if not told:
        return ""
    broken = told.get("overridden") or ()
    parts = [f"{v.get('constraint')} (wanted {v.get('wanted')}, found {v.get('found')})" for v in broken]
    if told.get("waited"):
        parts.append(f"its turn in the queue ({told['waited']})")
    what = "; ".join(parts) or "nothing"
    return f" Emergency override by {told.get('by')} because {told.get('reason')}; overridden: {what}."


def _waits(now: Json) -> str:
    waits = now.get("waits") or {}
    return ": ".join(part for part in (waits.get("reason"), waits.get("message")) if part)


def _turn(now: Json) -> list[str]:
    """Return the place in the queue and the forecast, in sentences."""
    place, text = now.get("place") or {}, str((now.get("forecast") or {}).get("text") or "")
    queued = bool(place and now.get("waits"))
    found = [f"Place {place['place']} of {place['length']} in queue {now.get('queue', '')}."] if queued else []
    return [*found, f"{text[:1].upper()}{text[1:]}."] if text else found


def _verdict(item: Json) -> dict[str, Any]:
    chosen, eligible = item["chosen"], item["eligible"]
    score = item.get("score")
    return {
        "name": item["environment"],
        "chosen": chosen,
        "tone": "good" if eligible else "bad",
        "verdict": ("likely" if "change" in item else "chosen")
        if chosen
        else "eligible"
        if eligible
        else "not eligible",
        "contract_version": item.get("contractVersion", "—"),
        "score": f"{score:.3f}" if score is not None else None,
        "share": round((score or 0) * 100),
        "violations": [{**each, "tone": _KIND_TONES.get(each["kind"], "")} for each in item.get("violations", ())],
        "change": (item.get("change") or {}).get("text", ""),
        "classes": _classes(item),
        "measurements": [_measurement(each) for each in item.get("measurements", ())],
    }


def _classes(item: Json) -> str:
    """Return which accelerator class serves it there, and which others could, with their scores."""
    several = item.get("alternatives") or ()
    if not several:
        return f"Accelerators of class {item['servedBy']}." if item.get("servedBy") else ""
    told = [f"{each['class']}{' (chosen)' if each['chosen'] else ''} {each['score']:.3f}" for each in several]
    return f"Accelerators of one of several classes, by score: {', '.join(told)}."


def _measurement(item: Json) -> dict[str, str]:
    unknown = item.get("unknown") or item.get("value") is None
    return {
        "preference": item["preference"],
        "value": "unknown" if unknown else f"{number(item['value'])} {item.get('unit', '')}".strip(),
        "source": item.get("source", ""),
        "normalised": f"{item.get('normalised', 0):.2f}",
        "weight": number(item.get("weight", 0)),
    }


def timeline(events: Sequence[Json]) -> list[dict[str, Any]]:
    """Return the events of an operation, as people read them."""
    return [_event(each) for each in events]


def _event(item: Json) -> dict[str, Any]:
    name, data = item["event"], item.get("data") or {}
    told = data.get("condition")
    condition: Json = told if isinstance(told, Mapping) else {}
    reason, message = data.get("reason"), data.get("message")
    parts = [
        f"in {data['environment']}" if data.get("environment") else "",
        f"attempt {data['attempt']}" if data.get("attempt") else "",
        reason if isinstance(reason, str) and reason != name else "",
        message if isinstance(message, str) and message != name else "",
    ]
    if condition and condition.get("message") != message:
        parts.append(str(condition.get("message", "")))
    title = _TITLES.get(name, name.capitalize())
    if condition:
        title = f"{condition.get('type', 'Condition')} {'ends' if str(condition.get('status')) == 'false' else 'holds'}"
    elif isinstance(told, str) and told:
        title = f"{title}: {told}"
    return {
        "title": title[:1].upper() + title[1:],
        "tone": TONES.get(name, ""),
        "at": item["at"],
        "at_text": clock(item["at"]),
        "text": " · ".join(part for part in parts if part),
    }


def gantt(item: Json) -> dict[str, Any] | None:
    """Return bars of waiting and running per attempt on a scale of 1000, or None before anything started."""
    placements = [each for each in item.get("placements", ()) if each.get("offeredAt") or each.get("startedAt")]
    begin = item.get("acceptedAt")
    last = item.get("endedAt") or item.get("changedAt")
    total = seconds_between(begin, last)
    if not placements or not total or total <= 0:
        return None
    left, width = 96, 900

    def bar(start: str | None, end: str | None, tone: str, title: str) -> dict[str, Any] | None:
        offset, length = seconds_between(begin, start), seconds_between(start, end)
        if offset is None or length is None:
            return None
        x = left + width * max(0.0, min(offset / total, 1.0))
        span = max(width * length / total, 3.0)
        return {"x": round(x, 1), "width": round(min(span, left + width - x + 3), 1), "tone": tone, "title": title}

    rows = []
    before = begin
    for index, each in enumerate(placements[-8:]):
        started, finished = each.get("startedAt"), each.get("finishedAt") or last
        tone = {"completed": "good", "failed": "bad"}.get(str(each.get("outcome", "")), "run")
        bars = [bar(before, started or finished, "line", f"waiting {duration(seconds_between(before, started))}")]
        if started:
            title = f"{each.get('environment', '')} {duration(seconds_between(started, finished))}"
            bars.append(bar(started, finished, tone, title))
        rows.append(
            {"y": index * 28 + 4, "label": f"attempt {each.get('attempt') or '—'}", "bars": [b for b in bars if b]}
        )
        before = finished
    return {"rows": rows, "height": len(rows) * 28 + 4, "total": duration(total)}
