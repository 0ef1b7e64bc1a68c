"""Draws docs/img/disconnection-*.svg: what a cut does to work of each policy, from the defaults in the code.

`--check` only compares. Exit code 0: written or equal; 1: `--check` found something stale.
"""

import argparse
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

from landbridge.domain.ownership.expiry import release_wait_ms
from landbridge.domain.ownership.policy import DEFAULT_TIMING, KILL_MARGIN_MS, Disconnection, OnDisconnect

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "img"
WIDTH, LEFT, RIGHT = 960, 150, 30
TOP, ROW = 64, 58
INK, SOFT, LINE = "#1c2733", "#5b6b7b", "#c9d3dc"
COLOURS = {
    "run": "#2f7dd1",
    "doubt": "#e0a526",
    "seal": "#7a5cc7",
    "stop": "#cf4b3f",
    "free": "#2f9e63",
    "none": "#dfe6ec",
}
CUT_S = 20  # when the link is cut on the pictures; the lease was renewed at that moment
RETURN_S = 150


@dataclass(frozen=True)
class Bar:
    """What one row shows from `start` to `end`, in seconds since the left edge."""

    start: float
    end: float
    kind: str
    text: str


@dataclass(frozen=True)
class Mark:
    """A moment with its name."""

    at: float
    text: str


@dataclass(frozen=True)
class Picture:
    """One policy: rows by name, moments, and how many seconds the whole spans."""

    title: str
    rows: tuple[tuple[str, tuple[Bar, ...]], ...]
    marks: tuple[Mark, ...]
    span: float


def _lost_s() -> float:
    return CUT_S + DEFAULT_TIMING.ttl_ms / 1000


def _staying(policy: OnDisconnect, ending: str) -> Picture:
    lost, span = _lost_s(), 200.0
    rows = (
        (
            "environment",
            (Bar(0, RETURN_S + 12, "run", "runs on, whatever the link does"), Bar(RETURN_S + 12, span, "run", ending)),
        ),
        (
            "centre",
            (
                Bar(0, lost, "run", "running"),
                Bar(lost, RETURN_S + 12, "doubt", "unknown since: never placed again because time passed"),
                Bar(RETURN_S + 12, span, "run", "adopted"),
            ),
        ),
    )
    marks = (
        Mark(CUT_S, "cut"),
        Mark(lost, "lease over"),
        Mark(RETURN_S, "link back"),
        Mark(RETURN_S + 12, "reconciled"),
    )
    return Picture(policy.value, rows, marks, span)


def _leaving(policy: Disconnection, example: str) -> Picture:
    lost = _lost_s()
    stop, kill = lost + policy.within_ms / 1000, lost + (policy.within_ms + policy.grace_ms) / 1000
    dead, free = kill + KILL_MARGIN_MS / 1000, CUT_S + release_wait_ms(policy.stop_ms) / 1000
    span = free + 40
    sealing = policy.policy is OnDisconnect.CHECKPOINT_THEN_STOP
    before = (Bar(lost, stop, "seal", "seals a checkpoint"),) if sealing else ()
    here = (
        Bar(0, lost, "run", "runs"),
        *before,
        Bar(stop, kill, "stop", "TERM, grace, KILL"),
        Bar(kill, span, "none", "stopped"),
    )
    there = (
        Bar(0, lost, "run", "running"),
        Bar(lost, free, "doubt", "unknown: the expiry rule"),
        Bar(free, span, "free", "placed again"),
    )
    names = "environment", "centre"
    marks = (Mark(CUT_S, "cut"), Mark(lost, "lease over"), Mark(dead, "surely dead"), Mark(free, "may be placed"))
    return Picture(f"{policy.policy.value} ({example})", tuple(zip(names, (here, there), strict=True)), marks, span)


def pictures() -> dict[str, Picture]:
    """Return the picture of each policy by its file's name."""
    stopping = Disconnection(OnDisconnect.STOP_AFTER_GRACE, 0, 20_000)
    sealing = Disconnection(OnDisconnect.CHECKPOINT_THEN_STOP, 30_000, 10_000)
    return {
        "disconnection-continue.svg": _staying(OnDisconnect.CONTINUE, "goes on"),
        "disconnection-must-finish.svg": _staying(OnDisconnect.MUST_FINISH, "to its end"),
        "disconnection-stop-after-grace.svg": _leaving(stopping, "grace 20 s"),
        "disconnection-checkpoint-then-stop.svg": _leaving(sealing, "checkpoint within 30 s, grace 10 s"),
    }


def draw(picture: Picture) -> str:
    """Return one picture as SVG text."""
    height = TOP + ROW * len(picture.rows) + 62

    def x(seconds: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * seconds / picture.span, 1)

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
            f'font-family="system-ui, sans-serif" font-size="13">'
        ),
        f"<title>{escape(picture.title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="16" y="26" font-size="16" font-weight="600" fill="{INK}">{escape(picture.title)}</text>',
    ]
    bottom = TOP + ROW * len(picture.rows)
    for number, mark in enumerate(picture.marks):
        at, lower = x(mark.at), number % 2 * 20
        anchor = "end" if at > WIDTH - 120 else "middle"
        place = f'x1="{at}" x2="{at}" y1="{TOP - 12}" y2="{bottom + lower}"'
        parts.append(f'<line {place} stroke="{LINE}" stroke-dasharray="3 3"/>')
        label = f"{mark.text}, {mark.at - CUT_S:+.0f} s" if number else mark.text
        place = f'x="{at}" y="{bottom + 18 + lower}" text-anchor="{anchor}"'
        parts.append(f'<text {place} fill="{SOFT}">{escape(label)}</text>')
    for index, (name, bars) in enumerate(picture.rows):
        y = TOP + ROW * index
        parts.append(f'<text x="16" y="{y + 24}" fill="{INK}">{escape(name)}</text>')
        for bar in bars:
            parts += _bar(bar, x(bar.start), x(bar.end), y)
    return "\n".join([*parts, "</svg>", ""])


def _bar(bar: Bar, left: float, right: float, y: int) -> list[str]:
    ink = INK if bar.kind in ("none", "doubt") else "#fff"
    width = round(max(right - left, 2.0), 1)
    parts = [f'<rect x="{left}" y="{y}" width="{width}" height="38" rx="3" fill="{COLOURS[bar.kind]}"/>']
    if width > 6.6 * len(bar.text):
        middle = round(left + width / 2, 1)
        parts.append(f'<text x="{middle}" y="{y + 24}" text-anchor="middle" fill="{ink}">{escape(bar.text)}</text>')
    else:
        parts.append(f'<text x="{left}" y="{y - 4}" fill="{SOFT}" font-size="12">{escape(bar.text)}</text>')
    return parts


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare")
    check = parser.parse_args().check
    stale = []
    for name, picture in pictures().items():
        path, text = FOLDER / name, draw(picture)
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{'stale' if check else 'written'}: {', '.join(stale) or 'nothing'}\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
