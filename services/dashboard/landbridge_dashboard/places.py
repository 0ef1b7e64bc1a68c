"""What the pages of environments and the overview show: JSON of the API in, values for the templates out. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from landbridge_dashboard.text import clock, number

Json = Mapping[str, Any]
_LINKS = {"connected": "good", "reconciling": "warn", "lost": "bad", "never": ""}


def environment_card(item: Json) -> dict[str, Any]:
    """Return one environment for lists and cards."""
    link, control = item.get("link") or {}, item.get("control") or {}
    state = link.get("state") or "never"
    tone, shown = _LINKS.get(state, ""), {"never": "never connected", "lost": "control lost"}.get(state, state)
    if state == "connected" and control.get("draining"):
        tone, shown = "warn", "draining"
    elif state == "connected" and control.get("paused"):
        tone, shown = "warn", "paused"
    elif state == "connected" and control.get("holds"):
        tone, shown = "warn", "paused in part"
    evidence = item.get("evidence") or {}
    claims = sum(evidence.values())
    return {
        "name": item["environment"],
        "tone": tone,
        "state": shown,
        "where": where(item) or "location not stated",
        "executor": item.get("executor") or "no dispatcher yet",
        "running": (item.get("phases") or {}).get("running", 0),
        "proven": evidence.get("proven", 0),
        "claims": claims,
        "evidence_tone": "good" if claims and evidence.get("proven") == claims else "warn" if claims else "",
        "version": in_force(item).get("version", "—"),
        "versions": ", ".join(_version(each) for each in item.get("versions") or ()),
        "beside": ", ".join(_version(each) for each in item.get("versions") or () if each is not in_force(item)),
        "note": _note(state, link, control),
        "note_tone": "bad" if state == "lost" else "",
    }


def _note(state: str, link: Json, control: Json) -> str:
    if state == "lost":
        return f"Silent since {clock(link.get('since'))}. Running work follows its own disconnection policy."
    if control.get("draining") or control.get("paused"):
        what = "Draining" if control.get("draining") else "Paused"
        return f"{what} by {control.get('by') or 'somebody'}: {control.get('reason') or 'no reason given'}"
    return " ".join(f"{held}." for held in _held(control))


def _held(control: Json) -> list[str]:
    """Say of each part that is paused who paused it and why."""
    return [
        f"{_part(item)} paused by {item.get('by') or 'somebody'}: {item.get('reason') or 'no reason given'}"
        for item in control.get("holds") or ()
    ]


def _part(item: Json) -> str:
    name = item.get("capabilityClass")
    return f"Class {name}" if name else f"Nodes {item.get('nodeSelector')}"


def drift_rows(detail: Json) -> list[dict[str, Any]]:
    """Return where what runs is not what is recorded, of an environment or of an operation."""
    return [
        {
            "kind": item.get("kind", ""),
            "id": item.get("operation", ""),
            "short": str(item.get("operation", ""))[:8],
            "epoch": item.get("epoch", ""),
            "wanted": item.get("wanted", ""),
            "found": item.get("found", ""),
            "since": clock(item.get("since")),
        }
        for item in detail.get("drift") or ()
    ]


def lost_view(told: Json) -> dict[str, Any]:
    """Return what an environment's silence means: lines, then each operation that it concerns."""
    rows = [
        {
            "id": item["operation"],
            "name": item.get("name") or item["operation"][:8],
            "text": item["text"],
            "not_before": clock(item.get("notBefore")) if item.get("notBefore") else "",
        }
        for item in told.get("operations", ())
    ]
    return {"text": list(told.get("text", ())), "operations": rows}


def evidence_rows(detail: Json) -> list[dict[str, Any]]:
    """Return each claim's latest proof, failures first."""
    order = {"failed": 0, "unknown": 1, "proven": 2}
    rows = [
        {
            "claim": item.get("claim", ""),
            "result": item.get("result") or "unknown",
            "tone": {"proven": "good", "failed": "bad"}.get(item.get("result", ""), "warn"),
            "probe": item.get("probe", ""),
            "subject": item.get("subject", ""),
            "detail": item.get("detail", ""),
            "at": clock(item.get("at")),
            "expires": clock(item.get("expires")),
        }
        for item in detail.get("claims", ())
    ]
    return sorted(rows, key=lambda row: (order.get(row["result"], 1), row["claim"]))


def control_facts(detail: Json) -> list[tuple[str, str]]:
    """Return the state of the link and what operators did."""
    link, control = detail.get("link") or {}, detail.get("control") or {}
    found = [
        ("Link", link.get("state") or "never connected"),
        ("Since", clock(link.get("since"))),
        ("Lease term", str(link.get("term") or "")),
        ("Lease until", clock(link.get("leaseUntil"))),
        ("Incarnation", link.get("incarnation", "")),
        ("Features", ", ".join(link.get("features", ()))),
        ("Paused", "yes" if control.get("paused") else ""),
        ("Draining", "yes" if control.get("draining") else ""),
        ("Parts paused", "; ".join(_held(control))),
    ]
    return [(label, value) for label, value in found if value and value != "—"]


def in_force(item: Json) -> Json:
    """Return the newest contract version that is not a draft; the draft where there is nothing else."""
    versions = list(item.get("versions") or [{}])
    return next((each for each in reversed(versions) if each.get("phase") != "draft"), versions[-1])


def _version(item: Json) -> str:
    return f"v{item.get('version')} {item.get('phase', '')}".strip()


def contract_spec(detail: Json) -> Json:
    """Return the spec of the newest contract version that is not a draft, whatever text it came in."""
    text = in_force(detail).get("document", "")
    try:
        found = yaml.safe_load(text) if text else {}
    except yaml.YAMLError:
        return {}
    spec = found.get("spec") if isinstance(found, dict) else None
    return spec if isinstance(spec, dict) else {}


def where(item: Json) -> str:
    """Return regions and jurisdictions in one line."""
    location = item.get("location") or {}
    return ", ".join([*location.get("regions", ()), *location.get("jurisdictions", ())])


def contract_facts(detail: Json) -> list[tuple[str, str]]:
    """Return what the environment claims, in a few lines."""
    spec = contract_spec(detail)
    owner, support, cost = spec.get("owner") or {}, spec.get("support") or {}, spec.get("cost") or {}
    found = [
        ("Owner", ", ".join(filter(None, (owner.get("team"), owner.get("contact"))))),
        ("Supported until", str(support.get("until", ""))),
        ("Reason", support.get("reason", "")),
        ("Workloads", ", ".join(spec.get("workloads", ()))),
        ("Security tier", (spec.get("boundaries") or {}).get("securityTier", "")),
        ("Accepts", ", ".join((spec.get("accepts") or {}).get("projects", ()))),
    ]
    for name, claimed in sorted((spec.get("classes") or {}).items()):
        amounts = [f"{key} {value}" for key, value in claimed.items() if isinstance(value, str | int | float)]
        found.append((f"Class {name}", ", ".join(amounts)))
    for name, price in sorted((cost.get("perHour") or {}).items()):
        found.append((f"Cost {name}", f"{number(price)} {cost.get('currency', '')} an hour"))
    names = sorted(spec.get("connections") or {})
    found.append(("Connections", ", ".join(names)))
    return [(label, value) for label, value in found if value]


def queue_rows(items: Sequence[Json]) -> list[dict[str, Any]]:
    """Return one row a queue."""
    return [
        {
            "name": item["queue"],
            "waiting": item["waiting"],
            "active": item["active"],
            "priority": item["spec"].get("priority", 0),
            "concurrency": item["spec"].get("concurrency", "no limit"),
            "oldest": clock((item.get("oldestWaiting") or {}).get("since")),
        }
        for item in items
    ]
