"""What counts as an environment in service."""

import json

from landbridge_embedded.readiness import in_service


def test_an_environment_is_in_service_once_connected_and_proven() -> None:
    def item(name: str, state: str, proven: int) -> dict[str, object]:
        return {"environment": name, "link": {"state": state}, "evidence": {"proven": proven}}

    rows = [item("a", "connected", 3), item("b", "connected", 0), item("c", "lost", 3)]
    assert in_service(json.dumps({"items": [*rows, {"environment": "d", "link": None}]})) == {"a"}


def test_an_answer_that_is_no_list_counts_for_nothing() -> None:
    assert in_service("<html>") == set()
    assert in_service("[]") == set()
