"""The `--watch` screen, which is repainted whenever its text changes."""

import os
import sys
import time
from collections.abc import Callable

from rekindle.cli.output import (
    LineParts,
    echo,
    paint_lines,
)
from rekindle.formats.counts import render_count
from rekindle.thresholds.screens import STATUS_COLUMNS


def read_terminal_size() -> os.terminal_size:
    """Return the terminal's size. The variables COLUMNS and LINES override it.

    Without a terminal, the number of lines is unlimited.
    """
    columns, lines = (os.environ.get(name, "") for name in ("COLUMNS", "LINES"))
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):  # The output is a pipe, or a stream without a file descriptor.
        size = os.terminal_size((STATUS_COLUMNS, sys.maxsize))
    return os.terminal_size(
        (
            int(columns)
            if columns.isdecimal() and int(columns)
            else size.columns or STATUS_COLUMNS,
            int(lines) if lines.isdecimal() and int(lines) else size.lines or sys.maxsize,
        )
    )


def repaint_until_interrupted(
    render: Callable[[], list[LineParts]],
    seconds: float,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Show the lines that `render` returns, and refresh them every few seconds until Ctrl-C.

    It also ends when `is_over` returns True, after showing the last lines.

    In a terminal, new lines replace the old ones. In a pipe or file, they are appended after an
    empty line.
    """
    before: list[LineParts] | None = None
    is_terminal = sys.stdout.isatty()
    while True:
        lines = render()
        if is_terminal:
            lines = fit_lines(lines, max(1, read_terminal_size().lines - 1))
        if lines != before:
            if is_terminal:
                paint_lines(lines, is_first=before is None)
            else:
                _print_below(lines, is_first=before is None)
            sys.stdout.flush()
            before = lines
        if is_over():
            return
        time.sleep(seconds)


def fit_lines(lines: list[LineParts], most: int) -> list[LineParts]:
    """Return at most `most` lines. If there are more, the last line shows how many were omitted."""
    if len(lines) <= most:
        return lines
    shown = lines[: most - 1]
    return [*shown, (f"… {render_count(len(lines) - len(shown), 'more line')}",)]


def _print_below(lines: list[LineParts], *, is_first: bool) -> None:
    if not is_first:
        echo()
    for line in lines:
        echo(*line)
