"""The contenders, one file each: it defines `contender`, a class that takes the CLI's name.

`CLIS` in the file names the CLIs that the contender runs, if it does not run both.
"""

import importlib
from pathlib import Path
from typing import Any

from survival.contender import Contender

NAMES = sorted(path.stem.replace("_", "-") for path in Path(__file__).parent.glob("[a-z]*.py"))


def clis(name: str) -> tuple[str, ...]:
    """Return the CLIs that a contender runs."""
    found: tuple[str, ...] = getattr(_load(name), "CLIS", ("claude-code", "codex"))
    return found


def make(name: str, cli: str) -> Contender:
    made: Contender = _load(name).contender(cli)
    return made


def _load(name: str) -> Any:
    return importlib.import_module(f"survival.contenders.{name.replace('-', '_')}")
