"""The frame of a chart that is drawn by hand, for light and for dark pages."""

STYLE = """
:root { --paper: #ffffff; --ink: #1f2328; --dim: #59636e; --line: #d1d9e0; }
@media (prefers-color-scheme: dark) { :root { --paper: #0d1117; --ink: #e6edf3; --dim: #9198a1;
  --line: #30363d; } }
text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: var(--ink); }
.dim { fill: var(--dim); } .grid { stroke: var(--line); } .paper { fill: var(--paper); }
.run { fill: none; stroke-width: 2; } .codex { stroke-dasharray: 5 3; }
"""


def render(title: str, size: tuple[int, int], body: str, *, note: str, left: int) -> str:
    """Return the chart with its title, and with a note below it."""
    width, height = size
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" \
height="{height}" role="img" aria-labelledby="title">
<title id="title">{title}</title>
<style>{STYLE}</style>
<rect class="paper" width="{width}" height="{height}"/>
{body}
<text class="dim" x="{left}" y="{height - 8}">{note}</text>
</svg>
"""
