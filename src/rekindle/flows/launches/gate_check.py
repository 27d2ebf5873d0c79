"""Check before a launch that the CLI will run the gate for the persona's `ask` rules."""

import os
from pathlib import Path

from rekindle.errors import ManifestError, RekindleError
from rekindle.flows.hooks import examine_hooks
from rekindle.flows.hooks.hook_locations import locate_hooks
from rekindle.flows.supervisor_ports import AgentSpec
from rekindle.formats import json_edit
from rekindle.system.files import durable_files


def require_gate(agent: AgentSpec) -> None:
    """Refuse a launch whose gate must be installed in the CLI's settings and is not.

    The check is repeated for every launch, because the agent may have changed the settings in its
    own folder.

    Raises:
        ManifestError: The CLI would not run the gate.
    """
    permissions, harness = agent.persona.permissions, agent.harness
    if not (permissions and permissions.ask) or harness.CAN.launch_hooks or agent.stays:
        return
    place = locate_hooks(harness, "user", None, agent.environment)
    report = examine_hooks.examine_hooks(place)
    if report.state != "installed":
        why = "; ".join(report.problems) or "they are not installed"
        fix = report.fix or f"run `rekindle hooks install --harness {harness.NAME} --for user`"
        raise _make_error(agent, f"the hooks in your {harness.NAME} settings: {why}", fix)
    settings = Path(agent.folder) / place.files.folder / place.files.project
    try:
        data = durable_files.read_bytes(Path(os.path.realpath(settings))) or b""
    except RekindleError as error:
        raise _make_error(agent, str(error), f"remove {settings}") from error
    text = json_edit.blank_comments(data.decode("utf-8", "replace"))
    user = examine_hooks.read_installation(place)
    if obstacle := harness.find_gate_obstacle(user, text, agent.environment):
        raise _make_error(agent, obstacle.why, obstacle.fix)


def _make_error(agent: AgentSpec, why: str, fix: str) -> ManifestError:
    return ManifestError(f"agent {agent.name}: `ask:` is not possible here: {why}", hint=fix)
