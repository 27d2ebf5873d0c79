"""A simulated world for runs of pipelines: workers, git, a person, an operator, and faults.

`fold` and `decide` are the real ones. Everything else is drawn from a seed. The world checks every
entry of the log. `pipeline_facts` draws the pipeline and knows the result of its run.
"""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import msgspec
from pipeline_facts import BASE, Facts, draw_plan, read, write

from rekindle.documents.pipelines.pipeline_events import (
    ItemsFound,
    PersonAsked,
    PipelineEnded,
    PipelineResumed,
    PipelineStarted,
    PipelineStopped,
    StepMerged,
    WorkerBegan,
    WorkerEnded,
    WorkerReported,
)
from rekindle.policy.pipelines import pipeline_moves as moves
from rekindle.policy.pipelines.pipeline_state import fold
from rekindle.policy.pipelines.step_status import MERGE_KEYS

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LONGEST = 6_000
"""Rounds after which a run counts as endless."""


class BrokenPromiseError(AssertionError):
    """The policy broke a promise."""


def require(promise, words):
    if not promise:
        raise BrokenPromiseError(words)


class Disturbances(msgspec.Struct, frozen=True):
    """Probabilities of faults in each round."""

    kill: float = 0.0
    repeat: float = 0.0
    stop: float = 0.0
    limit: float = 0.0
    delay: float = 0.0
    reports: float = 0.0


CALM = Disturbances()
STORM = Disturbances(kill=0.4, repeat=0.15, stop=0.04, limit=0.15, delay=0.3, reports=0.3)


class World:
    """One run of a pipeline, from its start to its end."""

    def __init__(self, seed, disturbances, decide=moves.decide, plan=None):
        self.plan = plan or draw_plan(seed)
        self.facts = Facts(seed, self.plan)
        self.expected = self.facts.expect()
        self.dice = random.Random(f"world {seed} {disturbances}")
        self.faults, self.decide = disturbances, decide
        self.steps = {step.id: step for step in self.plan.steps}
        self.now = START
        self.log = []
        self.state = None
        """The state in the coordinator's memory; None after it was killed."""
        self.live = {}
        """Minutes that each attempt still takes."""
        self.stopping = set()
        self.finished = {}
        """Ends that the coordinator has not read yet."""
        self.parts = {}
        self.limits = {}
        self.cap = self.plan.budget.usd if self.plan.budget else None
        self.done_attempts = set()
        self.counts = Counter()

    # The log, and the promises that each entry must hold.

    def record(self, event):
        self.check(event)
        self.log.append(event)
        self.counts[event.kind] += 1
        if self.state is not None:
            self.state = fold([event], self.state)

    def check(self, event):
        if isinstance(event, WorkerBegan):
            self.check_begin(event)
        elif isinstance(event, PersonAsked):
            asked = [entry for entry in self.log if isinstance(entry, PersonAsked)]
            require(
                (event.step, event.stage) not in {(entry.step, entry.stage) for entry in asked},
                f"asked twice about {event.step}",
            )

    def check_begin(self, event):
        step = self.steps[event.step]
        before = [entry for entry in self.log if isinstance(entry, WorkerBegan)]
        same = [
            entry for entry in before if (entry.step, entry.worker) == (event.step, event.worker)
        ]
        place = (event.step, event.worker, event.attempt)
        require(event.attempt not in {entry.attempt for entry in same}, f"{place} begun twice")
        running = {
            (entry.step, entry.worker, entry.attempt) for entry in before
        } - self.done_attempts
        beside = {key for other, key, _ in running if other == event.step}
        require(len(beside) < step.max_concurrency, f"{place}: too many workers at once")
        require(event.worker not in beside, f"{place} is still running")
        require(
            self.count_failures(event.step, event.worker) < step.attempts,
            f"{place}: its attempts are used up",
        )
        if event.worker in MERGE_KEYS.values():
            harness = step.merge_harness
        else:
            harness = step.harness
            require(
                event.commit == self.expected.inputs.get(event.step),
                f"{place} begun without its inputs",
            )
            require(
                not (step.fail_fast and step.needs == "all" and self.is_lost(step)),
                f"{place} begun after its step had failed",
            )
        require(self.limits.get(harness, START) <= self.now, f"{place} begun during a limit")
        require(not self.is_stopped(), f"{place} begun in a stopped run")
        require(self.cap is None or self.measure_spending() < self.cap, f"{place}: over budget")
        agents = {entry.agent: (entry.step, entry.worker) for entry in before}
        require(agents.get(event.agent, place[:2]) == place[:2], f"{place} shares its agent")

    def count_failures(self, step, key):
        ends = {
            entry.attempt: entry.outcome
            for entry in self.log
            if isinstance(entry, WorkerEnded) and (entry.step, entry.worker) == (step, key)
        }
        return list(ends.values()).count("failed")

    def is_lost(self, step):
        keys = {
            entry.worker
            for entry in self.log
            if isinstance(entry, WorkerEnded) and entry.step == step.id
        } - set(MERGE_KEYS.values())
        return any(self.count_failures(step.id, key) >= step.attempts for key in keys)

    def is_stopped(self):
        commands = [
            entry for entry in self.log if isinstance(entry, PipelineStopped | PipelineResumed)
        ]
        return bool(commands) and isinstance(
            max(commands, key=lambda entry: entry.ts), PipelineStopped
        )

    def measure_spending(self):
        costs = {}
        for entry in self.log:
            if isinstance(entry, WorkerEnded | WorkerReported):
                place = (entry.step, entry.worker, entry.attempt)
                costs[place] = max(costs.get(place, 0), entry.usd)
        return sum(costs.values())

    # Time.

    def run(self):
        """Play the run to its end, and return its outcome, its commit and the final state."""
        self.record(PipelineStarted(ts=self.now, pipeline="p", run=1, base=BASE))
        for _ in range(LONGEST):
            self.operate()
            if self.is_killed(0.3):
                self.state = None
            if self.state is None:
                self.state = fold(self.log)
            chosen = self.decide(self.plan, self.state, self.now)
            self.carry_out(chosen)
            if self.state is None:
                self.state = fold(self.log)
            if self.state.ended in {"done", "failed"}:
                require(fold(self.log) == self.state, "the state depends on kills")
                return self.state.ended, self.state.commit
            self.create_lost_workers()
            self.refuse_idleness(chosen)
            self.pass_time()
        raise BrokenPromiseError("the run does not end")

    def is_killed(self, share=1.0):
        killed = self.dice.random() < self.faults.kill * share
        self.counts["kills"] += killed
        return killed

    def operate(self):
        """Stop the run at times, and always resume it."""
        if self.state is not None and self.state.ended in {"stopped", "budget"}:
            raised = {}
            if self.state.ended == "budget":
                self.cap = self.measure_spending() + self.dice.uniform(0.5, 3)
                raised = {"usd": self.cap}
            self.record(PipelineResumed(ts=self.now, budget=raised))
        elif self.dice.random() < self.faults.stop:
            self.record(PipelineStopped(ts=self.now))

    def carry_out(self, chosen):
        """Carry out the moves; the coordinator may be killed between any two of them."""
        for move in chosen:
            if self.is_killed(0.3):
                self.state = None
                return
            self.make(move)

    def make(self, move):
        match move:
            case moves.FindItems():
                keys, why = self.facts.find_items(move.step)
                require(move.commit == self.expected.inputs[move.step], "items of another commit")
                if not self.is_killed(0.2):
                    self.record(ItemsFound(ts=self.now, step=move.step, workers=keys, why=why))
            case moves.BeginWorker():
                self.record(
                    WorkerBegan(
                        ts=self.now,
                        step=move.step,
                        worker=move.worker,
                        attempt=move.attempt,
                        agent=move.agent,
                        commit=move.commit,
                    )
                )
            case moves.StopWorker():
                self.stopping.add((move.step, move.worker, move.attempt))
            case moves.MergeCommits():
                self.merge(move)
            case moves.AskPerson():
                self.record(PersonAsked(ts=self.now, step=move.step, stage=move.stage))
            case moves.EndPipeline():
                self.record(PipelineEnded(ts=self.now, outcome=move.outcome, commit=move.commit))

    def merge(self, move):
        place = (move.step, move.stage)
        self.parts.setdefault(place, move.parts)
        commit, merged, conflicts, dropped = self.facts.merge(move.parts, drops=move.drops)
        if not self.is_killed(0.2):
            self.record(
                StepMerged(
                    ts=self.now,
                    step=move.step,
                    stage=move.stage,
                    commit=commit,
                    merged=merged,
                    conflicts=conflicts,
                    dropped=dropped,
                )
            )

    def create_lost_workers(self):
        """Create the workers that were recorded but not created."""
        for (step, key), worker in self.state.list_running():
            place = (step, key, worker.attempt)
            if place not in self.live and place not in self.finished:
                self.live[place] = self.dice.randint(1, 6)
                harness = self.find_harness(step, key)
                if harness and self.dice.random() < self.faults.limit:
                    until = self.now + self.dice.randint(1, 30) * MINUTE
                    self.limits[harness] = max(until, self.limits.get(harness, until))
                    self.counts["limits"] += 1
                    self.record(
                        WorkerReported(
                            ts=self.now,
                            step=step,
                            worker=key,
                            attempt=worker.attempt,
                            harness=harness,
                            until=until,
                        )
                    )

    def find_harness(self, step, key):
        is_merging = key in MERGE_KEYS.values()
        return self.steps[step].merge_harness if is_merging else self.steps[step].harness

    def refuse_idleness(self, chosen):
        """Require that something can still happen."""
        waits = [move for move in chosen if isinstance(move, moves.AwaitLimit)]
        require(all(wait.until > self.now for wait in waits), "waits for the past")
        resumable = self.state.ended is not None
        require(
            chosen or self.live or self.finished or self.list_questions() or resumable,
            "the run hangs",
        )

    def list_questions(self):
        """Return the conflicts that the person has not merged yet."""
        asked = {(entry.step, entry.stage) for entry in self.log if isinstance(entry, PersonAsked)}
        return [place for place in sorted(asked) if self.state.merges[place].conflicts]

    def pass_time(self):
        self.now += MINUTE
        for place in [*self.live]:
            self.live[place] -= 1
            if self.live[place] <= 0 or place in self.stopping:
                self.finish(place)
            elif self.dice.random() < self.faults.reports:
                step, key, attempt = place
                usd = self.dice.random() * self.facts.cost(
                    step, key, self.count_failures(step, key)
                )
                self.record(
                    WorkerReported(
                        ts=self.now, step=step, worker=key, attempt=attempt, usd=usd, tokens=7
                    )
                )
        for place in [*self.finished]:
            if self.dice.random() >= self.faults.delay:
                self.record(self.finished.pop(place))
                self.done_attempts.add(place)
        for step, stage in self.list_questions():
            if self.dice.random() < 0.3:
                commit = self.facts.resolve(self.parts[step, stage])
                self.record(StepMerged(ts=self.now, step=step, stage=stage, commit=commit))
        if self.log and self.dice.random() < self.faults.repeat:
            self.repeat()

    def finish(self, place):
        step, key, attempt = place
        failures = self.count_failures(step, key)
        begun = next(
            entry
            for entry in self.log
            if isinstance(entry, WorkerBegan) and (entry.step, entry.worker, entry.attempt) == place
        )
        outcome = "failed" if self.facts.fails(step, key, failures) else "done"
        if self.live.pop(place) > 0:
            outcome = "stopped"
        if key in MERGE_KEYS.values():
            stage = next(stage for stage, own in MERGE_KEYS.items() if own == key)
            commit = self.facts.resolve(self.parts[step, stage])
        else:
            commit = write(read(begun.commit) | {f"{step}/{key}"})
        self.finished[place] = WorkerEnded(
            ts=self.now,
            step=step,
            worker=key,
            attempt=attempt,
            outcome=outcome,
            commit=commit,
            usd=self.facts.cost(step, key, failures),
            tokens=10,
        )

    def repeat(self):
        """Record an old event once more, as after a kill between two writes.

        Only the coordinator itself writes how a run ended, and it does not after a resume.
        """
        event = self.dice.choice(self.log)
        if not isinstance(event, PipelineEnded):
            self.counts["repeated"] += 1
            self.log.append(event)
            if self.state is not None:
                self.state = fold([event], self.state)
