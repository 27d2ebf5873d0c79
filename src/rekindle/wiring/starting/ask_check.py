"""Check that a persona's `ask` rules are obeyed."""

from typing import Literal

from rekindle.config import Project
from rekindle.documents.manifest import Persona
from rekindle.errors import ManifestError
from rekindle.policy.settings.runtime_settings import AgentDefaults
from rekindle.wiring.sandbox_setup import find_profile


def check_ask(
    project: Project, name: str, gate: Literal["none", "open", "closed"], persona: Persona
) -> None:
    """Refuse `ask` rules if the CLI would not obey them, or not if its hooks were stopped.

    Raises:
        ManifestError: The CLI cannot ask, or needs a sandbox for that.
    """
    entry = project.manifest.agents[name]
    if not (persona.permissions and persona.permissions.ask) or gate == "closed":
        return
    harness = entry.harness
    if gate == "none":
        problem = f"{harness} cannot wait for an approval"
        hint = "remove `ask:`, and deny the calls instead"
    elif entry.mode == "stay":
        problem = f"{harness} asks you itself in a terminal"
        hint = "remove `ask:`, or write `mode: loop`"
    elif find_profile(project, name) is None:
        problem = f"{harness} runs a call if the agent stops its hooks, so it needs a sandbox"
        hint = f"write `sandbox: on` in the entry of {name}"
    else:
        return
    named = entry.persona or AgentDefaults().persona
    raise ManifestError(
        f"agent {name}: `ask:` is not possible here: {problem}",
        line=project.marked.line(("personas", named, "permissions")),
        hint=hint,
    )
