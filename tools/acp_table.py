"""The table of agents behind the bridge, generated from their recordings."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rekindle import plugins
from rekindle.ports import Harness
from rekindle.testing.recordings import Recording, load_recordings

COLUMNS = {
    "prompt": "text",
    "tool call": "tool",
    "`kill -9` in a tool": "sigkill",
    "resume after it": "resume-after-sigkill",
    "unknown session": "resume-missing",
    "usage limit": "limit",
    "limit after a tool call": "limit-later",
    "overload": "overload",
    "login error": "no-login",
}
"""The recorded case of each column."""
ABOUT = """\
## Agents that speak the Agent Client Protocol

Each of these agents was installed from its registry at the given version, and recorded behind the
bridge. The table shows the exit that Rekindle sees in each case, and what the agent itself reports.
`end_turn` is the protocol's word for a finished turn, but some agents also use it if the model
refused every request. To record them again, run `just record acp:opencode`, and similarly for the
other agents.

Kimi Code does not say why its turn ended, not even after a tool call, so Rekindle treats a usage
limit as an overload: it retries with growing pauses. It also stores a turn only some time after a
tool has started: killed at once, it resumes without that turn.
"""


def table(folder: Path) -> list[str]:
    """Return the lines of the table for the agents that have recordings in a folder."""
    head = ["agent", "asks before a command", "reports", *COLUMNS]
    rows = [ABOUT, f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for one in sorted(folder.iterdir()):
        cases = {recording.name: recording for recording in load_recordings(one)}
        agent, _, version = one.name.rpartition("-")
        harness = plugins.Harnesses()[agent]
        cells = [f"`{agent}` {version}", _tell_asking(cases), _list_reports(cases["tool"])]
        cells += [_show(cases[case], harness) for case in COLUMNS.values()]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def _tell_asking(cases: Mapping[str, Recording]) -> str:
    """Return whether the agent asks before it runs commands, of which one is harmless."""
    asked = [
        any(line["type"] == "decided" for line in _parse(cases[case]))
        for case in ("tool", "failing-tool")
    ]
    return "yes" if all(asked) else "sometimes" if any(asked) else "no"


def _list_reports(recording: Recording) -> str:
    """Return what the agent reports about its context window and its cost."""
    used = [line for line in _parse(recording) if line["type"] == "used"]
    reports = ["context"] if any(line.get("window") for line in used) else []
    reports += ["cost"] if any(line.get("usd") is not None for line in used) else []
    return ", ".join(reports) or "nothing"


def _show(recording: Recording, harness: Harness) -> str:
    """Return the exit of a launch, and what the agent itself reported."""
    kind = recording.exit(harness).kind
    lines = {line["type"]: line for line in _parse(recording)}
    ended = lines.get("ended")
    if ended is None:
        return kind
    if error := ended.get("error"):
        return f"{kind}: error {error['code']}"
    if kind == "clean":
        return f"{kind}: `session/{lines['opened']['how']}`" if recording.resumes else kind
    how = "failure reported" if ended.get("failure") else None
    how = how or ("error as text" if ended["spoke"] else "no text")
    return f"{kind}: `{ended['stop']}`, {how}"


def _parse(recording: Recording) -> list[dict[str, Any]]:
    return [json.loads(line) for line in recording.stream]
