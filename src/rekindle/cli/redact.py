"""`rekindle redact`."""

import sys

import click

from rekindle import config
from rekindle.cli.options import as_json, here
from rekindle.cli.output import echo, print_json
from rekindle.errors import storing
from rekindle.policy.redact.finding import find as find_secrets
from rekindle.policy.redact.finding import redact as without_secrets


@click.command()
@click.argument(
    "file", required=False, type=click.Path(exists=True, dir_okay=False, allow_dash=True)
)
@as_json
def redact(file: str | None, as_json: bool) -> None:
    """Print FILE with a placeholder for every secret in it.

    Without FILE, or with a dash, standard input is read. With --json each finding is one line
    instead: its line, counted from 0, where it starts and ends there, in characters, and the rule
    that found it. What stands under `redact: allow:` in rekindle.yaml is left as it is.
    """
    allow = config.load(here()).manifest.redact.allow if config.find(here()) else []
    with storing(file or "standard input"), click.open_file(file or "-", "rb") as source:
        # Bytes that are no text pass as they came.
        text = source.read().decode("utf-8", "surrogateescape")
    if not as_json:
        cleaned = without_secrets(text, allow)
        if sys.stdout.isatty():
            echo(cleaned, nl=False)
        else:  # a filter passes every other byte on
            sys.stdout.buffer.write(cleaned.encode("utf-8", "surrogateescape"))
        return
    line = line_start = position = 0
    for found in find_secrets(text, allow):
        breaks = text.count("\n", position, found.start)
        if breaks:
            line += breaks
            line_start = text.rfind("\n", position, found.start) + 1
        position = found.start
        start, end = found.start - line_start, found.end - line_start
        row = {"line": line, "start": start, "end": end, "rule": found.rule}
        print_json(row)
