"""Identifiers are functions of their inputs and keep different inputs apart."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge.domain import ids

TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=30)


def test_an_operation_id_never_changes_between_releases() -> None:
    assert ids.operation_id("retail-eu", "order-1") == ids.operation_id("retail-eu", "order-1")
    assert ids.operation_id("retail-eu", "order-1") == "e7ea2293-7620-5164-91f2-a481bedfe6ba"


@given(TEXT, TEXT, TEXT, TEXT)
def test_different_projects_or_keys_never_share_an_operation(
    project: str, key: str, other_project: str, other_key: str
) -> None:
    same = ids.operation_id(project, key) == ids.operation_id(other_project, other_key)
    assert same == ((project, key) == (other_project, other_key))


def test_nul_cannot_move_the_border_between_project_and_key() -> None:
    with pytest.raises(ValueError, match="NUL"):
        ids.operation_id("a\x00b", "c")


@given(TEXT, st.integers(0, 2**31), st.integers(0, 2**31))
def test_a_slot_name_is_a_dns_label(operation: str, generation: int, counter: int) -> None:
    assert re.fullmatch(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", ids.slot_name(operation, generation, counter))
