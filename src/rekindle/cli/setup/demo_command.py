"""`rekindle demo`: show an agent being killed and recovering."""

import tempfile
from pathlib import Path

import click

from rekindle.cli.output import (
    echo,
    print_styled,
)
from rekindle.demo.demonstration import (
    DemoCounts,
    Demonstration,
)
from rekindle.errors import CheckFailedError
from rekindle.formats.counts import render_count


@click.command()
def demo() -> None:
    """Watch an agent get killed and recover, without a key or a network.

    The agent is a script, but everything else works as it would with a real agent. The demo runs in
    a temporary folder, which it removes afterwards.
    """
    with tempfile.TemporaryDirectory(prefix="rekindle-demo-") as folder:
        print_styled(
            "An agent is killed in the middle of its work, and the work continues.", bold=True
        )
        echo(f"Everything happens in {folder}: no key, no network.\n")
        shown = Demonstration(Path(folder), echo).run()
        if shown is None:
            raise click.Abort
        _print_summary(shown)


def _print_summary(shown: DemoCounts) -> None:
    echo(
        f"5. {shown.chapters} chapters were written in {render_count(shown.sessions, 'session')};"
        f" {shown.heartbeats} tool calls finished, none twice."
    )
    if shown.chapters != shown.heartbeats:
        raise CheckFailedError(
            "the demo did not work as expected", hint="please report this, with the output above"
        )
    print_styled("\n✓ Killed twice; nothing was lost, and nothing was done twice.", fg="green")
    echo("Next: `rekindle init` in your own project, then `rekindle run`.")
