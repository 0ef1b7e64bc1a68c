"""Tests that share something large, or disturb others, run in one worker."""

from support.groups import ByGroup, group_of


def test_files_of_a_group_are_one_scope_and_others_are_by_themselves() -> None:
    split = ByGroup._split_scope
    assert group_of("tests/e2e/test_main_job.py") == group_of("tests/e2e/test_presets.py") == "instance"
    assert group_of("tests/faults/test_faults.py") == "faults"
    assert group_of("tests/unit/test_units.py") == ""
    assert group_of("tests/no_such_file.py") == ""
    assert split(None, "tests/faults/test_cut.py::a[x]") == split(None, "tests/faults/test_cluster.py::b")  # type: ignore[arg-type]
    alone = "tests/unit/test_units.py::test_x[a::b]"
    assert split(None, alone) == alone  # type: ignore[arg-type]
