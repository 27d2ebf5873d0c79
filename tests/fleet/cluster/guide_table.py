"""The part of the guide to a cluster with the faults of the last recorded run."""

import json
from pathlib import Path
from typing import Any, Final

from fleet.cluster.fault_table import Measured, Row, summarize

_ROOT = Path(__file__).parents[3]
RECORDED: Final = _ROOT / "tools/cluster_faults.json"
GUIDE: Final = _ROOT / "docs/guides/cluster.md"
BEGIN: Final = "<!-- `just cluster faults --write` writes the lines from here -->"
END: Final = "<!-- to here -->"


def write_guide(result: dict[str, Any]) -> None:
    """Record a run in which everything held, and write its table into the guide."""
    RECORDED.write_text(json.dumps(result, indent=1) + "\n")
    before, _, rest = GUIDE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    GUIDE.write_text(f"{before}{render_part(result)}{after}")


def render_part(result: dict[str, Any]) -> str:
    """Return the table and the facts of a run, between the two comments."""
    rows = summarize([Measured(**one) for one in result["faults"]])
    lines = ["| fault | times | median | p90 | sessions that continued |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(_cells(row))} |" for row in rows]
    facts = "\n".join(f"- {name}: {value}" for name, value in result["totals"].items())
    return "\n".join([BEGIN, "", *lines, "", facts, "", END])


def _cells(row: Row) -> tuple[str, ...]:
    # All sessions of a lost host end with it.
    continued = "" if row.what.startswith("host ") else row.continued
    return (row.what, str(row.times), f"{row.median:.1f} s", f"{row.p90:.1f} s", continued)
