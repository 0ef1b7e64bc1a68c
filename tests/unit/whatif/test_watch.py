"""What is held is added up anew, so that a ledger that forgot something would be noticed."""

from pathlib import Path

from landbridge_ranking.whatif.engine import Placed
from landbridge_ranking.whatif.files import read_scenario
from landbridge_ranking.whatif.measures import Watch
from landbridge_ranking.whatif.work import read_work
from landbridge_ranking.whatif.world import make_book

from .conftest import COMMON, Write, contract, document, operation


def _placed(file: Path) -> tuple[Watch, Placed]:
    scenario = read_scenario(file)
    book = make_book(scenario.documents, None, {})
    [arrival] = read_work(scenario, None)
    return Watch(book.view), Placed(arrival, "site", 0, 10, {"cpu": 3000, "running": 1})


def test_more_than_an_environment_has_is_noticed(scenario: Write) -> None:
    watch, placed = _placed(scenario([*COMMON, contract("site"), operation("w")], ["0,10,w"]))
    watch.takes(placed)
    watch.moment(0)
    assert not watch.seen.exceeded
    watch.takes(placed)
    watch.moment(1)
    assert watch.seen.exceeded == ["at 1 s environment site held 6000 of cpu, allowed 4000"]
    watch.gives_back(placed)
    watch.moment(2)
    assert len(watch.seen.exceeded) == 1


def test_more_than_a_queue_may_hold_is_noticed(scenario: Write) -> None:
    documents = [COMMON[0], document("Queue", "q", concurrency=1), contract("site"), operation("w")]
    watch, placed = _placed(scenario(documents, ["0,10,w"]))
    watch.takes(placed._replace(amounts={"running": 1}))
    watch.takes(placed._replace(amounts={"running": 1}))
    watch.moment(5)
    assert watch.seen.exceeded == ["at 5 s queue q held 2 of running, allowed 1"]
