"""`rekindle demo`."""

import tempfile
from pathlib import Path

import click

from rekindle.cli.output import echo, secho
from rekindle.demo.show import Show, Shown
from rekindle.errors import CheckFailedError


@click.command()
def demo() -> None:
    """Watch an agent being killed and coming back: no key, no network, half a minute.

    The agent is a scripted one; everything else is what a real one gets. It happens in a temporary
    folder, which is removed at the end.
    """
    with tempfile.TemporaryDirectory(prefix="rekindle-demo-") as folder:
        secho("An agent is killed in the middle of its work, and the work goes on.", bold=True)
        echo(f"In {folder}: no key, no network, nothing outside.\n")
        shown = Show(Path(folder), echo).run()
        if shown is None:
            raise click.Abort
        _summed_up(shown)


def _summed_up(shown: Shown) -> None:
    echo(
        f"5. {shown.chapters} chapters are there, in {shown.sessions} sessions; {shown.heartbeats}"
        " calls were finished, none twice."
    )
    if shown.chapters != shown.heartbeats:
        raise CheckFailedError(
            "the demonstration did not go as it should", hint="please report it with its output"
        )
    secho("\n✓ Killed twice; nothing was lost, and nothing was done twice.", fg="green")
    echo("Next: `rekindle init` in your own project, then `rekindle run`.")
