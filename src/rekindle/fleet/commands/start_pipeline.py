"""Start a run of a pipeline on a fleet: push its first commit, and start its workflow."""

import msgspec

from rekindle.config import Project
from rekindle.documents import events
from rekindle.documents.commits.work_commit import RemoteLocation
from rekindle.documents.manifest_pipelines import Pipeline
from rekindle.documents.pipelines.pipeline_events import PipelineStarted
from rekindle.documents.pipelines.run_branches import make_run_refs
from rekindle.errors import ManifestError, UsageError
from rekindle.fleet.commands.define_agent import define_shared, make_redaction
from rekindle.fleet.hosts.work_branch import find_remote
from rekindle.formats import json_codec, validation
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.settings.runtime_settings import FLEET_DOCUMENT_BYTES, FleetSettings
from rekindle.system import clock
from rekindle.system.git.remote_repository import RemoteRepository
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.wiring.pipelines.run_refs import find_repository
from rekindle.wiring.pipelines.start_run import define_run

_REFUSED = {
    "copy": (
        "its hosts do not have the files of your checkout that git ignores",
        "store the files on each host, and name their paths in `env:`",
    ),
    "prepare": (
        "a worker may continue on another host, in a new clone",
        "let the command or the prompt of each step prepare the clone if necessary",
    ),
}
"""Keys that do not work on a fleet, each with the reason and a hint."""


def register_run(
    project: Project, fleet: FleetSettings, name: str, text: str
) -> RegisteredPipeline:
    """Return a new run for the engine. Its number is reserved, and its first commit is pushed.

    Raises:
        UsageError: There is no git remote, or no commit.
        ManifestError: A key of the pipeline does not work on a fleet.
        WorkspaceError: The remote refuses the push.
    """
    _refuse_keys(project, project.manifest.pipelines[name], name)
    remote = require_remote(project)
    defined = _redact(project, define_run(project, name, text))
    encoded = validation.encode_json(defined)
    if len(encoded) > FLEET_DOCUMENT_BYTES:
        raise UsageError(
            f"pipeline {name} has {len(encoded):,} bytes of prompts and schemas, but the engine "
            f"takes at most {FLEET_DOCUMENT_BYTES:,}",
            hint="let a prompt name a file of the repository instead",
        )
    shared = define_shared(project, fleet)
    number = reserve_number(find_repository(project), remote.url, name, defined.base)
    definition = msgspec.structs.replace(defined, run=number)
    started = PipelineStarted(
        ts=clock.read_clock(),
        pipeline=name,
        run=number,
        base=definition.base,
        input=definition.input,
        definition=json_codec.hash_bytes(encoded),
    )
    return RegisteredPipeline(
        definition=definition,
        agent=shared,
        lines=(events.render(started).decode(),),
    )


def require_remote(project: Project) -> RemoteLocation:
    """Return the git remote that the hosts and this project share.

    Raises:
        UsageError: There is none.
    """
    remote = find_remote(project.path)
    if remote is None:
        raise UsageError(
            "a pipeline on a fleet needs a git remote, and this repository has none",
            hint="add one that every host can reach: git remote add origin URL",
        )
    return remote


def reserve_number(copy: WorkingCopy, url: str, pipeline: str, base: str) -> int:
    """Return the number of a new run, which no other host can get.

    The push of the first commit fails if the number is taken.
    """
    prefix = make_run_refs(pipeline, 0).removesuffix("0/")
    while True:
        known = RemoteRepository(url, "").list_refs(f"{prefix}*")
        numbers = [ref.removeprefix(prefix).partition("/")[0] for ref in known]
        number = max(map(int, filter(str.isdigit, numbers)), default=0) + 1
        ref = f"{make_run_refs(pipeline, number)}base"
        if RemoteRepository(url, ref).push(copy, base, ""):
            return number


def _refuse_keys(project: Project, pipeline: Pipeline, name: str) -> None:
    for key, (reason, hint) in _REFUSED.items():
        if getattr(pipeline, key):
            raise ManifestError(
                f"pipeline {name}: `{key}:` does not work on a fleet, because {reason}",
                line=project.marked.line(("pipelines", name, key)),
                hint=hint,
            )


def _redact(project: Project, definition: RunDefinition) -> RunDefinition:
    """Return the definition without secrets, because the engine stores it."""
    redaction = make_redaction(project)
    return msgspec.structs.replace(
        definition,
        input=redaction.text(definition.input),
        prompts={step: redaction.text(text) for step, text in definition.prompts.items()},
    )
