"""`doctor` tells whether the broker has on disk what it acknowledges, as the contract-verifier has found."""

import pytest

from landbridge.cli import doctor
from support.fake_api import FakeApi

PATH = "/readyz/broker-sync"
LATE = (
    b"[!]broker-sync degraded: expected sync_interval: always in the jetstream section of every server, found "
    b"something else on b: what is acknowledged there is not on disk yet, and a loss of power loses it; "
    b"write it into the configuration and start the server anew\nreadyz check passed\n"
)


def found(api: FakeApi, *, ready: bool = True) -> list[doctor.Finding]:
    return list(doctor.broker({"ready": ready, "port": int(api.url.rpartition(":")[2])}))


def test_a_broker_that_syncs_late_is_a_warning_with_the_way_to_mend_it(api: FakeApi) -> None:
    api["GET", PATH] = (200, LATE)
    [finding] = found(api)
    assert (finding.check, finding.result) == ("broker sync", "warning")
    assert finding.found.endswith(
        "found something else on b: what is acknowledged there is not on disk yet, and a loss of power loses it"
    )
    assert finding.next_step == "write it into the configuration and start the server anew"


def test_one_that_syncs_always_is_fine(api: FakeApi) -> None:
    api["GET", PATH] = (200, b"[+]broker-sync ok\nreadyz check passed\n")
    assert [finding.result for finding in found(api)] == ["ok"]


@pytest.mark.parametrize("ready", [True, False])
def test_nothing_is_told_that_nobody_has_looked_at(api: FakeApi, *, ready: bool) -> None:
    """Without accounts nobody can ask the servers, and a service that is not ready says why itself."""
    assert found(api, ready=ready) == []
