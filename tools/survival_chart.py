"""Draw the items done during the benchmark's night with six faults, one line per tool."""

from collections.abc import Callable
from html import escape

import svg_frame
from survival_figures import OURS, Run, Stored, read

WIDTH, HEIGHT = 860, 420
LEFT, RIGHT, TOP, BOTTOM = 50, 210, 30, 50
COLORS = ("#1a7f37", "#c4222e", "#0757ba", "#8a5a00", "#8250df", "#0a7d86", "#b3407c", "#59636e")
Scale = Callable[[float], float]


def draw() -> str:
    stored = read()
    runs = _nights(stored)
    seconds = max((run.seconds for _, _, run in runs), default=1)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def x(at: float) -> float:
        return round(LEFT + (right - LEFT) * at / seconds, 1)

    def y(items: float) -> float:
        return round(bottom - (bottom - TOP) * min(items, stored.items) / stored.items, 1)

    parts = [
        f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y(items)}" y2="{y(items)}"/>'
        f'<text class="dim" x="{LEFT - 8}" y="{y(items) + 4}" text-anchor="end">{items}</text>'
        for items in range(0, stored.items + 1, 5)
    ]
    parts += [
        f'<text class="dim" x="{x(at)}" y="{bottom + 18}" text-anchor="middle">{at} s</text>'
        for at in range(0, seconds + 1, max(30, seconds // 6 // 30 * 30))
    ]
    for number, (name, cli, run) in enumerate(runs):
        color = COLORS[number // 2 % len(COLORS)]
        points = " ".join(_steps(run, seconds, x, y))
        last = run.timeline[-1][1] if run.timeline else 0
        parts.append(f'<polyline class="run {cli}" stroke="{color}" points="{points}"/>')
        parts += [
            f'<circle cx="{x(at)}" cy="{y(_items_at(run, at))}" r="3" fill="{color}">'
            f"<title>{escape(what)}</title></circle>"
            for at, what in run.strikes
        ]
        line = TOP + 10 + 20 * number
        parts.append(
            f'<line class="run {cli}" stroke="{color}" x1="{right + 15}" x2="{right + 40}"'
            f' y1="{line}" y2="{line}"/><text x="{right + 46}" y="{line + 4}">'
            f"{escape(name)}, {cli}: {min(last, stored.items)}</text>"
        )
    return svg_frame.render(
        "Items done during a night with six faults, one line per tool; each dot is a fault.",
        (WIDTH, HEIGHT),
        "\n".join(parts),
        note="Items done; each dot is a fault. "
        "The reset of the usage limit comes at a full minute.",
        left=LEFT,
    )


def _nights(stored: Stored) -> list[tuple[str, str, Run]]:
    """Return the first run of each tool's night, ours first."""
    found = [
        (cell.contender, cell.cli, cell.runs[0])
        for cell in sorted(stored.cells, key=lambda one: (one.contender != OURS, one.contender))
        if cell.fault == "night"
    ]
    return [one for one in found if one[2].timeline]


def _items_at(run: Run, at: float) -> int:
    return max((items for since, items in run.timeline if since <= at), default=0)


def _steps(run: Run, seconds: int, x: Scale, y: Scale) -> list[str]:
    """Return the points of a line that rises with each item."""
    points, before = [f"{x(0)},{y(0)}"], 0
    for at, items in run.timeline:
        points += [f"{x(at)},{y(before)}", f"{x(at)},{y(items)}"]
        before = items
    return [*points, f"{x(seconds)},{y(before)}"]
