"""The table of agents behind the bridge, generated from their recordings."""

import json
from pathlib import Path
from typing import Any

from rekindle.ports import Harness
from rekindle.testing.recordings import Recording, load_recordings

COLUMNS = {
    "prompt": "text",
    "tool call": "tool",
    "`kill -9` in a tool": "sigkill",
    "resume after it": "resume-after-sigkill",
    "unknown session": "resume-missing",
    "usage limit": "limit",
    "overload": "overload",
    "login error": "no-login",
}
"""The recorded case of each column."""
ABOUT = """\
Each agent was installed from its registry at the given version, and run through the bridge. The
table shows how Rekindle classifies the exit in each case.
"""


def table(folder: Path, harness: Harness) -> list[str]:
    """Return the lines of the table for the agents that have recordings in a folder."""
    head = ["agent", "asks before a command", "reports", *COLUMNS]
    rows = [ABOUT, f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for one in sorted(folder.iterdir()):
        cases = {recording.name: recording for recording in load_recordings(one)}
        cells = [one.name.replace("-", " ", 1), *_describe(cases["tool"])]
        cells += [_show(cases[case], harness) for case in COLUMNS.values()]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def _describe(recording: Recording) -> tuple[str, str]:
    """Return whether the agent asks, and what it reports about its context and cost."""
    lines = _parse(recording)
    asks = any(line["type"] == "decided" for line in lines)
    used = [line for line in lines if line["type"] == "used"]
    reports = ["context"] if any(line.get("window") for line in used) else []
    reports += ["cost"] if any(line.get("usd") is not None for line in used) else []
    return ("yes" if asks else "no", ", ".join(reports) or "nothing")


def _show(recording: Recording, harness: Harness) -> str:
    """Return the kind of an exit, and how the session was resumed."""
    kind = recording.exit(harness).kind
    how = next((line["how"] for line in _parse(recording) if line["type"] == "opened"), "")
    return f"{kind} (by `{how}`)" if recording.resumes and how else kind


def _parse(recording: Recording) -> list[dict[str, Any]]:
    return [json.loads(line) for line in recording.stream]
