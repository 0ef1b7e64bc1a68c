"""Real-shaped declarations of every format: what they become, and that each of their fields is accounted for."""

import json
from collections import Counter

import pytest
import yaml

from landbridge.cli.annotated import document_text
from landbridge.domain.documents import Document, read_document
from landbridge.domain.documents.places import path_text
from landbridge.domain.importing import FORMATS, Why, detect
from landbridge.domain.importing.leaves import below, leaves
from support.importing import Declaration, declarations

ALL = list(declarations())


@pytest.mark.parametrize("declaration", ALL, ids=str)
def test_it_becomes_what_was_read_and_approved(declaration: Declaration) -> None:
    found = document_text(declaration.imported().members())

    assert found == declaration.expected.read_text(), "if it is right: python -m support.importing (from tests)"


@pytest.mark.parametrize("declaration", ALL, ids=str)
def test_every_leaf_is_mapped_or_told(declaration: Declaration) -> None:
    found = declaration.imported()
    told = [each.source for each in found.mapped] + [each.source for each in found.unmapped]
    value = yaml.safe_load(declaration.path.read_text())

    assert [path_text(leaf) for leaf in leaves(value) if not any(below(leaf, path) for path in told)] == []


@pytest.mark.parametrize("declaration", ALL, ids=str)
def test_it_is_valid_exactly_if_nothing_is_missing(declaration: Declaration) -> None:
    found = declaration.imported()
    read = read_document(json.dumps(found.operation).encode(), ("Operation",))

    assert isinstance(read, Document) is (not found.missing)


@pytest.mark.parametrize("declaration", ALL, ids=str)
def test_every_target_stands_in_the_operation(declaration: Declaration) -> None:
    found = declaration.imported()
    there = {path_text(leaf[:size]) for leaf in leaves(dict(found.operation)) for size in range(1, len(leaf) + 1)}

    assert [path_text(each.target) for each in found.mapped if path_text(each.target) not in there] == []


@pytest.mark.parametrize("declaration", ALL, ids=str)
def test_its_format_is_clear(declaration: Declaration) -> None:
    assert detect(yaml.safe_load(declaration.path.read_text())) == declaration.format


def test_there_are_ten_of_each_format_and_one_of_each_becomes_valid() -> None:
    counts = Counter(each.format for each in ALL)

    assert set(counts) == set(FORMATS)
    assert min(counts.values()) >= 10
    assert {each.format for each in ALL if not each.imported().missing} == set(FORMATS)


def test_every_expected_file_belongs_to_a_declaration() -> None:
    folder = ALL[0].expected.parents[1]

    assert {each.expected for each in ALL} == set(folder.rglob("*.yaml"))


@pytest.mark.parametrize("declaration", ALL, ids=str)
def test_no_secret_is_repeated(declaration: Declaration) -> None:
    report = json.dumps(declaration.imported().members())

    for secret in ("hf_abcdefghijklmnop", "abcd1234abcd1234"):
        assert secret not in report


def test_what_asks_a_person_says_what_to_do() -> None:
    for each in ALL:
        for item in each.imported().unmapped:
            if item.left.why.asks:
                assert item.left.advice, f"{each}: {path_text(item.source)}"
            if item.answer:
                assert item.left.why in (Why.NAME, Why.DECISION)
