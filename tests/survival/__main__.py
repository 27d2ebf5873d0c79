"""Play cells: `just survival [TOOL] [FAULT] [--cli CLI] [--repeat N] [--again]`."""

import argparse
import shutil
import sys
from pathlib import Path

from own_user_folder import isolate_user_folder
from survival import cell, contenders
from survival.faults import FAULTS

ROOT = Path(__file__).parents[2] / "build/survival"


def main() -> int:
    parser = argparse.ArgumentParser(prog="just survival")
    parser.add_argument("tool", nargs="?", default="")
    parser.add_argument("fault", nargs="?", default="")
    parser.add_argument("--cli", choices=["claude-code", "codex"], action="append")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--again", action="store_true")
    given = parser.parse_args()
    isolate_user_folder()
    for tool in [given.tool] if given.tool else contenders.NAMES:
        for cli in given.cli or ["claude-code", "codex"]:
            for fault in [given.fault] if given.fault else FAULTS:
                for number in range(1, given.repeat + 1):
                    _play(tool, cli, fault, number, again=given.again)
    return 0


def _play(tool: str, cli: str, fault: str, number: int, *, again: bool) -> None:
    made = contenders.make(tool, cli)
    folder = ROOT / made.about.key / fault / str(number)
    if (folder / "result.json").exists() and not again:
        return
    shutil.rmtree(folder, ignore_errors=True)
    print(f"{made.about.key}: {fault} {number}", flush=True)
    found = cell.Cell(made, fault, folder).run()
    print(
        f"  {found.done} done, {found.lost} lost, {found.twice} twice; {found.requests} requests,"
        f" {found.tokens} tokens, {found.seconds} s; {len(found.interventions)} interventions,"
        f" {len(found.left)} left; {found.ended}; {found.evidence}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
