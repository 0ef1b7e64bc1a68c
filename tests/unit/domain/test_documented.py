"""The page about deciding names every rule, preference and code that people may meet."""

import re
from pathlib import Path

from landbridge.domain.constraints import CONSTRAINTS
from landbridge.domain.preferences import PREFERENCES
from landbridge.domain.queues import WaitReason
from landbridge.domain.waiting import NoPlace
from unit.domain.constraint_cases import CASES

NAMED = set(re.findall(r"`([a-z-]+(?::<name>)?)`", Path(__file__).parents[3].joinpath("docs/deciding.md").read_text()))


def test_every_rule_and_preference_is_explained() -> None:
    assert {constraint.name for constraint in CONSTRAINTS} <= NAMED
    assert {preference.name for preference in PREFERENCES} <= NAMED


def test_every_code_is_listed() -> None:
    found = {code for _, _, _, _, expected in CASES for code, _ in expected}
    codes = {f"{code.partition(':')[0]}:<name>" if ":" in code else code for code in found}
    assert codes <= NAMED
    assert {str(reason) for reason in (*WaitReason, *NoPlace)} <= NAMED
