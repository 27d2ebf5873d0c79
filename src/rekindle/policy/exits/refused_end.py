"""Explain in one line why the run does not end after a cycle.

For the next cycle, the log stores how the `until:` command failed, followed by the end of its
output. `render_failure` writes that text, and `explain_refusal` parses it.
"""

from collections.abc import Sequence

from rekindle.documents.events import CycleEnded
from rekindle.formats.identifiers import to_one_line
from rekindle.thresholds.texts import DID_CHARACTERS

NOT_STARTED = "could not be started"
REFUSED = "the review does not agree"
_OUTPUT = " Its output ends with:"
_SILENT = " It printed nothing."


def render_failure(command: str, how: str, output: Sequence[str]) -> str:
    """Describe how an `until:` command failed, with the last lines of its output."""
    shown = "".join(f"\n    {line}" for line in output)
    return f"`{command}` {how}.{_OUTPUT + shown if shown else _SILENT}"


def explain_failure(words: str) -> str:
    """Describe in one line how `until:` failed, or why it could not be started."""
    head, _, output = words.partition("\n")
    how = head.removesuffix(_OUTPUT).removesuffix(_SILENT).removesuffix(".")
    _, is_missing, reason = how.partition(f"` {NOT_STARTED}")
    if is_missing:
        return to_one_line(f"`until:` {NOT_STARTED}{reason}", DID_CHARACTERS)
    last = next(filter(None, map(str.strip, reversed(output.splitlines()))), "")
    return to_one_line(": ".join(filter(None, ("`until:` fails", how, last))), DID_CHARACTERS)


def explain_refusal(ended: CycleEnded) -> str:
    """Explain why `until:` or the review keeps the run going, or return "" if neither failed."""
    if ended.until == "failed":
        return explain_failure(ended.until_words)
    if ended.review == "failed":
        return to_one_line(": ".join(filter(None, (REFUSED, ended.review_words))), DID_CHARACTERS)
    return ""
