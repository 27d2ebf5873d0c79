"""The agent of the fleet's tests: each cycle adds one line, as its relay says.

It adds the line only if it is missing: a cycle that was cut off is repeated, on files from before
or after it. Files that came back wrong stay wrong.
"""

import os
import re
import sys
import time
from pathlib import Path

RELAY = """\
## Current Phase
Implementation

## What We Did This Cycle
- wrote line {done}

## Next Action
Write line {next} of the list, then verify it
"""

folder = Path(os.environ["REKINDLE_FOLDER"])
relay = folder / "memories/consensus.md"
said = (relay.read_text() if relay.exists() else "") if "--relay" in sys.argv else sys.stdin.read()
found = re.findall(r"Write line (\d+) of the list", said)
number = int(found[-1]) if found else 1
until = time.monotonic() + float(os.environ["STEP_SECONDS"])
if number % 2:
    time.sleep(max(0, until - time.monotonic()))
lines = Path(os.environ["REKINDLE_AGENT"] + ".txt")
known = lines.read_text() if lines.exists() else ""
if f"{number}\n" not in known.splitlines(keepends=True):
    lines.write_text(f"{known}{number}\n")
# The last cycles are short: they wait for nothing.
while time.monotonic() < until and not Path(os.environ["FINISH"]).exists():
    time.sleep(0.05)
draft = folder.parents[1] / "drafts" / folder.name / "relay.md"
draft.write_text(RELAY.format(done=number, next=number + 1))
