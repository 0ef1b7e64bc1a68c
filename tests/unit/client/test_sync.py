"""The SDK without async."""

import pytest

from landbridge.client import NotFoundError, sync
from support.fake_api import fake_api

ID = "6f1c2d3e-0000-5000-8000-00000000000a"


def test_methods_wait_for_their_answer() -> None:
    with fake_api() as api, sync.connect(api.url, token="t") as client:
        api["POST", "/v1/operations"] = (201, {"operation": ID, "phase": "accepted"})
        api["GET", f"/v1/operations/{ID}"] = (200, {"operation": ID, "phase": "completed"})
        items = [{"id": "1", "event": "completed", "opSeq": 1, "data": {}}]
        api["GET", f"/v1/operations/{ID}/events"] = (200, {"items": items})
        submitted = client.submit("kind: Operation")
        assert client.wait(submitted.id, timeout_s=5).phase == "completed"
        assert [event.event for event in client.follow(ID)] == ["completed"]


def test_errors_are_raised_where_they_are_called() -> None:
    with fake_api() as api, sync.connect(api.url) as client, pytest.raises(NotFoundError):
        client.document("queue", "none")


def test_closing_twice_is_fine() -> None:
    with fake_api() as api:
        client = sync.connect(api.url)
        client.close()
        client.close()
