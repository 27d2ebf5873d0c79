"""What must hold for every agent of a fleet, whatever fails: checked in its history alone."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from fleet.audit import Told
from fleet.crowd import Crowd, git, snapshots

OWNED_TWICE = "owned twice"
RELAY_LOST = "relay lost"
GAP = "gap"
REPEAT = "repeat"
ZOMBIE = "zombie accepted"
KINDS = (OWNED_TWICE, RELAY_LOST, GAP, REPEAT, ZOMBIE)


@dataclass(frozen=True)
class Violation:
    kind: str
    agent: str
    at: datetime
    words: str


def find_violations(told: Told) -> list[Violation]:
    """Return what an agent's history shows that must never happen, oldest first."""
    checks = (_owners(told), _relays(told), _cycles(told), _launches(told), _zombies(told))
    found = [one for check in checks for one in check]
    return sorted(found, key=lambda one: one.at)


def find_lost_work(crowd: Crowd, agent: str) -> list[str]:
    """Return how an agent's pushed work differs from what its history says."""
    told, known = crowd.told[agent], crowd.kept[agent].projection
    branch, problems = f"rekindle/{agent}/work", []
    tip = git("rev-parse", branch, cwd=crowd.remote).strip()
    if known.workspace is None or tip != known.workspace.revision:
        problems.append(f"{tip} was pushed last, and {known.workspace} is recorded")
    lines = git("show", f"{branch}:{agent}.txt", cwd=crowd.remote).splitlines()
    # A cycle whose draft was lost with its host keeps the previous relay: the next cycle is asked
    # for the same line, and finds it there.
    again = [one["how"] for one in told.of("cycle.ended")][:-1].count("carried")
    if lines != [str(number + 1) for number in range(known.cycle_ended - again)]:
        problems.append(f"{lines} were written in {known.cycle_ended} cycles, {again} repeated")
    generations = [one.generation for one in snapshots(crowd.remote, agent)]
    if generations != sorted(generations):
        problems.append(f"generations were pushed in this order: {generations}")
    return problems


def count_by_kind(violations: Iterable[Violation]) -> dict[str, int]:
    """Return the number of violations of each kind, also of those that did not occur."""
    counted = Counter(one.kind for one in violations)
    return {kind: counted[kind] for kind in KINDS}


def _owners(told: Told) -> Iterator[Violation]:
    """A lease is given after the end of the previous one, and taken by one worker."""
    for at, words in told.overlaps:
        yield Violation(OWNED_TWICE, told.agent, at, words)
    for before, after in pairwise(told.leases):
        if after.generation <= before.generation:
            words = f"generation {after.generation} after {before.generation}"
            yield Violation(OWNED_TWICE, told.agent, after.scheduled, words)


def _relays(told: Told) -> Iterator[Violation]:
    """Each relay follows the one before it, and each ended cycle has one."""
    relays = told.of("relay.committed")
    for before, after in pairwise([{"sha256": None}, *relays]):
        if after.get("previous") != before["sha256"]:
            words = f"{after['sha256']} follows {after.get('previous')}, not {before['sha256']}"
            yield Violation(RELAY_LOST, told.agent, _at(after), words)
    ended = told.of("cycle.ended")
    if len(relays) != len(ended) and ended:
        words = f"{len(relays)} relays of {len(ended)} cycles"
        yield Violation(RELAY_LOST, told.agent, _at(ended[-1]), words)


def _cycles(told: Told) -> Iterator[Violation]:
    """Each cycle ends once, and the next one has the next number."""
    last = 0
    for event in told.of("cycle.ended"):
        if event["cycle"] != last + 1:
            kind = GAP if event["cycle"] > last + 1 else REPEAT
            words = f"cycle {event['cycle']} after {last}"
            yield Violation(kind, told.agent, _at(event), words)
        last = event["cycle"]


def _launches(told: Told) -> Iterator[Violation]:
    """Each launch begins once."""
    seen = set()
    for event in told.of("launch.started"):
        if event["launch"] in seen:
            yield Violation(REPEAT, told.agent, _at(event), f"launch {event['launch']} again")
        seen.add(event["launch"])


def _zombies(told: Told) -> Iterator[Violation]:
    """Every commit has the lease that counted then, from the worker that took it."""
    for one in told.zombies:
        words = f"{one.who} committed with {one.asked.generation} during {one.leased}"
        yield Violation(ZOMBIE, told.agent, one.at, words)


def _at(event: dict[str, str]) -> datetime:
    return datetime.fromisoformat(event["ts"])
