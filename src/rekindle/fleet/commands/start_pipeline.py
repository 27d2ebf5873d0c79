"""Start a pipeline run on a fleet: push its first commit, and start its workflow."""

import msgspec

from rekindle.config import Project
from rekindle.documents.commits.work_commit import RemoteLocation
from rekindle.documents.manifest_pipelines import Pipeline
from rekindle.errors import ManifestError, UsageError
from rekindle.fleet.commands.define_agent import define_shared, make_redaction
from rekindle.fleet.hosts.work_branch import find_remote
from rekindle.fleet.pipelines.run_numbers import reserve_number
from rekindle.formats import validation
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline, begin_run
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.pipelines.worker_names import find_last_run
from rekindle.policy.settings.runtime_settings import FLEET_DOCUMENT_BYTES, FleetSettings
from rekindle.system import clock, host
from rekindle.wiring.pipelines.run_refs import find_repository, list_run_names
from rekindle.wiring.pipelines.start_run import define_run

_REFUSED = {
    "copy": (
        "its hosts do not have the files of your checkout that git ignores",
        "store the files on each host, and name their paths in `env:`",
    ),
}
"""Keys that are not supported on a fleet, each with the reason and a hint."""


def register_run(
    project: Project, fleet: FleetSettings, name: str, text: str
) -> RegisteredPipeline:
    """Return a new run for the engine. Its number is reserved, and its first commit is pushed.

    Raises:
        UsageError: There is no git remote, or no commit.
        ManifestError: A key in the pipeline is not supported on a fleet.
        WorkspaceError: The remote refuses the push.
    """
    template = define_template(project, fleet, name, text)
    base, url = template.definition.base, require_remote(project).url
    source = find_repository(project)
    last = find_last_run(list_run_names(source), name)
    number = reserve_number(source, url, name, base, last)
    return begin_run(template, base, number, clock.read_clock(), by=host.identify_author())


def define_template(
    project: Project, fleet: FleetSettings, name: str, text: str = ""
) -> RegisteredPipeline:
    """Return a run without a number or a log.

    Raises:
        UsageError: There is no git remote, or no commit.
        ManifestError: A key in the pipeline is not supported on a fleet.
    """
    _refuse_keys(project, project.manifest.pipelines[name], name)
    require_remote(project)
    defined = _redact(project, define_run(project, name, text))
    encoded = validation.encode_json(defined)
    if len(encoded) > FLEET_DOCUMENT_BYTES:
        raise UsageError(
            f"pipeline {name} has {len(encoded):,} bytes of prompts and schemas, but the engine "
            f"takes at most {FLEET_DOCUMENT_BYTES:,}",
            hint="let a prompt name a file of the repository instead",
        )
    return RegisteredPipeline(definition=defined, agent=define_shared(project, fleet))


def require_remote(project: Project) -> RemoteLocation:
    """Return the git remote that this project shares with the hosts.

    Raises:
        UsageError: There is no git remote.
    """
    remote = find_remote(project.path)
    if remote is None:
        raise UsageError(
            "a pipeline on a fleet needs a git remote, and this repository has none",
            hint="add one that every host can reach: git remote add origin URL",
        )
    return remote


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
