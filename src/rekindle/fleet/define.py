"""How an agent is set up, taken from a project's folder, to be sent to the fleet."""

from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path, PurePath

from rekindle.config import Project, read_text
from rekindle.documents.event import AnyEvent, WorkspacePushed
from rekindle.documents.manifest import Agent
from rekindle.documents.workspace import for_any_host, work_ref
from rekindle.errors import LiteralSecretError, ManifestError
from rekindle.fleet.place import relative
from rekindle.fleet.workspace import Workspace, remote_of
from rekindle.policy import addresses, handoff
from rekindle.policy.redact.redaction import Redaction
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
    _require_no_secrets(project)
    found = remote_of(project.path / (entry.dir or AgentDefaults().dir))
    return Definition(
        manifest=read_text(project.path),
        files=_redacted(project, _files(project, entry)),
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


def _require_no_secrets(project: Project) -> None:
    """Refuse a manifest that would take a secret to the engine, which keeps it."""
    for number, address in enumerate(project.manifest.notify):
        if not addresses.is_without_secrets(address):
            raise LiteralSecretError(
                f"address {number + 1} of `notify:`",
                line=project.marked.line(("notify", number)),
                hint="set a variable to the address on each host of the fleet, and name it instead:"
                " `notify: [$ALERTS]`",
            )
    before = read_text(project.path).splitlines()
    after = _redaction(project).text("\n".join(before)).splitlines()
    for number, (line, cleaned) in enumerate(zip_longest(before, after), 1):
        if line != cleaned:
            raise LiteralSecretError(
                "this line",
                line=number,
                hint="set a variable on each host of the fleet, and name it instead, as in"
                " `env: {API_TOKEN: $API_TOKEN}`; what is not a secret goes to `redact: allow:`",
            )


def files_with_secrets(project: Project, name: str) -> list[str]:
    """Return the files that hosts of the fleet get without their secrets."""
    texts = _files(project, project.manifest.agents[name])
    return [file for file, text in _redacted(project, texts).items() if texts[file] != text]


def _redacted(project: Project, texts: dict[str, str]) -> dict[str, str]:
    return {file: _redaction(project).text(text) for file, text in texts.items()}


def _redaction(project: Project) -> Redaction:
    return Redaction(tuple(project.manifest.redact.allow))


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
