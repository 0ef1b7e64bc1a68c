"""How writes become one statement."""

from landbridge.store.together import Together


def test_one_write_stays_as_it_is() -> None:
    together = Together()
    together.add("a", "delete from a where id = $1", (1,))
    assert together.take() == ("delete from a where id = $1", [1])
    assert not together


def test_parameters_move_behind_those_of_the_writes_before() -> None:
    together = Together()
    together.add("a", "insert into a values ($1, $2, $1)", ("x", "y"))
    together.add("b", "update b set n = $12, m = $2 where id = $1", tuple(range(12)))
    together.add("c", "delete from c", ())
    assert together.holds("b")
    assert not together.holds("d")
    sql, arguments = together.take()
    assert sql == (
        "with write_1 as (insert into a values ($1, $2, $1)), "
        "write_2 as (update b set n = $14, m = $4 where id = $3) delete from c"
    )
    assert arguments == ["x", "y", *range(12)]
