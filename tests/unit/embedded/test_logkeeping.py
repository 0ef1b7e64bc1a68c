"""Logs do not fill the disk."""

from pathlib import Path

from landbridge_embedded.logkeeping import shrink
from landbridge_embedded.process import open_log


def test_a_large_log_is_set_aside_and_its_writer_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "intake.log"
    with open_log(log) as out:
        out.write(b"x" * 1000)
        out.flush()
        shrink(tmp_path, limit_bytes=500)
        out.write(b"after")
        out.flush()
    assert log.read_bytes() == b"after"
    assert (tmp_path / "intake.log.1").stat().st_size == 1000
    assert (tmp_path / "intake.log.1").stat().st_mode & 0o777 == 0o600


def test_a_small_log_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "nats.log").write_text("short")
    shrink(tmp_path, limit_bytes=500)
    assert [path.name for path in tmp_path.iterdir()] == ["nats.log"]
