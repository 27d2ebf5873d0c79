"""Create a worker's agent, and start it like `rekindle up`.

Each step can be repeated, and the next coordinator continues after the last completed step:

1. the branch at the commit that the worker starts from;
2. the prompt, and the agent in workers.json;
3. the operator's consent, and the position in the agent's log;
4. the command to run, and a supervisor.
"""

from collections.abc import Callable

import msgspec

from rekindle.config import Project, load_project
from rekindle.documents.clone_files import make_work_branch
from rekindle.documents.manifest import AgentEntry
from rekindle.documents.manifest_pipelines import Pipeline
from rekindle.documents.pipelines.pipeline_events import WorkerBegan
from rekindle.errors import (
    AgentError,
    ManifestError,
    SandboxError,
    UnacceptedError,
)
from rekindle.policy.pipelines.pipeline_moves import limit_worker
from rekindle.policy.pipelines.pipeline_state import PipelineState
from rekindle.policy.pipelines.run_definition import RunDefinition, WorkerRecord
from rekindle.policy.pipelines.step_status import MERGE_KEYS
from rekindle.policy.pipelines.worker_entry import make_entry, make_merging_entry
from rekindle.policy.settings import consent
from rekindle.policy.settings.runtime_settings import find_cycle_limit
from rekindle.policy.settings.used_personas import find_pipeline_personas, keep_personas
from rekindle.policy.supervision import run_moves
from rekindle.stores.files import FileStore
from rekindle.stores.folders import trust_records
from rekindle.stores.pipelines.run_folder import RunFolder
from rekindle.system import clock
from rekindle.system.files import durable_files
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.wiring.access import trust_checks
from rekindle.wiring.open_store import open_store
from rekindle.wiring.pipelines.worker_tasks import WorkerTasks
from rekindle.wiring.starting import background_start
from rekindle.wiring.supervisor_setup import check_agent


class WorkerStarter:
    """Starts the workers of one run."""

    def __init__(
        self, project: Project, folder: RunFolder, definition: RunDefinition, source: WorkingCopy
    ) -> None:
        self._path, self._folder, self._definition = project.path, folder, definition
        self._source = source
        self._tasks = WorkerTasks(folder, definition, source)

    def ensure(self, state: PipelineState, began: WorkerBegan) -> str:
        """Create and start a worker. Return why its agent cannot be started, or "".

        Raises:
            UnacceptedError: rekindle.yaml was changed without a command from the operator.
        """
        workers = self._folder.read_workers()
        record = workers.get(began.agent)
        if record is None or record.attempt < began.attempt:
            project = load_project(self._path)
            # Otherwise, the record would keep values from a manifest that is not accepted.
            self._require_accepted(project)
            self._create_branch(began)
            record = self._make_record(project, state, began)
            self._folder.write_workers({**workers, began.agent: record})
        project = load_project(self._path)
        store = open_store(project)
        if record.seq is None:
            try:
                self._accept(project, began.agent)
                check_agent(project, store, began.agent)
            except UnacceptedError:
                raise
            except (AgentError, ManifestError, SandboxError) as error:
                return f"{error}" + (f" ({error.hint})" if error.hint else "")
            view = store.read(began.agent)
            record = msgspec.structs.replace(record, seq=view.committed.seq + len(view.pending))
            self._folder.write_workers({**self._folder.read_workers(), began.agent: record})
        self._start(project, store, began.agent, record)
        return ""

    def _create_branch(self, began: WorkerBegan) -> None:
        """Create the worker's branch. A later attempt continues on it."""
        ref = f"refs/heads/{make_work_branch(began.agent)}"
        if self._source.find_ref(ref) is None:
            self._source.refuse_link(ref)
            self._source.call(
                "update-ref", "--no-deref", ref, began.commit, "0" * len(began.commit)
            )

    def _make_record(
        self, project: Project, state: PipelineState, began: WorkerBegan
    ) -> WorkerRecord:
        path = self._folder.prompts / f"{began.agent}.md"
        durable_files.replace_file(path, self._tasks.compose(state, began).encode())
        return WorkerRecord(
            step=began.step,
            worker=began.worker,
            attempt=began.attempt,
            entry=self._make_entry(project, state, began, str(path)),
            commit=began.commit,
        )

    def _make_entry(
        self, project: Project, state: PipelineState, began: WorkerBegan, prompt: str
    ) -> AgentEntry:
        plan = self._definition.plan
        step_plan = plan.find_step(began.step)
        is_merging = began.worker in MERGE_KEYS.values()
        make: Callable[..., AgentEntry] = make_merging_entry if is_merging else make_entry
        return make(
            project.declared_manifest,
            self._definition.definition,
            self._definition.find_step(began.step),
            harness=step_plan.merge_harness if is_merging else step_plan.harness,
            prompt=prompt,
            budget=limit_worker(plan, state, step_plan.budget, clock.read_clock()),
        )

    def _accept(self, project: Project, agent: str) -> None:
        """Accept a worker's settings for the operator, who has accepted the run's settings.

        The entry comes from the run's folder, where no agent can write.
        """
        self._require_accepted(project)
        trust_checks.accept_settings(project, agent)

    def _require_accepted(self, project: Project) -> None:
        """Refuse shared settings that differ from those that the operator accepted for the run.

        Raises:
            UnacceptedError: rekindle.yaml was changed without a command from the operator.
        """
        accepted = trust_records.read_settings(self._folder.settings) or {}
        changes = consent.compare_settings(
            accepted, select_shared(project, self._definition.definition)
        )
        if changes:
            name, number = self._folder.pipeline, self._folder.run
            raise UnacceptedError(
                f"run {number} of {name}",
                f"rekindle.yaml was changed since: {consent.render_changes(changes)}",
                f"`rekindle pipeline resume {name} {number}` accepts it",
            )

    def _start(self, project: Project, store: FileStore, agent: str, record: WorkerRecord) -> None:
        """Record the command to run and start a supervisor, unless this was already done."""
        view = store.read(agent)
        run = view.projection.run
        # A command in the inbox has no position in the log yet.
        is_submitted = run.desired == "running" and run.command != view.committed.run.command
        if record.seq is None or run.wanted > record.seq or is_submitted:
            return  # if the supervisor is gone, the watchdog starts another one
        background_start.note_start(store, agent, view.committed.seq + len(view.pending) + 1)
        now, cycles = clock.read_clock(), find_cycle_limit(record.entry)
        store.submit(agent, run_moves.make_desired_event(run, "running", now, cycles))
        background_start.start_supervisor(project, store, agent)


def select_shared(project: Project, pipeline: Pipeline) -> consent.ControlledSettings:
    """Return the settings that need consent and that a run's workers share."""
    manifest = keep_personas(project.manifest, find_pipeline_personas(pipeline))
    shared = consent.drop_fleet_settings(consent.select_controlled(manifest, ""))
    return shared | consent.select_inherited(project.declared_manifest, pipeline)
