"""The end of a log, for people."""

import json
from pathlib import Path

from landbridge_embedded.logtail import log_tail

TRACE = """\
  + Exception Group Traceback (most recent call last):
  |   File "runner.py", line 51, in main
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "service.py", line 46, in prepare
    |     self.follow("access")
    | ValueError: name '>' cannot be part of a subject: expected letters
    +------------------------------------
"""


def test_json_entries_become_lines_and_traces_their_last_words(tmp_path: Path) -> None:
    entry = {"event": "the service ended", "level": "error", "service": "dashboard", "port": 80}
    entry |= {"timestamp": "2026-11-30T11:12:54.793526Z", "exception": TRACE}
    log = tmp_path / "dashboard.log"
    log.write_text(json.dumps(entry) + "\n")
    assert log_tail(log).splitlines() == [
        "  11:12:54 error the service ended port=80",
        "      ValueError: name '>' cannot be part of a subject: expected letters",
    ]


def test_other_lines_stay_as_they_are(tmp_path: Path) -> None:
    log = tmp_path / "postgres.log"
    log.write_text("one\n{half\ntwo\n")
    assert log_tail(log, 2) == "  {half\n  two"


def test_without_a_log_that_is_said(tmp_path: Path) -> None:
    assert log_tail(tmp_path / "none") == "  (no log)"
    (tmp_path / "empty").write_text("")
    assert log_tail(tmp_path / "empty") == "  (the log is empty)"
