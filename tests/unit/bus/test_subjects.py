import pytest

from landbridge.bus import subjects


def test_each_family_has_its_subject() -> None:
    assert subjects.submit("retail") == "lb.v1.submit.retail"
    assert subjects.operation("accepted", "retail") == "lb.v1.operation.accepted.retail"
    assert subjects.intent("contract") == "lb.v1.intent.contract._"
    assert subjects.environment("link", "onprem-a") == "lb.v1.environment.link.onprem-a"
    assert subjects.command("onprem-a", "offer") == "lb.v1.command.onprem-a.offer"
    assert subjects.report("onprem-a", "attempts") == "lb.v1.report.onprem-a.attempts"
    assert subjects.lease("onprem-a") == "lb.v1.lease.onprem-a"
    assert subjects.claim("onprem-a") == "lb.v1.claim.onprem-a"
    assert subjects.query("onprem-a", "logs") == "lb.v1.query.onprem-a.logs"
    assert subjects.answer("onprem-a", "abc") == "lb.v1.answer.onprem-a.abc"
    assert subjects.catalogue("queue", "batch") == "lb.v1.catalogue.queue.batch"
    assert subjects.alert("aged-queue") == "lb.v1.alert.aged-queue"
    assert subjects.deadletter("ranking") == "lb.v1.deadletter.ranking"
    assert subjects.every("report", "onprem-a") == "lb.v1.report.onprem-a.>"


@pytest.mark.parametrize("bad", ["", "a.b", "a b", ">", "a>", "**", "a\r\nPUB x", "é", "~a", "a" * 300, ".", "a*"])
def test_a_name_that_could_change_the_subject_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="cannot be part of a subject"):
        subjects.report(bad, "attempts")


def test_project_and_environment_come_from_the_subject() -> None:
    assert subjects.project_of("lb.v1.submit.retail") == "retail"
    assert subjects.project_of("lb.v1.operation.accepted.retail") == "retail"
    assert subjects.project_of("lb.v1.intent.contract._") == "_"
    assert subjects.project_of("lb.v1.report.onprem-a.attempts") == ""
    assert subjects.environment_of("lb.v1.report.onprem-a.attempts") == "onprem-a"
    assert subjects.environment_of("lb.v1.environment.link.onprem-a") == "onprem-a"
    assert subjects.environment_of("lb.v1.lease.onprem-a") == "onprem-a"
    assert subjects.environment_of("lb.v1.submit.retail") == ""
    assert subjects.token("lb.v1.report.x.attempts", 4) == "attempts"
    assert subjects.token("lb.v1", 7) == ""


@pytest.mark.parametrize(
    ("subject", "template"),
    [
        ("lb.v1.submit.retail", "lb.v1.submit.{project}"),
        ("lb.v1.operation.accepted.retail", "lb.v1.operation.accepted.{project}"),
        ("lb.v1.intent.cancel.retail", "lb.v1.intent.cancel.{project}"),
        ("lb.v1.environment.link.x", "lb.v1.environment.link.{environment}"),
        ("lb.v1.command.x.offer", "lb.v1.command.{environment}.offer"),
        ("lb.v1.query.x.logs", "lb.v1.query.{environment}.logs"),
        ("lb.v1.lease.x", "lb.v1.lease.{environment}"),
        ("lb.v1.answer.x.123", "lb.v1.answer.{environment}.{token}"),
        ("lb.v1.ask.ranking.plan", "lb.v1.ask.ranking.plan"),
        ("lb.v1.catalogue.queue.q", "lb.v1.catalogue.queue.{name}"),
        ("lb.v1.alert.aged", "lb.v1.alert.aged"),
        ("lb.v1.nonsense.aged", "other"),
        ("lb.v1.report.x", "other"),
        ("_INBOX.abc", "other"),
    ],
)
def test_templates_are_bounded(subject: str, template: str) -> None:
    assert subjects.template(subject) == template
