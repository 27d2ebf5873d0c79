"""The facts about a simulated pipeline, which no fault can change, and the result of its run.

The facts do not depend on time: which items a step finds, which attempts fail and which changes
conflict. So a run has one possible result, whatever happens on the way. `Facts.expect` computes it
without events. A commit is a text that lists the changes in it.
"""

import random

import msgspec

from rekindle.documents.manifest_keys import Budget
from rekindle.policy.pipelines.run_plan import RunPlan, StepPlan

BASE = "base"
IDS = ["plan", "build", "build-1", "test", "docs", "docs-2-a", "judge", "ship"]


def read(commit):
    return frozenset(commit.split("+"))


def write(changes):
    return "+".join(sorted(changes))


def draw_plan(seed):
    """Draw a pipeline of one to eight steps, in any order, with any options."""
    dice = random.Random(f"plan {seed}")
    ids = dice.sample(IDS, dice.randint(1, len(IDS)))
    density = dice.choice([0.15, 0.4, 0.8])
    steps = []
    for number, step in enumerate(ids):
        is_matrix = dice.random() < 0.5
        steps.append(
            StepPlan(
                id=step,
                depends_on=tuple(other for other in ids[:number] if dice.random() < density),
                is_matrix=is_matrix,
                attempts=dice.choice([1, 1, 2, 3]),
                max_concurrency=dice.randint(1, 4),
                fail_fast=is_matrix and dice.random() < 0.4,
                needs=dice.choice(["all", "all", "any"]) if is_matrix else "all",
                optional=dice.random() < 0.25,
                conflicts=dice.choice(["person", "agent", "drop"]),
                harness=dice.choice(["", "claude-code", "codex"]),
                merge_harness=dice.choice(["claude-code", "codex"]),
            )
        )
    dice.shuffle(steps)
    cap = Budget(usd=dice.uniform(1, 12)) if dice.random() < 0.2 else None
    return RunPlan(pipeline="p", steps=tuple(steps), budget=cap)


class Expected(msgspec.Struct):
    """The result of a run, computed from the facts."""

    outcome: str
    commit: str
    results: dict[str, str]
    """The commit of each step that is done."""
    inputs: dict[str, str]
    """The commit that each step starts from, if it can start."""
    failed: set[str]
    skipped: set[str]


class Facts:
    """The facts about one pipeline, which no fault can change."""

    def __init__(self, seed, plan):
        self.seed, self.plan = seed, plan
        dice = self._dice("rates")
        self.failing = dice.choice([0.0, 0.1, 0.3, 0.6])
        self.conflicting = dice.choice([0.0, 0.05, 0.3])

    def _dice(self, *words):
        return random.Random(f"{self.seed} {words}")

    def find_items(self, step):
        dice = self._dice("items", step)
        if dice.random() < 0.04:
            return (), "the list is not JSON"
        return tuple(str(number) for number in range(dice.choice([0, 1, 2, 3, 5, 8]))), ""

    def fails(self, step, key, failures):
        return self._dice("fails", step, key, failures).random() < self.failing

    def cost(self, step, key, failures):
        return self._dice("cost", step, key, failures).uniform(0.1, 1.5)

    def conflicts(self, change, other):
        return self._dice("conflict", *sorted((change, other))).random() < self.conflicting

    def merge(self, parts, *, drops):
        """Merge commits as git does: a part that conflicts with those before is left out."""
        changes, merged, left = frozenset(), [], []
        for name, commit in parts:
            new = read(commit) - changes
            old = changes - read(commit)
            if changes and any(self.conflicts(change, other) for change in new for other in old):
                left.append(name)
            else:
                changes |= new
                merged.append(name)
        conflicts, dropped = ((), left) if drops else (left, ())
        return write(changes), tuple(merged), tuple(conflicts), tuple(dropped)

    def resolve(self, parts):
        """Merge commits as a person or an agent does: nothing is left out."""
        return write(frozenset().union(*(read(commit) for _, commit in parts)))

    def integrate(self, step, parts):
        """Return the commit of a merge after all its conflicts are solved."""
        if step is not None and step.conflicts == "drop":
            return self.merge(parts, drops=True)[0]
        return self.resolve(parts)

    def expect(self):
        """Compute the result of the run, step by step, without any events."""
        steps = {step.id: step for step in self.plan.steps}
        expected = Expected("done", "", {}, {}, set(), set())
        passed = {}
        waiting = list(steps)
        while waiting:
            step = next(
                steps[name]
                for name in waiting
                if not set(steps[name].depends_on).intersection(waiting)
            )
            waiting.remove(step.id)
            before = [name for name in steps if name in step.depends_on]
            if any(name not in passed for name in before):
                expected.skipped.add(step.id)
                continue
            parts = [(name, passed[name]) for name in before]
            same = len({commit for _, commit in parts}) == 1
            start = parts[0][1] if same else self.integrate(step, parts) if parts else BASE
            expected.inputs[step.id] = start
            result = self._expect_step(step, start)
            if result is None:
                expected.failed.add(step.id)
                if step.optional:
                    passed[step.id] = start
            else:
                expected.results[step.id] = passed[step.id] = result
        if any(not steps[name].optional for name in expected.failed):
            expected.outcome = "failed"
        else:
            needed = {name for step in steps.values() for name in step.depends_on}
            last = [(name, passed[name]) for name in steps if name not in needed]
            expected.commit = self.resolve(last)
        return expected

    def _expect_step(self, step, start):
        """Return the commit of a step, or None if it fails."""
        keys, why = self.find_items(step.id) if step.is_matrix else (("",), "")
        if why:
            return None
        good = [
            key
            for key in keys
            if not all(self.fails(step.id, key, number) for number in range(step.attempts))
        ]
        if (step.needs == "all" and len(good) < len(keys)) or (keys and not good):
            return None
        parts = [(key, write(read(start) | {f"{step.id}/{key}"})) for key in good]
        return self.integrate(step, parts) if parts else start
