"""The program of the workers in the fleet's tests of pipelines. Its prompt says what to write."""

import json
import os
import re
import sys
import time
from pathlib import Path

prompt = sys.stdin.read()
if match := re.search(r"PLAN (\d+)", prompt):
    items = [f"item{number:02}" for number in range(int(match[1]))]
    Path("items.json").write_text(json.dumps(items))
elif match := re.search(r"BUILD (item\d+) OF (\S+)", prompt):
    assert match[1] in json.loads(Path(match[2]).read_text()), "the list of items is not here"
    time.sleep(float(os.environ.get("STEP_SECONDS", "0")))
    with Path(f"{match[1]}.txt").open("a") as file:
        file.write(f"{match[1]}\n")
