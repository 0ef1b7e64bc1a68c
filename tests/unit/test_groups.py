"""Tests that share something large, or disturb others, run in one worker."""

from support.groups import ByGroup, computes, group_of, next_unit


def test_files_of_a_group_are_one_scope_and_others_are_by_themselves() -> None:
    split = ByGroup._split_scope
    assert group_of("tests/e2e/test_main_job.py") == group_of("tests/e2e/test_presets.py") == "instance"
    assert group_of("tests/faults/test_faults.py") == "faults"
    assert group_of("tests/unit/test_units.py") == ""
    assert group_of("tests/no_such_file.py") == ""
    assert split(None, "tests/faults/test_cut.py::a[x]") == split(None, "tests/faults/test_cluster.py::b")  # type: ignore[arg-type]
    alone = "tests/unit/test_units.py::test_x[a::b]"
    assert split(None, alone) == alone  # type: ignore[arg-type]


def test_a_worker_takes_the_first_unit_of_the_kind_it_prefers_and_else_the_first_of_all() -> None:
    queue = {
        name: {name: False}
        for name in ("tests/e2e/a.py::a", "tests/unit/b.py::b", "tests/integration/c.py::c", "tests/simulation/d.py::d")
    }
    assert next_unit(queue, computes) == "tests/unit/b.py::b"
    assert next_unit(queue, lambda test: not computes(test)) == "tests/e2e/a.py::a"
    del queue["tests/unit/b.py::b"], queue["tests/simulation/d.py::d"]
    assert next_unit(queue, computes) == "tests/e2e/a.py::a"
