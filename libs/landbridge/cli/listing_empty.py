"""What lists say when there is nothing to list."""

_EMPTY = {
    "operation": "no operations{filtered}; submit one with `landbridge submit FILE`",
    "environment": "no environments yet; register one with `landbridge env register FILE`",
    "refusal": "no refused submissions{filtered}",
    "alert": "no alerts: nothing is known to be wrong",
}


def empty(kind: str, filtered: bool = False) -> str:
    text = _EMPTY.get(kind, f"no {kind} documents yet; make one with `landbridge apply FILE`")
    return text.replace("{filtered}", " that fit" if filtered else " yet" if kind == "operation" else "")
