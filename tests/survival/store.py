"""The stored results: the measures of all cells, from which the page is generated."""

import json
import re
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from loopback import install
from survival import contenders
from survival.cell import Result
from survival.faults import FAULTS
from survival.task import TOTAL

STORED: Final = Path(__file__).parents[2] / "tools/survival.json"
IDEAL: Final = "plain-loop"
"""The contender whose run without a fault is the ideal run: the CLI alone, in one session."""
_TOLD_CHARACTERS: Final = 160
_VARYING: Final = re.compile(
    r"^\d{4}-\d\d-\d\d[ T][\d:.,]+(?: -)?\s*|/\S*/build/survival/\S*?/disk/"
    r"|https?://127\S*?(?=[,\s]|$)|(?:, )?request id: \w+|, cf-ray: \S+"
)
"""What differs between two runs: times, folders, addresses and ids."""
_TROUBLE: Final = re.compile(
    r"^! |(?<![/-])\b(error|killed|failed|limit|expired|no space|stall|hangs?|hung|aborted"
    r"|interrupted|safe mode)\b",
    re.IGNORECASE,
)


def read(folder: Path) -> list[Result]:
    """Return the results of all cells below a folder."""
    found = sorted(folder.glob("*/*/*/result.json"))
    return [Result(**json.loads(path.read_text())) for path in found]


def collect(results: Iterable[Result]) -> dict[str, Any]:
    """Return the content of the stored file."""
    by_cell: dict[tuple[str, str, str], list[Result]] = defaultdict(list)
    for result in results:
        by_cell[result.contender, result.cli, result.fault].append(result)
    keys = sorted({(name, cli) for name, cli, _ in by_cell})
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "items": TOTAL,
        "clis": {"claude-code": install.CLAUDE.version, "codex": install.CODEX.version},
        "ideal": {
            cli: _ideal(by_cell[IDEAL, cli, "none"]) for cli in sorted({cli for _, cli in keys})
        },
        "faults": {name: fault.title for name, fault in FAULTS.items()},
        "contenders": [_describe(name, cli) for name, cli in keys],
        "cells": [
            {
                "contender": name,
                "cli": cli,
                "fault": fault,
                "runs": [_run(result) for result in by_cell[name, cli, fault]],
            }
            for name, cli in keys
            for fault in FAULTS
            if (name, cli, fault) in by_cell
        ],
    }


def _ideal(found: list[Result]) -> dict[str, int]:
    """Return the run that the CLI alone makes: it looks, writes each item, and reports the end."""
    assert found, "the ideal run is missing"
    return {"requests": found[0].requests, "calls": found[0].calls, "tokens": found[0].tokens}


def _describe(name: str, cli: str) -> dict[str, Any]:
    about = contenders.make(name, cli).about
    return {**asdict(about), "not_its_job": sorted(about.not_its_job)}


def _run(result: Result) -> dict[str, Any]:
    kept = ("evidence", "done", "lost", "twice", "requests", "tokens", "after_stop", "ended")
    found: dict[str, Any] = {name: getattr(result, name) for name in kept}
    found |= {
        "seconds": round(result.seconds),
        "resumed_after": result.resumed_after,
        "interventions": len(result.interventions),
        "left": len(result.left),
        "told": find_told(result.messages),
    }
    if result.fault == "night":
        found |= {"timeline": result.timeline, "strikes": result.strikes}
    return found


def find_told(messages: str) -> list[str]:
    """Return the last line about a problem, and the last line of all."""
    lines = [_VARYING.sub("", line).strip()[:_TOLD_CHARACTERS] for line in messages.splitlines()]
    lines = [line for line in lines if any(character.isalpha() for character in line)]
    troubles = [line for line in lines[:-1] if _TROUBLE.search(line)]
    found = [*troubles[-1:], *lines[-1:]]
    return list(dict.fromkeys(found))


def write(folder: Path) -> None:
    STORED.write_text(json.dumps(collect(read(folder)), indent=1, ensure_ascii=False) + "\n")
