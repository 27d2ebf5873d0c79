"""Check a fleet worker's result, using its log and the work that its host pushed."""

import os
from itertools import takewhile
from pathlib import PurePosixPath

import msgspec

from rekindle.documents import events
from rekindle.documents.commits.work_commit import make_work_ref
from rekindle.documents.manifest_pipelines import PipelineStep, StepContract
from rekindle.documents.pipelines.pipeline_events import WorkerBegan, WorkerEnded, WorkerOutcome
from rekindle.errors import RekindleError
from rekindle.fleet.pipelines.host_run import HostRun
from rekindle.fleet.pipelines.worker_definition import find_check
from rekindle.policy.exits import explain_reasons
from rekindle.policy.fleet.agent_registry import RegisteredAgent
from rekindle.policy.fleet.pipeline_worker import make_report
from rekindle.policy.pipelines.contract_checks import check_json, check_non_empty
from rekindle.policy.pipelines.pipeline_moves import is_capped_by_run
from rekindle.policy.pipelines.step_status import MERGE_KEYS, find_conflicting
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.supervision.budget import find_reached_cap
from rekindle.system import clock
from rekindle.system.git import branch_merge
from rekindle.system.json_schema import find_schema_problems
from rekindle.thresholds.pipeline_limits import (
    CONTRACT_BYTES,
    PUSH_ATTEMPTS,
    RETRY_REASON_CHARACTERS,
    STEP_OUTPUT_BYTES,
)

_ENDS_WITH_RESULT = {"done", "claimed", "cycles"}
"""End reasons after which an agent's run has a result to check."""


class PushedFile(msgspec.Struct, frozen=True):
    blob: str
    size: int


class PushedResult:
    """What one attempt of a worker has pushed."""

    def __init__(self, run: HostRun, began: WorkerBegan, agent: RegisteredAgent) -> None:
        self._run, self._began, self._agent = run, began, agent
        self._step = run.definition.find_step(began.step)
        self._ref = f"{run.refs}_outputs/{began.agent}/{began.attempt}"
        self._is_merging = began.worker in MERGE_KEYS.values()
        last = agent.projection.workspace
        self._revision = last.revision if last else began.commit
        self._head = (last.head if last else "") or began.commit

    def check(self, redaction: Redaction) -> WorkerEnded:
        """Store the result as a commit, push it with the outputs, and check it."""
        began, worker = self._began, self._agent.definition.worker
        projection = self._agent.projection
        report = make_report(began.agent, worker, projection) if worker else None
        self._run.fetch()
        self._run.fetch(make_work_ref(began.agent))
        outputs = {} if self._is_merging else self._step.outputs or {}
        files = {name: self._find_file(path) for name, path in outputs.items()}
        commit = self._find_earlier() or self._commit_work(list(map(self._place, outputs.values())))
        is_related = branch_merge.is_related(self._run.clone, began.commit, commit)
        outcome: WorkerOutcome = "stopped"
        why = ""
        if report is None or report.state != "stopped":
            outcome, why = self._judge(commit, files, is_related=is_related)
        self._push(commit, files)
        return WorkerEnded(
            ts=clock.read_clock(),
            step=began.step,
            worker=began.worker,
            attempt=began.attempt,
            outcome=outcome,
            commit=commit if is_related else began.commit,
            why=redaction.text(why)[:RETRY_REASON_CHARACTERS],
            usd=report.usd if report else 0.0,
            tokens=report.tokens if report else 0,
            is_estimated=report.is_estimated if report else False,
        )

    def _judge(
        self, commit: str, files: dict[str, PushedFile | None], *, is_related: bool
    ) -> tuple[WorkerOutcome, str]:
        """Return the outcome of an attempt that was not stopped, and the reason for it."""
        why = self._explain_end()
        if not is_related:
            # Git could not merge these commits, so the run would wait forever.
            start = self._began.commit[:12]
            return "failed", why or f"its commits do not continue {start}, from which it started"
        if self._is_capped():
            # This is not a failure: the worker continues after the operator raises the run's
            # budget.
            return "stopped", ""
        unpushed = self._agent.projection.unpushed
        if not why and unpushed is not None:
            is_lasting = self._count_failed_pushes() + 1 >= PUSH_ATTEMPTS
            words = f"its work could not be pushed: {unpushed.words}"
            return "failed" if is_lasting else "stopped", words
        if not why:
            why = self._find_unmerged(commit) if self._is_merging else self._explain_files(files)
        return "failed" if why else "done", why

    def _is_capped(self) -> bool:
        """Return whether the worker ended only because the budget of the whole run is spent."""
        run, cap = self._agent.projection.run, self._agent.definition.limits.budget
        now = clock.read_clock()
        reached = find_reached_cap(run.run_spending(), cap, began=run.began_at, now=now)
        own = self._run.definition.plan.find_step(self._began.step).budget
        return run.ended.why == "budget" and is_capped_by_run(own, reached)

    def _count_failed_pushes(self) -> int:
        """Count the attempts directly before this one whose work could not be pushed."""
        place = (self._began.step, self._began.worker)
        ends = [
            event.outcome == "stopped" and bool(event.why)
            for event in self._run.registered.read_events()
            if isinstance(event, WorkerEnded) and (event.step, event.worker) == place
        ]
        return len(list(takewhile(bool, reversed(ends))))

    def _explain_end(self) -> str:
        """Return why the agent's run left no result, or ""."""
        ended = self._agent.projection.run.ended
        if ended.why not in _ENDS_WITH_RESULT:
            return explain_reasons.explain_reason(ended.why, ended.words)
        if ended.why == "cycles" and not self._is_merging and find_check(self._step):
            return self._find_until_words()
        return ""

    def _find_until_words(self) -> str:
        log = map(events.parse, (line.encode() for line in reversed(self._agent.tail)))
        ends = (event.until_words for event in log if isinstance(event, events.CycleEnded))
        return next(ends, "") or "the command of the step did not pass"

    def _place(self, file: str) -> str:
        """Return the path of a step's file in the repository."""
        return str(PurePosixPath(self._run.registered.agent.within) / file)

    def _find_file(self, file: str) -> PushedFile | None:
        """Return a file from the pushed work, or None if it is missing or not a regular file."""
        query = ("ls-tree", "-z", "-l", "--full-tree", self._revision, "--", self._place(file))
        about = os.fsdecode(self._run.clone.call(*query)).partition("\t")[0]
        if not about.startswith("100"):  # not a regular file
            return None
        _mode, _type, blob, size = about.split()
        return PushedFile(blob, int(size))

    def _find_earlier(self) -> str:
        """Return the commit of an earlier check of this attempt, or ""."""
        outputs = self._run.clone.find_ref(self._ref)
        if outputs is None:
            return ""
        return os.fsdecode(self._run.clone.call("rev-parse", f"{outputs.oid}^")).strip()

    def _commit_work(self, outputs: list[str]) -> str:
        """Return the commit with the agent's work, without its outputs."""
        clone = self._run.clone
        with self._run.hold_index() as index:
            clone.call("read-tree", self._revision, index=index)
            if outputs:
                query = ("ls-tree", "-r", "-z", "--full-tree", self._began.commit, "--")
                none = "0" * len(self._began.commit)
                lines = b"".join(os.fsencode(f"0 {none}\t{path}\0") for path in outputs)
                lines += clone.call(*query, *outputs)
                clone.call("update-index", "-z", "--index-info", stdin=lines, index=index)
            written = os.fsdecode(clone.call("write-tree", index=index)).strip()
        tree = clone.strip_own_folder(written)
        if not clone.count_differing(self._head, tree):
            return self._head
        author = branch_merge.find_identity(clone)
        return clone.commit(tree, (self._head,), f"Work of {self._began.agent}\n", author)

    def _explain_files(self, files: dict[str, PushedFile | None]) -> str:
        """Return which output is missing or which contract is broken, or ""."""
        for name, path in (self._step.outputs or {}).items():
            file = files[name]
            if file is None:
                return f"its output {path} does not exist, or git ignores it; write it"
            if file.size > STEP_OUTPUT_BYTES:
                return f"its output {path} has more than {STEP_OUTPUT_BYTES:,} bytes"
        return next(filter(None, map(self._explain_contract, self._step.contracts)), "")

    def _explain_contract(self, contract: StepContract) -> str:
        if contract.type == "test_suite":
            return ""  # already checked by the agent's `until:`
        source = contract.source or ""
        file = self._find_file(source)
        if file is not None and file.size > CONTRACT_BYTES:
            return f"{source} has more than {CONTRACT_BYTES:,} bytes"
        data = self._run.clone.call("cat-file", "blob", file.blob) if file else None
        if contract.type == "non_empty_file":
            return check_non_empty(source, data)
        schema = self._run.definition.schemas[contract.schema_path or ""]
        try:
            return check_json(source, data, lambda text: find_schema_problems(text, schema))
        except RekindleError as error:
            return str(error)

    def _find_unmerged(self, commit: str) -> str:
        """Return which commits a worker has not merged, or ""."""
        plan, state = self._run.definition.plan, self._run.state
        stage = next(stage for stage, key in MERGE_KEYS.items() if key == self._began.worker)
        missing = [
            theirs
            for _, theirs in find_conflicting(plan, state, self._began.step, stage)
            if not self._run.clone.is_kept((theirs,), by=(commit,))
        ]
        if missing:
            return f"these commits are not merged: {', '.join(name[:12] for name in missing)}"
        return ""

    def _push(self, commit: str, files: dict[str, PushedFile | None]) -> None:
        """Push the result and the outputs, because any host may need them."""
        run, began = self._run, self._began
        key = began.worker if _is_matrix(self._step) else None
        blobs = [
            (str(path.relative_to(run.folder.outputs)), file.blob)
            for name, file in files.items()
            if file is not None
            for path in [
                run.folder.find_output(began.step, name, (self._step.outputs or {})[name], key)
            ]
        ]
        outputs = run.commit_files(blobs, commit, f"Outputs of {began.agent}\n")
        run.push(self._ref, outputs)


def _is_matrix(step: PipelineStep) -> bool:
    return step.matrix is not None
