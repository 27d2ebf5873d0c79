"""Read a worker's progress, store its result as a commit, and check the result."""

import errno
import os
from pathlib import Path

import msgspec

from rekindle.config import Project, load_project
from rekindle.documents.clone_files import parse_refs
from rekindle.documents.events import CycleEnded
from rekindle.documents.manifest_pipelines import PipelineStep, StepContract
from rekindle.documents.pipelines.pipeline_events import MergeStage, WorkerEnded
from rekindle.errors import RekindleError, StoreError, WorkspaceError
from rekindle.flows.launches.checked_command import STOPPED, CheckedCommand
from rekindle.flows.pipelines.coordinator_ports import WorkerView
from rekindle.policy.exits import explain_reasons
from rekindle.policy.pipelines.contract_checks import check_json, check_non_empty
from rekindle.policy.pipelines.pipeline_moves import is_capped_by_run
from rekindle.policy.pipelines.pipeline_state import WorkerId, WorkerState, fold
from rekindle.policy.pipelines.run_definition import RunDefinition, WorkerRecord
from rekindle.policy.pipelines.step_status import MERGE_KEYS, find_conflicting
from rekindle.policy.projection.projection import Projection
from rekindle.policy.supervision.budget import RunSpending, find_reached_cap
from rekindle.stores.files import FileStore
from rekindle.stores.pipelines.run_folder import RunFolder
from rekindle.system import clock
from rekindle.system.files import durable_files, inside_folder
from rekindle.system.git import branch_merge
from rekindle.system.git.publish_work import copy_objects
from rekindle.system.git.tree_snapshot import HeadPosition, WorkingCopy
from rekindle.system.json_schema import find_schema_problems
from rekindle.system.processes.child_processes import HostProcesses, Interruption
from rekindle.thresholds.pipeline_limits import CONTRACT_BYTES, CONTRACT_SECONDS, STEP_OUTPUT_BYTES
from rekindle.wiring import supervisor_setup
from rekindle.wiring.agent_dir_list import find_agent_dir
from rekindle.wiring.agent_workspaces import AgentWorkspace, find_workspace
from rekindle.wiring.open_store import open_store
from rekindle.wiring.pipelines.run_refs import find_kept, keep_commit
from rekindle.wiring.pipelines.worker_tasks import find_unusable_list

_ENDS_WITH_RESULT = {"done", "claimed", "cycles"}
"""Reasons for the end of an agent's run after which there is a result to check."""
_DAMAGES = {"refused", "linked", "broken"}
"""Causes of git errors that persist until the worker's clone is repaired."""
_CHECK_STOPPED = "the check was stopped"


class WorkerResults:
    """Reads and checks the workers of one run."""

    def __init__(
        self,
        project: Project,
        folder: RunFolder,
        definition: RunDefinition,
        source: WorkingCopy,
        interruption: Interruption,
    ) -> None:
        self._path, self._folder, self._definition = project.path, folder, definition
        self._source, self._interruption = source, interruption
        self._store = open_store(project)
        self._cached: dict[str, tuple[object, Projection]] = {}
        self._records: dict[tuple[str, int], WorkerRecord] = {}

    def read(self, worker: WorkerState) -> WorkerView:
        """Return the progress of a worker's agent, according to its log."""
        record = self._find_record(worker)
        run = self._read_projection(worker.agent).run
        has_model = self._definition.find_step(record.step).run is None
        # For a program without a model, the log still has an estimate of the prompt's tokens.
        spent = run.run_spending() if has_model else RunSpending()
        view = WorkerView(usd=spent.usd, tokens=spent.tokens, is_estimated=spent.is_estimated)
        change = msgspec.structs.replace
        wait = run.waiting
        if wait is not None and wait.why == "limit" and wait.until > clock.read_clock():
            view = change(view, harness=record.entry.harness, until=wait.until)
        if run.desired == "stopped" and not self._store.is_supervised(worker.agent):
            return change(view, end="stopped")
        if record.seq is None or not run.is_over or run.ended.seq <= record.seq:
            return view
        why = run.ended.why
        if why not in _ENDS_WITH_RESULT:
            own, cap = self._definition.plan.find_step(record.step).budget, record.entry.budget
            reached = find_reached_cap(spent, cap, began=run.began_at, now=clock.read_clock())
            return change(
                view,
                end="failed",
                why=explain_reasons.explain_reason(why, run.ended.words),
                is_capped=why == "budget" and is_capped_by_run(own, reached),
            )
        if why == "cycles" and record.entry.until:
            return change(view, end="failed", why=self._find_until_words(worker.agent))
        return change(view, end="done")

    def check(self, worker_id: WorkerId, worker: WorkerState, view: WorkerView) -> WorkerEnded:
        """Store and check a worker's result."""
        step, key = worker_id
        ended = WorkerEnded(
            ts=clock.read_clock(),
            step=step,
            worker=key,
            attempt=worker.attempt,
            outcome=view.end or "failed",
            commit=worker.start,
            why=view.why,
            usd=view.usd,
            tokens=view.tokens,
            is_estimated=view.is_estimated,
        )
        change = msgspec.structs.replace
        project = load_project(self._path)
        workspace = find_workspace(project, worker.agent)
        damage = _find_damage(workspace)
        if workspace is None or damage:
            failed = change(ended, outcome="failed", why=view.why or damage)
            return ended if view.end == "stopped" else failed
        record = self._folder.read_workers()[worker.agent]
        definition = self._definition.find_step(step)
        is_merging = key in MERGE_KEYS.values()
        outputs = {} if is_merging else definition.outputs or {}
        work = find_agent_dir(project, worker.agent)
        below = work.relative_to(workspace.folder.resolve())
        left_out = [str(below / file) for file in outputs.values()]
        commit = self._store_commit(workspace, record, left_out)
        if not branch_merge.is_related(self._source, worker.start, commit):
            # Git could not merge these commits, so the run would wait forever.
            why = f"its commits do not continue {worker.start[:12]}, from which it started"
            failed = change(ended, outcome="failed", why=view.why or why)
            return ended if view.end == "stopped" else failed
        ended = change(ended, commit=commit)
        if view.is_capped:
            # This is not a failure: the worker continues after the operator raises the run's
            # budget.
            return change(ended, outcome="stopped", why="")
        if view.end != "done":
            return ended
        why = (
            self._find_unmerged(worker, ended.commit)
            if is_merging
            else self._keep_outputs(definition, key, work)
            or self._find_broken_contract(project, definition, worker.agent, work)
            or find_unusable_list(self._folder, self._definition, step)
        )
        if why == _CHECK_STOPPED:
            return change(ended, outcome="stopped", why="")
        why = self._store.redaction.text(why)  # the reason may quote the agent's text
        return change(ended, outcome="failed" if why else "done", why=why)

    def _find_record(self, worker: WorkerState) -> WorkerRecord:
        """Return the record of a worker's attempt, which does not change after its start."""
        attempt = (worker.agent, worker.attempt)
        if attempt not in self._records:
            self._records[attempt] = self._folder.read_workers()[worker.agent]
        return self._records[attempt]

    def _read_projection(self, agent: str) -> Projection:
        stamp = self._store.stamp(agent)
        cached = self._cached.get(agent)
        if cached is None or cached[0] != stamp:
            # The stamp is older than this read, so the next call notices any later write.
            cached = self._cached[agent] = (stamp, self._store.read(agent).projection)
        return cached[1]

    def _find_until_words(self, agent: str) -> str:
        ends = (
            event for event in self._store.newest_events(agent) if isinstance(event, CycleEnded)
        )
        last = next(ends, None)
        words = last.until_words if last is not None else ""
        return words or "the `until:` command did not pass"

    def _store_commit(
        self, workspace: AgentWorkspace, record: WorkerRecord, outputs: list[str]
    ) -> str:
        """Commit everything in the worker's folder except its outputs, and return the commit.

        If a coordinator was killed after this step, the folder may contain files that its checks
        created. These are not part of the result.
        """
        agent = workspace.checkout.agent
        name = f"{agent}/{record.attempt}"
        if kept := find_kept(self._source, self._folder, name):
            workspace.publish(clock.read_clock())
            return kept
        copy, author = WorkingCopy(workspace.folder), branch_merge.find_identity(self._source)
        with workspace.hold(), copy.capture() as captured:
            here = copy.read_head()
            tree = captured.restore_paths(record.commit, outputs)
            commit = here.head
            if copy.count_differing(here.head, tree):
                commit = copy.commit(tree, (here.head,), f"Work of {agent}\n", author)
                copy.reset_index(commit)
                copy.set_head(HeadPosition(commit, here.branch))
        present = parse_refs(os.fsdecode(self._source.refs()))
        copy_objects(copy, self._source, (commit,), excluded=present)
        keep_commit(self._source, self._folder, name, commit)
        workspace.publish(clock.read_clock())
        return commit

    def _keep_outputs(self, step: PipelineStep, key: str, work: Path) -> str:
        """Copy a worker's outputs to the run's folder. Return why one cannot be used, or ""."""
        for name, file in (step.outputs or {}).items():
            data = _read_file(work, file, STEP_OUTPUT_BYTES)
            if isinstance(data, StoreError):
                if data.errno == errno.ELOOP:
                    return f"its output {file} is a link; write a file"
                return f"its output {file}: {data.reason}"
            if data is None:
                return f"its output {file} does not exist; write it"
            path = self._folder.find_output(step.id, name, file, key if step.matrix else None)
            for above in (path.parent.parent, path.parent):
                if above != self._folder.outputs:
                    durable_files.make_folder(above)
            durable_files.replace_file(path, data)
        return ""

    def _find_broken_contract(
        self, project: Project, step: PipelineStep, agent: str, work: Path
    ) -> str:
        """Return why the result fails one of the step's contracts, or ""."""
        for contract in step.contracts:
            try:
                why = (
                    self._run_tests(project, contract, agent)
                    if contract.type == "test_suite"
                    else self._check_file(contract, work)
                )
            except RekindleError as error:
                why = str(error)
            if why:
                return why
        return ""

    def _check_file(self, contract: StepContract, work: Path) -> str:
        source = contract.source or ""
        data = _read_file(work, source, CONTRACT_BYTES + 1)
        if isinstance(data, StoreError):
            return f"{source}: {data.reason}"
        if contract.type == "non_empty_file":
            return check_non_empty(source, data)
        schema = self._definition.schemas[contract.schema_path or ""]
        return check_json(source, data, lambda text: find_schema_problems(text, schema))

    def _run_tests(self, project: Project, contract: StepContract, agent: str) -> str:
        """Run a contract's command in the worker's folder and sandbox."""
        store: FileStore = open_store(project)
        spec, ports = supervisor_setup.make_command_ports(project, store, agent, self._interruption)
        # This process has other children, such as git, and must not adopt or reap them.
        ports = msgspec.structs.replace(ports, processes=HostProcesses(keep=spec.keep))
        command = tuple(contract.command or ())
        result = CheckedCommand(command, spec, ports, seconds=CONTRACT_SECONDS).run()
        return _CHECK_STOPPED if result.verdict == STOPPED else result.words

    def _find_unmerged(self, worker: WorkerState, commit: str) -> str:
        """Return why a worker has not merged all changes, or ""."""
        record = self._folder.read_workers()[worker.agent]
        stages: list[MergeStage] = [
            stage for stage, key in MERGE_KEYS.items() if key == record.worker
        ]
        missing = [
            theirs
            for theirs in self._find_conflicting(record.step, stages[0])
            if not self._source.is_kept((theirs,), by=(commit,))
        ]
        if missing:
            return f"these commits are not merged: {', '.join(name[:12] for name in missing)}"
        return ""

    def _find_conflicting(self, step: str, stage: MergeStage) -> list[str]:
        state = fold(self._folder.read_events())
        return [commit for _, commit in find_conflicting(self._definition.plan, state, step, stage)]


def _find_damage(workspace: AgentWorkspace | None) -> str:
    """Return why the work in a worker's clone cannot be stored, or "".

    An agent can damage its clone. If the run waited for git to accept such a clone, it would wait
    forever.
    """
    words = ""
    if workspace is None or not (workspace.folder / ".git").exists():
        words = "its folder is not a git repository any more"
    else:
        try:
            copy = WorkingCopy(workspace.folder)
            copy.call("rev-list", "--objects", "--quiet", copy.read_head().head or "HEAD")
        except WorkspaceError as error:
            if error.cause not in _DAMAGES:
                raise
            words = f"git does not accept its folder ({error})"
    return words and f"{words}, so its work cannot be stored"


def _read_file(work: Path, file: str, most: int) -> bytes | StoreError | None:
    """Return the content of a file in a worker's folder; None if it is missing."""
    try:
        return inside_folder.read(work, file, most)
    except StoreError as error:
        return error
