"""Run the soak: `just soak [--cli CLI] [--seed N] [--cycles N] [--again] [--store]`."""

import argparse
import shutil
import sys
from pathlib import Path

from own_user_folder import isolate_user_folder
from survival.soak import schedule, store, verdict
from survival.soak.hosts import PACKAGES
from survival.soak.run import Result, Soak

ROOT = Path(__file__).parents[3] / "build/soak"
SEEDS = (1, 2, 3)


def main() -> int:
    parser = argparse.ArgumentParser(prog="just soak", description=__doc__)
    parser.add_argument("--cli", choices=list(PACKAGES), help="default: all")
    parser.add_argument("--seed", type=int, help=f"default: {', '.join(map(str, SEEDS))}")
    parser.add_argument("--cycles", type=int, default=schedule.CYCLES, help="default: %(default)s")
    parser.add_argument("--again", action="store_true", help="also repeat runs with a result")
    parser.add_argument("--store", action="store_true", help=f"then write {store.STORED.name}")
    given = parser.parse_args()
    isolate_user_folder()
    wrong = 0
    for cli in [given.cli] if given.cli else PACKAGES:
        for seed in [given.seed] if given.seed is not None else SEEDS:
            wrong += not _run(cli, seed, given.cycles, again=given.again)
    if given.store:
        store.write(ROOT)
    return 1 if wrong else 0


def _run(cli: str, seed: int, cycles: int, *, again: bool) -> bool:
    """Make a run unless it has a result; return whether it showed what it must show."""
    folder = ROOT / cli / str(seed)
    found = None if again else store.find(folder, cycles)
    if found is None:
        shutil.rmtree(folder, ignore_errors=True)
        print(f"{cli}, seed {seed}", flush=True)
        found = Soak(cli, seed, cycles, folder).run()
    _show(found)
    return not verdict.find_troubles(found)


def _show(found: Result) -> None:
    print(
        f"{found.cli}, seed {found.seed}: {found.done} of {found.total} items, {found.lost} lost,"
        f" {found.twice} twice; {sum(found.faults.values())} faults; {len(found.left)} left over;"
        f" {found.interventions} interventions; {found.seconds} s; {found.ended}"
    )
    for name, trend in verdict.find_trends(found).items():
        print(f"  {name}: {trend.second:g}, then {trend.last:g}; the bar is {trend.most:g}")
    for trouble in verdict.find_troubles(found):
        print(f"  ✗ {trouble}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
