"""The contenders, one file each: it defines `contender`, a class that takes the CLI's name."""

import importlib
from pathlib import Path

from survival.contender import Contender

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


def make(name: str, cli: str) -> Contender:
    module = importlib.import_module(f"survival.contenders.{name.replace('-', '_')}")
    made: Contender = module.contender(cli)
    return made
