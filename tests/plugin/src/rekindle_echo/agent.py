"""The program itself, `echo-agent`: it repeats what it is told, and keeps its sessions."""

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
    """Print a line of JSON for a program, and text for a person."""
    print(json.dumps({what: text}) if "--json" in sys.argv else text, flush=True)
