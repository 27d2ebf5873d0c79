"""Render the prompt for a review of finished work, and parse the reviewer's verdict.

The documented answer is `DONE` alone on the first or last line, or `NOT DONE` followed by the
missing items. Free text is interpreted like a relay's Next Action (`policy.relay.claimed_end`). If
in doubt, the reviewer is assumed to disagree.
"""

import re
from typing import Literal

from rekindle.documents import relay as relays
from rekindle.documents.relay import (
    DONE_DIRECTIVE,
    RelayField,
)
from rekindle.policy.relay.claimed_end import reports_all_done

ReviewVerdict = Literal["passed", "failed"]
_REFUSED = re.compile(rf"\W*(?:verdict\W+)?not {DONE_DIRECTIVE}\b\W*", re.IGNORECASE)
_AGREED = re.compile(rf"\W*(?:verdict\W+)?{DONE_DIRECTIVE}\W*", re.IGNORECASE)
_PROMPT = """\
# Review
An agent reports that the task below is done. Verify this without changing anything: read the files,
and run the tests if you may.

If all of the task is done, answer with the word {done} alone on the last line. Otherwise write
NOT {done}, and list the missing items below it, one on each line. The agent reads this list next.

# The task
{task}

# The agent's last relay
{relay}
"""


def render_review_prompt(task: str, relay: str) -> str:
    """Return the prompt for a review."""
    return _PROMPT.format(
        done=DONE_DIRECTIVE, task=task.strip(), relay=relay.strip() or "It wrote none."
    )


def parse_review_verdict(text: str) -> tuple[ReviewVerdict, str]:
    """Return whether the reviewer agrees and, if not, the missing items."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if match := _REFUSED.match(line):
            missing = "\n".join(filter(str.strip, (line[match.end() :], *lines[number + 1 :])))
            return "failed", missing or "\n".join(lines[:number])
    is_word = any(_AGREED.fullmatch(line) for line in lines[:1] + lines[-1:])
    if is_word or (
        lines and reports_all_done(relays.compose({RelayField.NEXT_ACTION: text.strip()}))
    ):
        return "passed", ""
    return "failed", text.strip()
