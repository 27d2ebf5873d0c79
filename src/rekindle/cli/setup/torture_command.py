"""`rekindle torture`: test the guarantees of a file system."""

import random
import secrets  # noqa: TID251 - only for a unique name
import shutil
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import click

from rekindle import config
from rekindle.cli import options
from rekindle.cli.output import (
    echo,
    print_json,
    print_styled,
)
from rekindle.errors import (
    CheckFailedError,
    StoreError,
    translate_os_errors,
)
from rekindle.flows.torture_folder import (
    DISK_FULL,
    PromiseResult,
)
from rekindle.flows.torture_folder import try_promises as try_out
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.system.processes import stop_signals

_LARGEST_SEED = 2**32 - 1
_CANNOT_TELL = "Not tested: whether the disk keeps confirmed writes after a power failure."


@click.command()
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False))
@click.option(
    "--minutes",
    type=click.FloatRange(0.01, 24 * 60),
    metavar="NUMBER",
    default=0.5,
    show_default=True,
    help="Test duration in minutes.",
)
@click.option(
    "--seed",
    type=options.Number(0, _LARGEST_SEED),
    help="Seed from an earlier run, to repeat that run.",
)
@options.json_option
def torture(folder: str | None, minutes: float, seed: int | None, as_json: bool) -> None:
    """Test whether a file system provides the guarantees that Rekindle needs.

    FOLDER is where you want to keep your agents. The default is this project's .rekindle, or the
    current folder. The test runs in a temporary folder inside FOLDER and removes it afterwards.
    """
    place = Path(folder) if folder is not None else _choose_folder()
    chosen = random.randrange(_LARGEST_SEED) if seed is None else seed  # noqa: S311 - not a secret
    if not as_json:
        echo(f"Testing {place} for about {minutes:g} min, with --seed {chosen}.\n")
    results = []
    try:
        with (
            stop_signals.raise_keyboard_interrupt(),
            closing(_list_findings(place, minutes * 60, chosen)) as findings,
        ):
            for finding in findings:
                results.append(finding)
                if not as_json:
                    _print_finding(finding)
    except StoreError as full:
        raise StoreError(
            str(place),
            f"could not be tested: {full.reason}",
            errno=full.errno,
            hint="free some space, then try again",
        ) from full
    held = not any(result.broken for result in results)
    if as_json:
        print_json({"folder": str(place), "seed": chosen, "held": held, "findings": results})
    if not held:
        raise CheckFailedError(
            f"{place} does not give the guarantees that Rekindle needs",
            hint=(
                "do not put .rekindle there: move the project to a local disk, then test that disk"
            ),
        )
    if not as_json:
        print_styled(f"\n✓ {place} gives the guarantees that Rekindle needs.", fg="green")
        echo(f"  {_CANNOT_TELL}")


def _list_findings(place: Path, seconds: float, seed: int) -> Generator[PromiseResult, None, None]:
    own = place / f".rekindle-torture-{secrets.token_hex(8)}"
    try:
        with translate_os_errors(place):
            own.mkdir(0o700)
        yield from try_out(own.resolve(), seconds=seconds, seed=seed)
    except StoreError as refused:
        # The trials themselves handle every other store error.
        if refused.errno in DISK_FULL:
            raise
        yield PromiseResult(
            "a folder can be created", "", str(refused), "nothing can be stored here"
        )
    finally:
        with stop_signals.defer_signals():
            shutil.rmtree(own, ignore_errors=True)


def _print_finding(finding: PromiseResult) -> None:
    if finding.broken:
        print_styled(f"✗ {finding.promise}: {finding.broken}", fg="red")
        echo(f"  This means that {finding.means}.")
    else:
        echo(f"✓ {finding.promise}: {finding.tried}")


def _choose_folder() -> Path:
    here = options.find_current_folder()
    project = config.find_project(here)
    folder = RekindleFolder(project).path if project else here
    return folder if folder.is_dir() else here
