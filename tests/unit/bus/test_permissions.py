"""The table of permissions itself: rules that any change of it has to keep."""

from collections import defaultdict

import pytest

from landbridge.bus import permissions, streams, subjects
from landbridge.bus.permissions import SERVICES, Permissions


def writers() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for service, grant in SERVICES.items():
        for subject in grant.writes:
            found[subject].append(service)
    return found


def every_user() -> dict[str, Permissions]:
    return {service: permissions.service_permissions(service) for service in SERVICES if service != "streams"}


def test_every_fact_has_one_writer() -> None:
    several = {subject: names for subject, names in writers().items() if len(names) > 1}
    assert set(several) <= {subjects.operation("waiting", "*")}, several


def test_only_the_coordinator_writes_the_lifecycle_and_orders_work() -> None:
    by_subject = writers()
    for event in ("pending", "running", "completed", "failed", "cancelled", "retrying", "freed", "requeued"):
        assert by_subject[subjects.operation(event, "*")] == ["coordinator"]
    for kind in ("offer", "withdraw", "stop", "settle"):
        assert by_subject[subjects.command("*", kind)] == ["coordinator"]


def test_no_service_speaks_for_applications_or_environments() -> None:
    for service, user in every_user().items():
        for family in ("submit", "report", "lease", "claim", "answer"):
            assert not any(subject.startswith(f"lb.v1.{family}.") for subject in user.publish), service


def test_questions_within_the_centre_are_answered_by_the_service_they_name_and_asked_by_services_only() -> None:
    asked = {subject: name for name, grant in SERVICES.items() for subject in grant.asks if ".ask." in subject}
    answered = {subject: name for name, grant in SERVICES.items() for subject in grant.answers if ".ask." in subject}
    assert set(asked) == set(answered)
    assert all(subjects.token(subject, 3) == name for subject, name in answered.items())
    outside = [*permissions.environment_imports("HUBKEY", "onprem-a"), *permissions.project_imports("HUBKEY", "retail")]
    assert not any(".ask." in item["subject"] for item in (*outside, *permissions.hub_exports()))


def test_nobody_is_granted_a_whole_family_or_the_api() -> None:
    for service, user in every_user().items():
        for subject in user.publish:
            assert subject not in {">", "lb.v1.>", "$JS.>", "$JS.API.>", "$SYS.>"}, service
            assert not subject.startswith("$SYS"), service
            assert ".API.STREAM." not in subject or ".API.STREAM.INFO." in subject, (service, subject)


def test_only_the_verifier_makes_consumers_and_only_for_one_environment_each() -> None:
    for service, user in every_user().items():
        made = [subject for subject in user.publish if ".CONSUMER.CREATE." in subject or ".DURABLE." in subject]
        expected = ["$JS.API.CONSUMER.CREATE.COMMANDS.*.lb.v1.command.*.>"] if service == "contract-verifier" else []
        assert made == expected, service


def test_every_durable_belongs_to_a_service_that_may_read_it() -> None:
    users = every_user()
    for durable in streams.DURABLES:
        user = users[durable.name]
        assert f"$JS.API.CONSUMER.MSG.NEXT.{durable.stream}.{durable.name}" in user.publish
        assert f"$JS.ACK.{durable.stream}.{durable.name}.>" in user.publish


@pytest.mark.parametrize("leaf", [False, True])
def test_an_environment_imports_only_what_names_it(leaf: bool) -> None:
    for item in permissions.environment_imports("HUBKEY", "onprem-a", leaf=leaf):
        assert item["account"] == "HUBKEY"
        tokens = set(item["subject"].split("."))
        assert tokens & {"onprem-a", "env-onprem-a", "leaf-onprem-a"}, item
        assert "*" not in tokens, item
        assert "CREATE" not in tokens, item


def test_the_nats_of_a_site_says_and_hears_no_more_than_its_dispatcher() -> None:
    """But for the broker's own words about the one consumer from which it sources."""
    dispatcher = permissions.environment_permissions("onprem-a", "dispatcher")
    leaf = permissions.leaf_permissions("onprem-a")
    more = set(leaf.publish) - set(dispatcher.publish)
    assert more == {
        "$JS.FC.COMMANDS.leaf-onprem-a.>",
        "lb.v1.js.onprem-a.CONSUMER.RESET.COMMANDS.leaf-onprem-a",
    }
    assert set(leaf.subscribe) - set(dispatcher.subscribe) == {"lb.v1.leaf.onprem-a.>", "$JSC.R.>"}
    imported = {item["subject"] for item in permissions.environment_imports("HUBKEY", "onprem-a", leaf=True)}
    assert not any("MSG.NEXT" in subject or "$JS.ACK" in subject for subject in imported)


def test_a_project_imports_only_what_names_it() -> None:
    for item in permissions.project_imports("HUBKEY", "retail"):
        assert item["subject"].split(".")[-1] == "retail"
    assert permissions.application_permissions("retail", "shop", submits=False).publish == ()


def test_what_accounts_import_is_exported() -> None:
    """An import of what is not exported is taken without a word and never works."""
    exports = [item["subject"] for item in permissions.hub_exports()]

    def exported(subject: str) -> bool:
        return any(_within(subject.split("."), pattern.split(".")) for pattern in exports)

    imports = [
        *permissions.environment_imports("HUBKEY", "onprem-a", leaf=True),
        *permissions.project_imports("HUBKEY", "retail"),
    ]
    assert [item["subject"] for item in imports if not exported(item["subject"])] == []


def _within(subject: list[str], pattern: list[str]) -> bool:
    for i, part in enumerate(pattern):
        if part == ">":
            return len(subject) > i
        if i >= len(subject) or part not in ("*", subject[i]):
            return False
    return len(subject) == len(pattern)


def test_streams_do_not_overlap_and_cover_every_written_subject() -> None:
    families = [subjects.family(subject) for spec in streams.STREAMS for subject in spec.subjects]
    assert len(set(families)) == len(families)
    for subject in writers():
        assert streams.stream_of(subject.replace("*", "x"))
    assert sum(spec.share for spec in streams.STREAMS) == pytest.approx(1.0)
