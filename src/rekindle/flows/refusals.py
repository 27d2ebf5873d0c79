"""The tool calls of a launch that its CLI refused, and that a person may want to permit."""

import os

from rekindle.documents.launch import RefusedCall
from rekindle.flows import transcripts
from rekindle.flows.launch import Launch
from rekindle.flows.world import Agent


def find_refused(agent: Agent, launch: Launch) -> list[RefusedCall]:
    """Return the refused calls of a launch, without those that the operator's settings forbid.

    In a terminal the CLI asks its person itself.
    """
    if agent.stays:
        return []
    found = list(launch.watched.refused_calls)
    if path := launch.transcript():
        found += agent.harness.refused_calls(transcripts.tail(path).split(b"\n"))
    return [call for call in found if not _is_forbidden(agent, call)]


def _is_forbidden(agent: Agent, call: RefusedCall) -> bool:
    """Whether a persona denies the tool, or the call would write what Rekindle protects."""
    permissions = agent.persona.permissions
    rules = (permissions.deny if permissions else None) or ()
    if any(rule.partition("(")[0] == call.tool for rule in rules):
        return True
    given = [value for value in call.arguments.values() if isinstance(value, str)]
    paths = [os.path.normpath(os.path.join(agent.folder, value)) for value in given]  # noqa: PTH118 - text, not a file
    return any(_is_in(path, protected) for path in paths for protected in agent.protected)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
