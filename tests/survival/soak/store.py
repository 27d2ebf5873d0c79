"""The stored results of the soak, from which its section and its chart are generated."""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import rekindle
from survival.soak import flatness, schedule, verdict, work
from survival.soak.cycles import Cycle
from survival.soak.hosts import PACKAGES
from survival.soak.run import Result
from survival.soak.strikes import KINDS

STORED: Final = Path(__file__).parents[3] / "tools/soak.json"
SERIES: Final = ("supervisor_memory", "daemon_memory", "processor", "disk", "seconds")
"""The measures of which each cycle is stored."""


def find(folder: Path, cycles: int) -> Result | None:
    """Return the result of a run of the same versions and length, if there is one."""
    path = folder / "result.json"
    if not path.exists():
        return None
    stored = json.loads(path.read_text())
    result = Result(**stored | {"cycles": [Cycle(**one) for one in stored["cycles"]]})
    wanted = (rekindle.__version__, PACKAGES[result.cli].version, cycles * work.EACH)
    return result if (result.version, result.cli_version, result.total) == wanted else None


def write(root: Path) -> None:
    """Write the results of all runs below a folder."""
    runs = []
    for cli in PACKAGES:
        for path in sorted((root / cli).glob("*/result.json")):
            wanted = json.loads(path.read_text())["total"] // work.EACH
            if result := find(path.parent, wanted):
                runs.append(_describe(result))
    stored = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "hours": schedule.HOURS,
        "items_each": work.EACH,
        "clis": {cli: package.version for cli, package in PACKAGES.items()},
        "kinds": {name: kind.fault.title for name, kind in KINDS.items()},
        "bars": {name: asdict(bar) for name, bar in flatness.BARS.items()},
        "runs": runs,
    }
    STORED.write_text(
        json.dumps(stored, separators=(",", ":")).replace('{"cli"', '\n{"cli"') + "\n"
    )


def _describe(result: Result) -> dict[str, Any]:
    kept = ("cli", "seed", "total", "done", "lost", "twice", "interventions", "seconds", "requests")
    found: dict[str, Any] = {name: getattr(result, name) for name in (*kept, "faults", "ended")}
    return found | {
        "left": len(result.left),
        "missing": len(result.missing),
        "trends": {k: asdict(one) for k, one in verdict.find_trends(result).items()},
        "series": {name: [getattr(one, name) for one in result.cycles] for name in SERIES},
        "elsewhere": [one.elsewhere for one in result.cycles],
    }
