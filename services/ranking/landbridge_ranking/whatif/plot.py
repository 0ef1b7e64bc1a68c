"""A picture of a comparison: devices in use over time, and how long work waited, a line for each policy."""

from collections.abc import Callable, Sequence
from math import log10
from typing import Final
from xml.sax.saxutils import escape

from landbridge_ranking.whatif.measures import Report

_WIDTH, _HEIGHT = 1100, 430
_TOP, _BOTTOM = 70, 350
_PANELS: Final = ((70, 510), (620, 1060))
_COLOURS: Final = ("#1f6feb", "#d1541f", "#2e8b57", "#8250df", "#b08800", "#c2255c", "#0b7285", "#495057")
_INK, _SOFT, _LINE = "#1f2328", "#59636e", "#d0d7de"
_POINTS: Final = 400  # of a line: more are not seen
_LEAST_WAIT_S: Final = 1.0
_FONT = 'font-family="system-ui, sans-serif" font-size="13"'

Point = tuple[float, float]


def draw(title: str, reports: dict[str, Report]) -> str:
    """Return the picture as SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" {_FONT} role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<text x="16" y="26" font-size="16" font-weight="600" fill="{_INK}">{escape(title)}</text>',
        *_in_use(reports),
        *_waited(reports),
        *_legend(list(reports)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _in_use(reports: dict[str, Report]) -> list[str]:
    last = max((_quiet_from(report) for report in reports.values()), default=1.0) * 1.05 or 1.0
    most = max((share for report in reports.values() for at, share in report.series if at <= last), default=1.0) or 1.0
    top = next(step for step in (0.05, 0.1, 0.2, 0.25, 0.5, 0.75, 1.0) if most <= step or step == 1.0)
    left, right = _PANELS[0]

    def x(at_s: float) -> float:
        return left + (right - left) * min(at_s / last, 1.0)

    def y(share: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * share / top

    parts = [*_frame(0, "Devices in use"), *_rows([(y(top * n / 4), f"{top * n / 4:.0%}") for n in range(5)], 0)]
    parts += _columns([(x(last * n / 4), told(last * n / 4)) for n in range(5)])
    for number, report in enumerate(reports.values()):
        points = [(at, share) for at, share in report.series if at <= last]
        parts.append(_line(_steps(points), x, y, number))
    return parts


def _waited(reports: dict[str, Report]) -> list[str]:
    longest = max((report.waits.most for report in reports.values()), default=1.0)
    decades = max(log10(max(longest, 10 * _LEAST_WAIT_S) / _LEAST_WAIT_S), 1.0)
    left, right = _PANELS[1]

    def x(wait_s: float) -> float:
        return left + (right - left) * min(log10(max(wait_s, _LEAST_WAIT_S) / _LEAST_WAIT_S) / decades, 1.0)

    def y(share: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * share

    parts = [*_frame(1, "Share of the operations that waited at most so long")]
    parts += _rows([(y(n / 4), f"{n / 4:.0%}") for n in range(5)], 1)
    parts += _columns([(x(10.0**n), told(10.0**n)) for n in range(int(decades) + 1)])
    for number, report in enumerate(reports.values()):
        count = len(report.waited)
        points = [(waited, (place + 1) / count) for place, waited in enumerate(report.waited)]
        parts.append(_line(_steps([(_LEAST_WAIT_S, points[0][1]), *points] if points else []), x, y, number))
    return parts


def _quiet_from(report: Report) -> float:
    """Return when a tenth of the peak was in use for the last time: what follows is a long tail."""
    peak = max((share for _, share in report.series), default=0.0)
    return max((at for at, share in report.series if share >= 0.1 * peak), default=0.0)


def _frame(panel: int, title: str) -> list[str]:
    left, right = _PANELS[panel]
    return [
        f'<text x="{left}" y="54" font-weight="600" fill="{_INK}">{escape(title)}</text>',
        f'<path d="M{left} {_TOP}V{_BOTTOM}H{right}" fill="none" stroke="{_SOFT}"/>',
    ]


def _rows(marks: Sequence[tuple[float, str]], panel: int) -> list[str]:
    left, right = _PANELS[panel]
    return [
        f'<path d="M{left} {y:.1f}H{right}" stroke="{_LINE}"/>'
        f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end" fill="{_SOFT}">{escape(text)}</text>'
        for y, text in marks
    ]


def _columns(marks: Sequence[tuple[float, str]]) -> list[str]:
    return [
        f'<text x="{x:.1f}" y="{_BOTTOM + 20}" text-anchor="middle" fill="{_SOFT}">{escape(text)}</text>'
        for x, text in marks
    ]


def _steps(points: list[Point]) -> list[Point]:
    """Thin out a line to what can be seen, keeping its ends."""
    if len(points) <= _POINTS:
        return points
    stride = len(points) / _POINTS
    return [points[int(n * stride)] for n in range(_POINTS)] + points[-1:]


def _line(points: list[Point], x: Callable[[float], float], y: Callable[[float], float], number: int) -> str:
    if not points:
        return ""
    (first_x, first_y), *rest = points
    path = f"M{x(first_x):.1f} {y(first_y):.1f}" + "".join(f"H{x(px):.1f}V{y(py):.1f}" for px, py in rest)
    return f'<path d="{path}" fill="none" stroke="{_COLOURS[number % len(_COLOURS)]}" stroke-width="1.8"/>'


def _legend(names: list[str]) -> list[str]:
    parts, at = [], _PANELS[0][0]
    for number, name in enumerate(names):
        parts.append(
            f'<rect x="{at}" y="{_HEIGHT - 32}" width="14" height="4" fill="{_COLOURS[number % len(_COLOURS)]}"/>'
            f'<text x="{at + 20}" y="{_HEIGHT - 26}" fill="{_INK}">{escape(name)}</text>'
        )
        at += 44 + 8 * len(name)
    return parts


def told(seconds: float) -> str:
    """Write a time for people: `40 s`, `12 min`, `3.5 h`, `2 d`."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
