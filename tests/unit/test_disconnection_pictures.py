"""The pictures of docs/disconnection.md, and its figures, are those of the code."""

import subprocess
import sys
from pathlib import Path

from landbridge.domain.ownership.expiry import release_wait_ms
from landbridge.domain.ownership.policy import DEFAULT_TIMING

ROOT = Path(__file__).parents[2]


def test_the_pictures_are_up_to_date() -> None:
    tool = ROOT / "tools" / "generate_disconnection_pictures.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_worked_examples_are_right() -> None:
    text = (ROOT / "docs" / "disconnection.md").read_text()
    for stop_ms in (25_000, 45_000):
        assert f"= {release_wait_ms(stop_ms) / 1000:.1f} s" in text
    for line in ("| TTL | 30 s |", "| renewal | 10 s |", "| rho | 1 % |", "| delta | 2 s |"):
        assert line in text
    timing = DEFAULT_TIMING
    assert (timing.ttl_ms, timing.renewal_ms, timing.rho_permille, timing.delta_ms) == (30_000, 10_000, 10, 2_000)
