"""How an agent is set up, taken from a project's folder, to be sent to the fleet."""

from collections.abc import Callable
from pathlib import Path, PurePath

from rekindle.config import Project, read_text
from rekindle.documents.event import AnyEvent, WorkspacePushed
from rekindle.documents.manifest import Agent
from rekindle.documents.workspace import for_any_host, work_ref
from rekindle.errors import ManifestError
from rekindle.fleet.place import relative
from rekindle.fleet.workspace import Workspace, remote_of
from rekindle.policy import handoff
from rekindle.policy.register import Definition
from rekindle.policy.settings import AgentDefaults, Fleet, Tls
from rekindle.policy.supervise import Limits
from rekindle.stores.files.layout import Root
from rekindle.system import clock, host
from rekindle.wiring.store import text_of


def define(project: Project, fleet: Fleet, name: str) -> Definition:
    """What every host needs to run an agent: nothing of it is read from the project again."""
    entry = project.manifest.agents[name]
    if entry.mode == "stay":
        raise ManifestError(
            f"agent {name}: `mode: stay` needs a person at a terminal, and a fleet has none",
            line=project.marked.line(("agents", name, "mode")),
            hint="leave `mode:` out, or run it on your own host, from a project without `fleet:`",
        )
    found = remote_of(project.path / (entry.dir or AgentDefaults().dir))
    return Definition(
        manifest=read_text(project.path),
        files=_files(project, entry),
        limits=Limits(
            runtime=project.settings.runtime,
            budget=entry.budget,
            threshold=handoff.threshold(entry.handover, project.settings.runtime.relay),
        ),
        pool=fleet.pool,
        heartbeat_seconds=float(fleet.heartbeat_timeout),
        remote=for_any_host(found.url) if found else "",
        within=found.path if found else "",
        notifies=bool(project.manifest.notify),
    )


def published(
    project: Project, fleet: Fleet, name: str, generation: int, say: Callable[[str], None]
) -> list[AnyEvent]:
    """Push the agent's folder as it is, for the first host; what is to be said of it, if anything.

    Without it that host would begin with what was pushed by hand, whenever that was.
    """
    folder = (project.path / (project.manifest.agents[name].dir or AgentDefaults().dir)).resolve()
    found = remote_of(folder)
    if found is None:
        return []
    top = folder.parents[len(PurePath(found.path).parts) - 1] if found.path else folder
    workspace = Workspace(
        top, remote=found.url, agent=name, generation=generation, host=host.identify()
    )
    keys = ((project.path / file).resolve() for file in _for_the_engine(fleet))
    made = workspace.publish([str(key.relative_to(top)) for key in keys if key.is_relative_to(top)])
    count = workspace.uncommitted
    which = f", with {count} that {'is' if count == 1 else 'are'} not committed" if count else ""
    branch = work_ref(name).removeprefix("refs/heads/")
    say(f"the files of {name} were pushed as they are{which}, to the branch {branch}")
    return [
        WorkspacePushed(ts=clock.now(), revision=made.revision, head=made.head, branch=made.branch)
    ]


def _for_the_engine(fleet: Fleet) -> list[str]:
    """The files by which the engine knows us, and those of the keys: each host has its own."""
    tls = fleet.tls if isinstance(fleet.tls, Tls) else Tls()
    return [file for file in (tls.ca, tls.cert, tls.key, *fleet.codec.key_files) if file]


def _files(project: Project, entry: Agent) -> dict[str, str]:
    personas = (one.system_prompt_file for one in project.manifest.personas.values())
    named = {
        "prompt": entry.prompt or AgentDefaults().prompt,
        "rules": entry.rules,
        **{f"personas {number}": file for number, file in enumerate(personas)},
    }
    files = {}
    for key, file in named.items():
        if file:
            files[str(relative(file))] = text_of(project, file, key)
    own = Root(project.path).summarizer
    if own.is_file():
        files[str(own.relative_to(project.path))] = text_of(
            project, str(Path(own).relative_to(project.path)), "summarizer"
        )
    return files
