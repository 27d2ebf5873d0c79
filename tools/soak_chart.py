"""Draw the memory and the processor time of each cycle of the soak, one line per CLI.

The line is the median of all seeds, and the area around it reaches from the least to the most.
"""

import math
import statistics
from collections.abc import Callable

import svg_frame
from soak_figures import CLI_NAMES, Stored, read

WIDTH, HEIGHT = 860, 476
LEFT, ENDS, TOP, PANEL, GAP = 60, 730, 34, 160, 66
MOST_STEPS = 5
PANELS = (
    ("supervisor_memory", "Memory of the supervisor, in MB", 1 / 1024),
    ("processor", "Processor time of a cycle, in seconds", 1.0),
)
STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
STYLE = """<style>
:root { --claude-code: #b35900; --codex: #0757ba; --gemini: #8250df; }
@media (prefers-color-scheme: dark) { :root { --claude-code: #f0883e; --codex: #58a6ff;
  --gemini: #bc8cff; } }
.area { opacity: 0.2; }
</style>"""


def draw() -> str:
    stored = read()
    parts = [STYLE]
    for number, (name, title, factor) in enumerate(PANELS):
        parts += _draw_panel(stored, name, title, factor, TOP + number * (PANEL + GAP))
    return svg_frame.render(
        "Memory and processor time of Rekindle in each cycle of the soak, one line per CLI.",
        (WIDTH, HEIGHT),
        "\n".join(parts),
        note="The line is the median of all seeds; the area reaches from the least to the most.",
        left=LEFT,
    )


def _draw_panel(stored: Stored, name: str, title: str, factor: float, top: int) -> list[str]:
    by_cli: dict[str, list[list[float]]] = {}
    for run in stored.runs:
        by_cli.setdefault(run.cli, []).append([value * factor for value in run.series[name]])
    most = max((value for runs in by_cli.values() for run in runs for value in run), default=1.0)
    step = next((step for step in STEPS if most <= step * MOST_STEPS), STEPS[-1])
    steps, bottom = math.ceil(most / step), top + PANEL

    def y(value: float) -> float:
        return round(bottom - PANEL * value / (step * steps), 1)

    parts = [f'<text x="{LEFT}" y="{top - 12}">{title}</text>']
    for count in range(steps + 1):
        at = y(count * step)
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{ENDS}" y1="{at}" y2="{at}"/>'
            f'<text class="dim" x="{LEFT - 8}" y="{at + 4}" text-anchor="end">'
            f"{count * step:g}</text>"
        )
    parts += [
        f'<text class="dim" x="{_place(hour / stored.hours):g}" y="{bottom + 18}"'
        f' text-anchor="middle">{hour} h</text>'
        for hour in range(0, stored.hours + 1, 6)
    ]
    for number, (cli, runs) in enumerate(by_cli.items()):
        parts += _draw_cli(cli, list(zip(*runs, strict=False)), y, top + 14 + 22 * number)
    return parts


def _draw_cli(
    cli: str, cycles: list[tuple[float, ...]], y: Callable[[float], float], at: int
) -> list[str]:
    """Draw all seeds of a CLI, and its name at a height beside the panel."""
    least, middle, highest = (
        [
            f"{_place((number + 1) / len(cycles)):.1f},{y(pick(values))}"
            for number, values in enumerate(cycles)
        ]
        for pick in (min, statistics.median, max)
    )
    color, area = f"var(--{cli})", " ".join(least + highest[::-1])
    sample = f'x1="{ENDS + 15}" x2="{ENDS + 35}" y1="{at}" y2="{at}"'
    return [
        f'<polygon class="area" fill="{color}" points="{area}"/>',
        f'<polyline class="run" stroke="{color}" points="{" ".join(middle)}"/>',
        f'<line class="run" stroke="{color}" {sample}/>',
        f'<text x="{ENDS + 41}" y="{at + 4}">{CLI_NAMES[cli]}</text>',
    ]


def _place(share: float) -> float:
    """Return the x of a share of the time."""
    return LEFT + (ENDS - LEFT) * share
