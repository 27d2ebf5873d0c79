"""Build a run's coordinator from its folder, the repository and this host."""

from pathlib import Path

import msgspec

from rekindle.config import Project, load_project
from rekindle.documents.pipelines.pipeline_events import (
    ItemsFound,
    MergeStage,
    PipelineOutcome,
)
from rekindle.errors import RekindleError
from rekindle.flows.operator.stop_agent import AgentStopper
from rekindle.flows.pipelines.coordinator import Coordinator
from rekindle.flows.pipelines.coordinator_ports import CoordinatorPorts
from rekindle.policy.exits.stop_reasons import Severity
from rekindle.policy.pipelines.pipeline_moves import FindItems
from rekindle.policy.pipelines.pipeline_state import PipelineState, WorkerState
from rekindle.stores.folders import trust_records
from rekindle.stores.pipelines.run_folder import RunFolder
from rekindle.system import clock, host
from rekindle.system.notifications import Notifier
from rekindle.system.processes.child_processes import Interruption
from rekindle.thresholds.pipeline_limits import COORDINATOR_RETRY_SECONDS
from rekindle.wiring.access.trust_checks import require_trust
from rekindle.wiring.open_store import open_store
from rekindle.wiring.pipelines.person_merge import PersonMerges
from rekindle.wiring.pipelines.run_refs import find_repository, merge_parts, place_result
from rekindle.wiring.pipelines.worker_result import WorkerResults
from rekindle.wiring.pipelines.worker_start import WorkerStarter
from rekindle.wiring.pipelines.worker_tasks import WorkerTasks
from rekindle.wiring.starting import background_start


def coordinate(path: Path, folder: RunFolder) -> PipelineOutcome | None:
    """Coordinate a run of the project at `path` until it ends.

    Return None on a signal, or if another process already coordinates the run.
    """
    with folder.hold() as lock, Interruption() as interruption:
        project = None if lock is None else _await_project(path, folder, interruption)
        if project is None:
            return None
        builder = _PortBuilder(project, folder, interruption)
        coordinator = Coordinator(folder.read_definition().plan, builder.make_ports())
        return coordinator.run()


def _await_project(path: Path, folder: RunFolder, interruption: Interruption) -> Project | None:
    """Wait until the project is valid and trusted, and return it. Return None on a signal."""
    while not interruption.count:
        try:
            project = load_project(path)
            require_trust(project.path)
        except RekindleError as error:
            folder.write_notice(f"{error} ({error.hint})" if error.hint else str(error))
            background_start.sleep_until_signal(COORDINATOR_RETRY_SECONDS, interruption)
        else:
            return project
    return None


class _PortBuilder:
    def __init__(self, project: Project, folder: RunFolder, interruption: Interruption) -> None:
        self._project, self._folder, self._interruption = project, folder, interruption
        self._definition = folder.read_definition()
        self._source = find_repository(project)
        self._store = open_store(project)
        self._merges = PersonMerges(folder, self._definition, self._source)

    def make_ports(self) -> CoordinatorPorts:
        project, folder, source = self._project, self._folder, self._source
        results = WorkerResults(project, folder, self._definition, source, self._interruption)
        return CoordinatorPorts(
            folder=folder,
            clock=clock.read_clock,
            rest=lambda seconds: background_start.sleep_until_signal(seconds, self._interruption),
            is_interrupted=lambda: self._interruption.count > 0,
            ensure_worker=WorkerStarter(project, folder, self._definition, source).ensure,
            read_worker=results.read,
            stop_worker=self._stop_worker,
            check_worker=results.check,
            find_items=self._find_items,
            merge=lambda move: merge_parts(source, folder, move),
            ask_person=self._ask_person,
            find_merged=self._merges.find,
            end=self._end,
            note=folder.write_notice,
            watch_workers=self._watch_workers,
        )

    def _find_items(self, move: FindItems) -> ItemsFound:
        found = WorkerTasks(self._folder, self._definition, self._source).find_items(move)
        # The reason may quote the agent, so redact it.
        return msgspec.structs.replace(found, why=self._store.redaction.text(found.why))

    def _stop_worker(self, worker: WorkerState) -> None:
        if self._store.exists(worker.agent):
            AgentStopper(self._store, worker.agent, clock.read_clock).tell()

    def _ask_person(self, state: PipelineState, step: str, stage: MergeStage) -> None:
        commands = self._merges.prepare(state, step, stage)
        place = f"step {step}" if step else "the result"
        words = f"changes of {place} conflict; merge them:\n" + "\n".join(
            f"  {command}" for command in commands
        )
        self._notify("changes conflict", words, "warning")

    def _end(self, outcome: PipelineOutcome, commit: str, why: str) -> None:
        if outcome == "done":
            branch = place_result(self._source, self._folder, commit)
            self._notify("done", f"its result is on the branch {branch}", "success")
        elif outcome != "stopped":
            self._notify(outcome, why, "failure")

    def _watch_workers(self, agents: list[str]) -> None:
        project = load_project(self._project.path)
        background_start.watch_workers(project, open_store(project), agents)

    def _notify(self, title: str, words: str, severity: Severity) -> None:
        accepted = trust_records.read_settings(self._folder.settings) or {}
        notifier = Notifier(accepted.get("notify", []), self._store.redaction)
        run = f"{self._folder.pipeline} {self._folder.run}"
        place = f"project {self._project.path.name}, host {host.name()}"
        body = f"{words}\n→ rekindle pipeline status {run}\n{place}"
        notifier.send(f"{run}: {title}", body, severity)
