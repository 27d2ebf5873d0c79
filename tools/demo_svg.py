"""Draw the picture in the README from a run of `rekindle demo`.

Without arguments, the demo runs and docs/images/demo.svg is written. A test runs the demo as well,
and compares the picture with its output. Only the temporary folder and the process ids differ
between two runs, so the picture shows fixed ones.
"""

import re
import subprocess
import sys
from html import escape
from pathlib import Path

PICTURE = Path(__file__).resolve().parents[1] / "docs/images/demo.svg"

CHARACTER_WIDTH = 7.83
"""Width of a character in pixels, at the font size of the picture."""
LINE_HEIGHT = 19
MARGIN = 20
TITLE_BAR = 34
SECONDS_PER_LINE = 0.25
SECONDS_PER_TOOL_CALL = 0.7

FOLDER = re.compile(r"\S*/rekindle-demo-\w+")
KILL = re.compile(r"kill -9 \d+")
PROCESS_IDS = ("4021", "4086")

STYLE = """
:root { --paper: #ffffff; --bar: #eceff3; --ink: #1f2328; --dim: #59636e; --line: #d1d9e0;
  --red: #c4222e; --green: #1a7f37; --amber: #8a5a00; --blue: #0757ba; }
@media (prefers-color-scheme: dark) { :root { --paper: #0d1117; --bar: #1c2128; --ink: #e6edf3;
  --dim: #9198a1; --line: #30363d; --red: #ff8078; --green: #4cc764; --amber: #e3b341;
  --blue: #6cb6ff; } }
text { font: 13px ui-monospace, SFMono-Regular, Menlo, "DejaVu Sans Mono", "Liberation Mono",
  monospace; fill: var(--ink); white-space: pre; }
.command { font-weight: 700; } .step { font-weight: 700; fill: var(--blue); }
.tool, .title { fill: var(--dim); } .kill { font-weight: 700; fill: var(--red); }
.notice { fill: var(--amber); } .success { font-weight: 700; fill: var(--green); }
.paper { fill: var(--paper); stroke: var(--line); } .bar { fill: var(--bar); }
@media (prefers-reduced-motion: no-preference) {
  .line { animation: appear 0.15s backwards; animation-delay: calc(var(--at) * 1s); }
  @keyframes appear { from { opacity: 0; } } }
"""


def make_repeatable(output: str) -> str:
    """Return the demo's output with a fixed folder and fixed process ids."""
    numbers = iter(PROCESS_IDS)
    output = FOLDER.sub("/tmp/rekindle-demo", output)  # noqa: S108 - shown, not used
    return KILL.sub(lambda _: f"kill -9 {next(numbers)}", output)


def draw(output: str) -> str:
    """Return the picture of a terminal with the output of one run of the demo."""
    lines = ["$ rekindle demo", "", *make_repeatable(output).rstrip("\n").splitlines()]
    width = round(max(map(len, lines)) * CHARACTER_WIDTH + 2 * MARGIN)
    height = TITLE_BAR + 2 * MARGIN + len(lines) * LINE_HEIGHT
    shown_at, rows = 0.0, []
    for number, line in enumerate(lines):
        y = TITLE_BAR + MARGIN + (number + 1) * LINE_HEIGHT - 6
        kind = classify(line)
        shown_at += SECONDS_PER_TOOL_CALL if kind == "tool" else SECONDS_PER_LINE
        if line:
            rows.append(
                f'<text class="line {kind}" style="--at:{shown_at:.2f}" x="{MARGIN}" y="{y}">'
                f"{paint(line, kind)}</text>"
            )
    body = "\n".join(rows)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" \
height="{height}" role="img" aria-labelledby="title">
<title id="title">A terminal shows `rekindle demo`: an agent is killed twice and finishes its \
work.</title>
<style>{STYLE}</style>
<rect class="paper" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="10"/>
<path class="bar" d="M1 {TITLE_BAR}V11a10 10 0 0 1 10-10H{width - 11}a10 10 0 0 1 10 \
10V{TITLE_BAR}z"/>
<text class="title" x="{width / 2:g}" y="22" text-anchor="middle">rekindle demo</text>
{body}
</svg>
"""


def classify(line: str) -> str:
    """Return the style class of a line."""
    if line.startswith("$ "):
        return "command"
    if line.startswith("✓"):
        return "success"
    if line.startswith("   · "):
        return "tool"
    if line.startswith("     "):
        return "notice"
    return "plain"


def paint(line: str, kind: str) -> str:
    """Return a line as SVG, with its step number and its kill in their own colours."""
    text = escape(line, quote=False)
    if kind == "plain":
        text = re.sub(r"^\d\.", r'<tspan class="step">\g<0></tspan>', text)
        text = re.sub(r"kill -9 \d+|SIGKILL", r'<tspan class="kill">\g<0></tspan>', text)
    return text


def main() -> None:
    demo = [sys.executable, "-I", "-m", "rekindle", "demo"]
    output = subprocess.run(demo, capture_output=True, text=True, check=True).stdout
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw(output), encoding="utf-8")


if __name__ == "__main__":
    main()
