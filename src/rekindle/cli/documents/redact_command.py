"""`rekindle redact`: print a file without its secrets."""

import sys

import click

from rekindle import config
from rekindle.cli.options import (
    find_current_folder,
    json_option,
)
from rekindle.cli.output import echo, print_bare_json
from rekindle.errors import translate_os_errors
from rekindle.policy.redact.find_secrets import find_secrets
from rekindle.policy.redact.find_secrets import redact_text as without_secrets


@click.command()
@click.argument(
    "file", required=False, type=click.Path(exists=True, dir_okay=False, allow_dash=True)
)
@json_option
def redact(file: str | None, as_json: bool) -> None:
    """Print FILE with every secret replaced by a placeholder.

    Without FILE, or if FILE is `-`, Rekindle reads standard input. With --json, it prints each
    finding on its own line, with the line number (counted from 0), the start and end within that
    line (in characters), and the rule that matched. Text listed under `redact: allow:` in
    rekindle.yaml is not redacted.
    """
    allow = (
        config.load_project(find_current_folder()).manifest.redact.allow
        if config.find_project(find_current_folder())
        else []
    )
    with (
        translate_os_errors(file or "standard input"),
        click.open_file(file or "-", "rb") as source,
    ):
        # `surrogateescape` preserves bytes that are not UTF-8.
        text = source.read().decode("utf-8", "surrogateescape")
    if not as_json:
        cleaned = without_secrets(text, allow)
        if sys.stdout.isatty():
            echo(cleaned, nl=False)
        else:  # Except for the secrets, the output must equal the input byte for byte.
            sys.stdout.buffer.write(cleaned.encode("utf-8", "surrogateescape"))
        return
    line = line_start = position = 0
    for secret in find_secrets(text, allow):
        breaks = text.count("\n", position, secret.start)
        if breaks:
            line += breaks
            line_start = text.rfind("\n", position, secret.start) + 1
        position = secret.start
        start, end = secret.start - line_start, secret.end - line_start
        row = {"line": line, "start": start, "end": end, "rule": secret.rule}
        print_bare_json(row)
