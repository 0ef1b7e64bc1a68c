"""Acceptance, metrics, outputs and logs, as a workload that wishes us ill may leave them."""

import json
import os
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge_dispatch.executors.local import evidence
from landbridge_dispatch.executors.local.outcome import judge
from landbridge_dispatch.executors.local.outlog import OutputLog


def test_the_last_value_of_a_metric_counts_and_nonsense_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    lines = ['{"name":"auc","value":0.1}', "nonsense", '{"name":1,"value":2}', '{"name":"x","value":"NaN"}', "[" * 5000]
    lines += ['{"name":"y","value":1e999}', '{"name":"auc","value":0.9}', '{"name":"half"']
    file.write_text("\n".join(lines))
    assert evidence.read_metrics(file) == {"auc": 0.9}


def test_metrics_are_bounded_in_number(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    file.write_text("".join(json.dumps({"name": f"m{i}", "value": i}) + "\n" for i in range(1500)))
    assert len(evidence.read_metrics(file)) == evidence.METRIC_NAMES_MAX


@given(content=st.binary(max_size=200))
def test_no_content_of_a_metrics_file_breaks_the_reader(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = tmp_path_factory.mktemp("m") / "metrics.jsonl"
    file.write_bytes(content)
    evidence.read_metrics(file)


def test_links_and_pipes_in_place_of_files_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    assert evidence.read_metrics(tmp_path / "link") == {}
    assert evidence.read_metrics(tmp_path / "pipe") == {}
    assert evidence.measure_output(tmp_path) == {"exists": False, "bytes": 0, "sha256": ""}


def test_an_outputs_digest_depends_on_names_and_content_only(tmp_path: Path) -> None:
    for name, order in (("one", "ab"), ("two", "ba")):
        for letter in order:
            (tmp_path / name / letter).mkdir(parents=True)
            (tmp_path / name / letter / "f").write_text(letter)
    one, two = (evidence.measure_output(tmp_path / name) for name in ("one", "two"))
    assert one == two
    assert one["bytes"] == 2
    (tmp_path / "two/a/f").write_text("x")
    assert evidence.measure_output(tmp_path / "two")["sha256"] != one["sha256"]


@pytest.mark.parametrize(
    ("criterion", "met", "found"),
    [
        ({"metric": "auc", "atLeast": 0.8}, True, "0.85"),
        ({"metric": "auc", "atLeast": 0.9}, False, "0.85"),
        ({"metric": "auc", "atLeast": 0.8, "atMost": 0.84}, False, "0.85"),
        ({"metric": "loss", "atMost": 1}, False, "not logged"),
        ({"output": "model", "exists": True}, True, "exists with 10 bytes"),
        ({"output": "model", "exists": False}, False, "exists with 10 bytes"),
        ({"output": "other", "exists": False}, True, "not there"),
        ({"output": "model", "minBytes": 11}, False, "exists with 10 bytes"),
        ({"output": "model", "sha256": "aa"}, True, "exists with 10 bytes"),
        ({"output": "model", "sha256": "bb"}, False, "exists with 10 bytes"),
        ({"exitCodes": [0, 2]}, True, "2"),
        ({"exitCodes": [0]}, False, "2"),
    ],
)
def test_a_criterion_says_whether_it_is_met_and_what_was_found(
    criterion: dict[str, object], met: bool, found: str
) -> None:
    outputs = {"model": {"exists": True, "bytes": 10, "sha256": "aa"}}
    [result] = evidence.judge_acceptance([criterion], 2, {"auc": 0.85}, outputs)
    assert (result["met"], result["found"]) == (met, found)
    assert result["criterion"]


@pytest.mark.parametrize(
    ("status", "options", "outcome", "reason"),
    [
        (0, {}, "completed", ""),
        (0, {"unmet": ["auc"]}, "failed", "acceptance-not-met"),
        (3 << 8, {}, "failed", "exit-code"),
        (3 << 8, {"accepted_codes": frozenset({3})}, "completed", ""),
        (signal.SIGKILL, {}, "failed", "signal"),
        (signal.SIGKILL, {"out_of_memory": True}, "failed", "out-of-memory"),
        (signal.SIGKILL, {"cause": "timeout"}, "failed", "timeout"),
        (0, {"cause": "cancelled"}, "cancelled", "cancelled"),
        (signal.SIGKILL, {"cause": "self-stopped", "out_of_memory": True}, "cancelled", "self-stopped"),
    ],
)
def test_every_way_to_end_has_one_reason(status: int, options: dict[str, object], outcome: str, reason: str) -> None:
    ending = judge(status, **{"cause": "", "out_of_memory": False, "unmet": [], **options})  # type: ignore[arg-type]
    assert (ending.outcome, ending.reason) == (outcome, reason)


@given(chunks=st.lists(st.binary(min_size=1, max_size=50_000), max_size=12), limit=st.integers(0, 200_000))
def test_a_log_loses_only_its_middle_and_says_so(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes], limit: int
) -> None:
    slot = tmp_path_factory.mktemp("slot")
    log = OutputLog(slot, limit)
    for chunk in chunks:
        os.write(log.write_fd, chunk)
        log.pump()
    log.close_writer()
    log.finish()
    written, kept = b"".join(chunks), (slot / "output.log").read_bytes()
    if b"bytes left out here" not in kept:
        assert kept == written
    else:
        head, _, rest = kept.partition(b"\n[landbridge] log limit reached; ")
        assert written.startswith(head)
        assert written.endswith(rest.partition(b"\n")[2])
        assert len(kept) <= max(limit, 65_536) + 150_000
