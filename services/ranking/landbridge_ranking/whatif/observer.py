"""What the policies of a scenario observe, on virtual time: noted and taken on as the ranking service does it."""

from collections.abc import Mapping
from datetime import datetime

from landbridge.domain.admission import Admission
from landbridge.domain.backlogs import backlogs
from landbridge.domain.ownership.environment_work import PREEMPTED
from landbridge.domain.preferences import Observed
from landbridge.domain.runs import run_key
from landbridge_ranking.book import Book
from landbridge_ranking.observing import Observations
from landbridge_ranking.whatif.engine import Placed

# As the coordinator tells of an attempt whose environment lost it.
_LET_DOWN = "missing"
_COMPLETED = "completed"


class Observer:
    """The sliding windows of one run. Rankings follow them at the service's pace, and only while somebody waits."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._windows = Observations()

    def left(self, placed: Placed, moment: datetime) -> None:
        """Note how a stay went that is over."""
        seen, here = self._windows, placed.environment
        if not placed.finished:
            seen.ended(here, _LET_DOWN if placed.let_down else PREEMPTED)
            return
        requirements = placed.arrival.shape.requirements
        seen.ended(here, _COMPLETED)
        seen.held(here, requirements.queue, placed.until_s - placed.at_s)
        seen.started(here, placed.delay_s)
        if requirements.component and placed.round == 1:
            took_s = placed.until_s - placed.at_s - placed.delay_s
            seen.ran(here, run_key(requirements.component, placed.amounts), took_s, moment)

    def look(self, admission: Admission, now: datetime) -> bool:
        """Take on what is observed, if it is time to; tell whether rankings follow from it anew."""
        if not self._windows.due(now):
            return False
        book, before = self._book, self._book.rankings.version
        waits = backlogs(admission, book.view.capacity(), self._windows.lasted, now)
        book.observe(self._windows.snapshot(now, waits, book.carbon(now), book.bandwidths(now)))
        return book.rankings.version != before

    def seen(self, now: datetime) -> Mapping[str, Observed]:
        """Return what the windows hold."""
        return self._windows.snapshot(now)
