"""Put an agent's reviewer in the agent's place."""

import msgspec

from rekindle.config import Project
from rekindle.errors import ManifestError
from rekindle.plugins import ALIASES
from rekindle.policy.routes.list_routes import list_accounts
from rekindle.wiring.agent_environment import locate_words


def with_reviewer(project: Project, name: str) -> Project | None:
    """Return the project with the reviewer in the agent's place, or None without `review:`.

    Raises:
        ManifestError: `review:` names a persona that does not exist.
    """
    entry, personas = project.manifest.agents[name], project.manifest.personas
    if entry.review is None:
        return None
    if entry.review not in personas:
        raise ManifestError(
            f"agent {name}: there is no persona named {entry.review!r}",
            line=project.marked.line(("agents", name, "review")),
            hint=f"use one of: {', '.join(personas) or 'there is none yet'}",
        )
    persona = personas[entry.review]
    harness = persona.adapter or entry.harness
    own = persona.command or (entry.command if harness == entry.harness else None)
    own = list(locate_words(project, name, own)) if own else None
    used = ALIASES.get(harness, harness)
    reviewer = msgspec.structs.replace(
        entry,
        harness=harness,
        harnesses=None,
        accounts=list_accounts(project.manifest, entry, used, ALIASES)[:1] or None,
        persona=entry.review,
        command=own,
        mode="loop",
        review=None,
    )
    agents = {**project.manifest.agents, name: reviewer}
    manifest = msgspec.structs.replace(project.manifest, agents=agents)
    return msgspec.structs.replace(project, manifest=manifest)
