"""Play cells: `just survival [TOOL] [FAULT] [--cli CLI] [--repeat N] [--again] [--store]`."""

import argparse
import fcntl
import shutil
import sys
from pathlib import Path

from own_user_folder import isolate_user_folder
from survival import cell, contenders, store
from survival.contender import Contender
from survival.faults import FAULTS

ROOT = Path(__file__).parents[2] / "build/survival"


def main() -> int:
    parser = argparse.ArgumentParser(prog="just survival", description=__doc__)
    parser.add_argument("tool", nargs="?", choices=contenders.NAMES, help="default: all")
    parser.add_argument("fault", nargs="?", choices=list(FAULTS), help="default: all")
    parser.add_argument("--cli", choices=["claude-code", "codex"], help="default: both")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="runs of each cell")
    parser.add_argument("--again", action="store_true", help="also play cells with a result")
    parser.add_argument("--store", action="store_true", help=f"then write {store.STORED.name}")
    given = parser.parse_args()
    isolate_user_folder()
    wrong = 0
    for tool in [given.tool] if given.tool else contenders.NAMES:
        for cli in [given.cli] if given.cli else contenders.clis(tool):
            for fault in [given.fault] if given.fault else FAULTS:
                for number in range(1, given.repeat + 1):
                    wrong += not _play(tool, cli, fault, number, again=given.again)
    if given.store:
        store.write(ROOT)
    return 1 if wrong else 0


def _play(tool: str, cli: str, fault: str, number: int, *, again: bool) -> bool:
    """Play a cell unless it has a result of the same version; return whether it is valid."""
    made = contenders.make(tool, cli)
    folder = ROOT / made.about.key / fault / str(number)
    if not again and cell.has_result(folder, made.about):
        print(f"{made.about.key}: {fault} {number} has a result in {folder}; --again repeats it")
        return True
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{made.about.key}: {fault} {number} is played by another process")
            return True
        return _play_alone(made, fault, folder)


def _play_alone(made: Contender, fault: str, folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    prefix = ROOT / "tools" / f"{made.about.name}-{made.about.version}"
    installed = prefix / ".installed"
    if not installed.exists():
        shutil.rmtree(prefix, ignore_errors=True)
        prefix.mkdir(parents=True)
        print(f"installing {made.about.name} {made.about.version}", flush=True)
        made.install(prefix)
        installed.touch()
    made.prefix = prefix
    print(f"{made.about.key}: {fault} {folder.name}", flush=True)
    found = cell.Cell(made, fault, folder).run()
    print(
        f"  {found.done} done, {found.lost} lost, {found.twice} twice; {found.requests} requests,"
        f" {found.tokens} tokens, {found.seconds} s; {len(found.interventions)} interventions,"
        f" {len(found.left)} left; {found.ended}; {found.evidence or 'no fault happened'}",
        flush=True,
    )
    return bool(found.evidence) or fault == "none"


if __name__ == "__main__":
    sys.exit(main())
