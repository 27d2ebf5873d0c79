"""Fixtures for commands that start agents, and a check of the printed JSON."""

import sys
from pathlib import Path

import click
import msgspec
import pytest

from loopback.fixtures import network, place
from rekindle.cli import output

__all__ = ["network", "place"]
sys.path.append(str(Path(__file__).parents[3] / "tools"))


@pytest.fixture(autouse=True)
def printed(monkeypatch):
    """Collect the objects that commands print; the reference page must name each of their keys."""
    import output_page  # noqa: PLC0415 - it is in tools/, which is not a package

    documents = []
    print_line = output.print_json_line

    def collect(line):
        context = click.get_current_context(silent=True)
        if context is not None:
            command = context.command_path.partition(" ")[2]
            documents.append((command, msgspec.json.decode(line)))
        print_line(line)

    monkeypatch.setattr(output, "print_json_line", collect)
    yield documents
    for command, document in documents:
        if command in output_page.OUTPUTS:
            assert (document["v"], output_page.find_unnamed(command, document)) == (1, [])
