"""Start pipeline runs, and the processes that coordinate them."""

import os
import sys
from collections.abc import Iterator
from datetime import datetime

import msgspec

from rekindle.config import Project
from rekindle.documents.events import RestartRequested
from rekindle.documents.manifest_pipelines import PipelineStep, PromptFile
from rekindle.documents.pipelines.pipeline_events import PipelineStarted
from rekindle.errors import ManifestError, RekindleError, UsageError
from rekindle.flows.supervision.watchdog import WatchReport
from rekindle.formats import json_codec
from rekindle.policy.pipelines.prompt_templates import Ancestor, find_unknown_name
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.pipelines.run_plan import make_plan
from rekindle.policy.pipelines.step_order import list_ancestors
from rekindle.policy.pipelines.worker_entry import make_entry
from rekindle.policy.pipelines.worker_names import find_last_run
from rekindle.policy.supervision import run_moves
from rekindle.stores.files import FileStore
from rekindle.stores.folders import private_files, trust_records
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.stores.pipelines.run_folder import RunFolder, create_run, list_runs
from rekindle.system import clock, json_schema
from rekindle.system.files import durable_files
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.system.processes.child_processes import HostProcesses
from rekindle.wiring.access import trust_checks
from rekindle.wiring.open_store import open_store, read_named_file
from rekindle.wiring.pipelines.run_refs import find_repository, list_run_names
from rekindle.wiring.pipelines.worker_start import select_shared
from rekindle.wiring.starting import start_checks

_COORDINATOR = "rekindle.wiring.pipelines.coordinator_process"
"""Module that runs in a coordinator's process."""


def start_run(
    project: Project, name: str, text: str = "", due: datetime | None = None
) -> RunFolder:
    """Create a pipeline run that the operator has accepted, and start its coordinator.

    If a schedule starts the run, `due` is the run's due time.

    Raises:
        UsageError: There is no repository, no commit, or no text for `{{ input }}`.
        ManifestError: A step cannot run, for example because a prompt file or program is missing.
    """
    definition = define_run(project, name, text)
    check_steps(project, definition)
    hashed = json_codec.hash_bytes(msgspec.json.encode(definition))
    started = PipelineStarted(
        ts=clock.read_clock(),
        pipeline=name,
        run=0,
        base=definition.base,
        input=open_store(project).redaction.text(text),
        definition=hashed,
        due=due,
    )
    private = private_files.find_private_project(project.path)
    names = [*list_run_names(find_repository(project)), *_list_logs(project)]
    folder = create_run(private, definition, started, find_last_run(names, name))
    accept_settings(project, folder)
    start_coordinator(project, folder)
    return folder


def _list_logs(project: Project) -> list[str]:
    """Return the names of all agents that have a log, including workers of earlier runs."""
    path = RekindleFolder(project.path).agents
    return [*durable_files.list_entries(path)] if path.is_dir() else []


def define_run(project: Project, name: str, text: str) -> RunDefinition:
    """Return the definition of a new run, including the contents of the files that it names."""
    pipeline = project.manifest.pipelines[name]
    if pipeline.input == "required" and not text.strip():
        raise UsageError(
            f"pipeline {name} needs a text for {{{{ input }}}}",
            hint=f'add it: rekindle pipeline run {name} "TEXT"',
        )
    source = find_repository(project)
    contracts = [contract for step in pipeline.steps for contract in step.contracts]
    return RunDefinition(
        pipeline=name,
        base=_find_base(source, pipeline.base or "HEAD", name),
        input=text,
        definition=pipeline,
        plan=make_plan(project.manifest, project.marked, name),
        prompts={
            step.id: _read_prompt(project, name, step)
            for step in pipeline.steps
            if step.prompt is not None
        },
        schemas={
            contract.schema_path: _read_schema(project, contract.schema_path)
            for contract in contracts
            if contract.schema_path is not None
        },
    )


def accept_settings(project: Project, folder: RunFolder) -> None:
    """Record that the operator accepts the current settings for the run's workers."""
    settings = select_shared(project, folder.read_definition().definition)
    trust_records.record_settings(folder.settings, settings, clock.read_clock())


def accept_workers(
    project: Project, store: FileStore, folder: RunFolder
) -> Iterator[tuple[str, list[str]]]:
    """Accept the current settings for each running worker, and restart workers that wait for it.

    Yield each worker with its changed settings.
    """
    for _, worker in folder.read_state().list_running():
        name = worker.agent
        if name not in project.workers or not store.exists(name):
            continue  # the coordinator accepts the settings when it starts the worker
        yield name, trust_checks.accept_settings(project, name)
        run, now = store.read(name).projection.run, clock.read_clock()
        if run.is_safe and run.safe.why == run_moves.SETTINGS_REASON:
            desired = run_moves.make_desired_event(run, "running", now)
            store.submit(name, RestartRequested(ts=now), desired)


def start_coordinator(project: Project, folder: RunFolder) -> None:
    """Start a coordinator that outlives this process. If one is running, the new one exits."""
    # -P keeps Python from importing modules in the project's folder.
    argv = [sys.executable, "-P", "-m", _COORDINATOR, folder.pipeline, str(folder.run)]
    HostProcesses().start_detached(
        argv, environment=os.environ, folder=str(project.path), output=folder.output_log
    )


def start_missing_coordinators(project: Project) -> list[WatchReport]:
    """Start a coordinator for each run that has none and has not ended."""
    reports = []
    private = private_files.find_private_project(project.path)
    for folder in list_runs(private):
        name = f"{folder.pipeline} {folder.run}"
        try:
            if trust_records.read_settings(private.pipeline_settings(folder.pipeline)) is None:
                continue  # the run belongs to another folder that was at this path
            if folder.is_coordinated() or not folder.is_open():
                continue
            start_coordinator(project, folder)
            reports.append(WatchReport(name, started=True, words="its coordinator was gone"))
        except RekindleError as error:
            reports.append(WatchReport(name, started=False, words=str(error)))
    return reports


def check_steps(project: Project, definition: RunDefinition) -> None:
    """Refuse steps whose agents could not start, before anything is created.

    Raises:
        RekindleError: The error that the agent's start would raise.
    """
    declared = project.declared_manifest
    harnesses = {step.id: step.harness for step in definition.plan.steps}
    for number, step in enumerate(definition.definition.steps):
        entry = make_entry(
            declared,
            definition.definition,
            step,
            harness=harnesses[step.id],
            prompt=os.devnull,
            budget=step.budget,
        )
        name = f"{definition.pipeline}-0-{step.id}"
        manifest = msgspec.structs.replace(declared, agents={**declared.agents, name: entry})
        trial = msgspec.structs.replace(project, manifest=manifest)
        for key, words in {"run": step.run, "until": step.until}.items():
            owner = f"pipeline {definition.pipeline}, step {step.id}"
            path = ("pipelines", definition.pipeline, "steps", number, key)
            start_checks.check_command(trial, name, words or [], owner, path)
        for error in start_checks.find_obstacles(trial, name):
            if not _is_about_prompt(error):
                raise error


def _is_about_prompt(error: RekindleError) -> bool:
    """Return whether an error is about the prompt, which does not exist before a worker begins."""
    return isinstance(error, ManifestError) and error.file == os.devnull


def _read_schema(project: Project, path: str) -> str:
    text = read_named_file(project, path, "schema_path")
    json_schema.require_usable_schema(text, path)
    return text


def _find_base(source: WorkingCopy, revision: str, name: str) -> str:
    query = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    commit = os.fsdecode(source.call(*query, may_fail_with=1)).strip()
    if not commit:
        raise UsageError(
            f"pipeline {name} starts from {revision}, which is not a commit",
            hint="commit your files first: git add -A && git commit"
            if revision == "HEAD"
            else "correct `base:` in rekindle.yaml",
        )
    return commit


def _read_prompt(project: Project, name: str, step: PipelineStep) -> str:
    if not isinstance(step.prompt, PromptFile):
        return step.prompt or ""
    text = read_named_file(project, step.prompt.file, "prompt")
    pipeline = project.manifest.pipelines[name]
    before = list_ancestors({other.id: other.depends_on or [] for other in pipeline.steps}, step.id)
    ancestors = {
        other.id: Ancestor(tuple(other.outputs or ()))
        for other in pipeline.steps
        if other.id in before
    }
    unknown = find_unknown_name(text, ancestors, is_matrix=step.matrix is not None)
    if unknown is not None:
        raise ManifestError(
            f"step {step.id} uses `{{{{ {unknown.name} }}}}`, but {unknown.reason}",
            file=step.prompt.file,
            hint=unknown.hint,
        )
    return text
