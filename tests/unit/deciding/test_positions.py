"""Where operations come into the line: by age, also when their message is delivered again."""

from landbridge_ranking.book import Book
from landbridge_ranking.desk import Desk


def test_what_is_delivered_again_keeps_its_place_and_what_is_new_goes_behind_all() -> None:
    desk = Desk(Book())
    first = desk.position_of(7, 0, again=False)
    second = desk.position_of(9, 0, again=False)
    assert first < desk.position_of(8, 0, again=True) < desk.position_of(8, 1, again=True) < second
    assert desk.position_of(1, 0, again=False) > second  # the stream was rebuilt
    assert desk.position_of(20, 0, again=True) < desk.position_of(20, 1, again=False)
