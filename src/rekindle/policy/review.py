"""A review: what another persona is asked about a reported end, and what its answer means.

The documented answer is `DONE` alone on the first or the last line, or `NOT DONE` and what is
missing. A reviewer's own words are read as those of a relay's Next Action (`policy.claimed_end`).
In doubt the review does not agree.
"""

import re
from typing import Literal

from rekindle.documents import relay as relays
from rekindle.documents.relay import DONE, Field
from rekindle.policy.claimed_end import claims_end

Verdict = Literal["passed", "failed"]
_REFUSED = re.compile(rf"\W*(?:verdict\W+)?not {DONE}\b\W*", re.IGNORECASE)
_AGREED = re.compile(rf"\W*(?:verdict\W+)?{DONE}\W*", re.IGNORECASE)
_PROMPT = """\
# Review
An agent reports that the task below is done. Verify that, and change nothing: read its files, and
run its tests if you may.

If all of the task is done, answer with the word {done} alone on the last line. Otherwise write
NOT {done}, and below it what is missing, one item on each line. The agent reads that next.

# The task
{task}

# The agent's last relay
{relay}
"""


def ask_for_review(task: str, relay: str) -> str:
    """Return the prompt of a review."""
    return _PROMPT.format(done=DONE, task=task.strip(), relay=relay.strip() or "It wrote none.")


def read_verdict(text: str) -> tuple[Verdict, str]:
    """Return whether a reviewer agrees, and what is missing if it does not."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if found := _REFUSED.match(line):
            missing = "\n".join(filter(str.strip, (line[found.end() :], *lines[number + 1 :])))
            return "failed", missing or "\n".join(lines[:number])
    is_word = any(_AGREED.fullmatch(line) for line in lines[:1] + lines[-1:])
    if is_word or (lines and claims_end(relays.compose({Field.NEXT_ACTION: text.strip()}))):
        return "passed", ""
    return "failed", text.strip()
