"""The `echo-agent` program, which repeats its prompt and stores its sessions in files."""

import json
import sys
from pathlib import Path


def main() -> None:
    option, _, session = sys.argv[1].partition("=")
    kept = Path(f".echo-{session}")
    if option == "--resume" and not kept.exists():
        sys.exit("no such session")
    kept.touch()
    say("opened", session)
    given = [word.removeprefix("--prompt=") for word in sys.argv if word.startswith("--prompt=")]
    for line in given or sys.stdin:
        say("said", line.strip())
    say("done", session)


def say(what: str, text: str) -> None:
    """Print a line as JSON for a program, or as text for a person."""
    print(json.dumps({what: text}) if "--json" in sys.argv else text, flush=True)
