"""What `rekindle status` knows of each agent, as a row: from files, or from a fleet."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from rekindle.config import Project
from rekindle.errors import RekindleError
from rekindle.flows import transcripts
from rekindle.policy import handoff, loop, loops, questions, sessions
from rekindle.policy.fold import Projection
from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import FLEET_STATUS_AGENTS
from rekindle.stores.files import FileStore, inspection, ownership
from rekindle.wiring import trust
from rekindle.wiring.store import HARNESSES, open_store

if TYPE_CHECKING:
    from rekindle.fleet.client import Listed
    from rekindle.fleet.store import FleetStore


def of_fleet(
    project: Project, store: "FleetStore", names: Sequence[str], now: datetime
) -> list[dict[str, Any]]:
    """One question for the list of all; of a few, each is asked how it is."""
    asks = len(names) <= FLEET_STATUS_AGENTS
    listed, files = store.listed(names if asks else ()), open_store(project)
    return [
        _row_of_fleet(project, store, name, listed[name], now, asks)
        if name in listed
        else _entry(project, name)
        | {"state": "new", "fleet": None, "lives_here": files.has_lived(name)}
        for name in names
    ]


def _row_of_fleet(  # noqa: PLR0917 - one for each thing that is known
    project: Project,
    store: "FleetStore",
    name: str,
    listed: "Listed",
    now: datetime,
    asks: bool,
) -> dict[str, Any]:
    row = _entry(project, name) | {"state": "listed", "fleet": msgspec.to_builtins(listed)}
    if not asks:
        return row
    try:
        kept = store.kept(name)
    except RekindleError as error:
        # What the engine's own list has is known all the same.
        return row | {"error": str(error), "hint": error.hint}
    found, is_kept = kept.projection, store.is_kept_alive(kept)
    facts = _known(project, name, found, found, now, supervised=is_kept, file="clean")
    more = {"state_file": "clean", "log": "sealed", "pending": 0, "unreadable": 0}
    owner = {"generation": kept.generation, "host": kept.host or None}
    return row | {"state": "kept"} | facts | more | owner


def _entry(project: Project, name: str) -> dict[str, Any]:
    entry = project.manifest.agents[name]
    budget = msgspec.to_builtins(entry.budget) if entry.budget else None
    return {"agent": name, "harness": entry.harness, "budget": budget}


def of_files(project: Project, store: FileStore, name: str, now: datetime) -> dict[str, Any]:
    row = _entry(project, name)
    if not store.exists(name):
        return row | {"state": "new"}
    try:
        return row | {"state": "kept"} | _facts(project, store, name, now)
    except RekindleError as error:
        # One broken agent must not hide the others.
        return row | {"state": "unreadable", "error": str(error), "hint": error.hint}


def _facts(project: Project, store: FileStore, name: str, now: datetime) -> dict[str, Any]:
    seen = store.read(name)
    owner = ownership.read(store.folder(name))
    standing = seen.committed.documents.get("relay")
    file = inspection.condition_of(store.folder(name), "relay", standing)
    supervised = store.is_supervised(name)
    found, committed = seen.projection, seen.committed
    return {
        **_known(project, name, found, committed, now, supervised=supervised, file=file),
        "state_file": "edited" if store.has_edited_state(name) else "clean",
        "log": seen.condition,
        "pending": len(seen.pending),
        "unreadable": len(seen.bad) + seen.unreadable,
        "settings_changed": [change.render() for change in trust.find_changes(project, name)],
        "generation": found.gen,
        "host": owner.host if owner else None,
        "kept": _kept(store, name),
    }


def _kept(store: FileStore, name: str) -> list[dict[str, Any]]:
    """The background processes that outlive the agent's sessions, and run now."""
    kept = store.background(name).kept
    if not kept:
        return []
    from rekindle.system.orphans import is_alive  # noqa: PLC0415 - few agents keep anything

    return [
        {"pid": one.pid, "command": one.command, "since": one.since}
        for one in kept
        if is_alive(one.process)
    ]


def _known(
    project: Project,
    name: str,
    found: Projection,
    committed: Projection,
    now: datetime,
    *,
    supervised: bool,
    file: str,
) -> dict[str, Any]:
    """What can be told of an agent wherever it is kept."""
    opened = loops.open_now(found.loops, now, project.settings.runtime.loops)
    standing = committed.documents.get("relay")
    run = _run(found, supervised=supervised) | _window(project, name, found)
    return {
        "last_active": found.last_active,
        "run": run if found.attempts else None,
        "open_loops": len(opened),
        "stale_loops": sum(one.stale for one in opened),
        "next_action": standing.headline if standing else None,
        "relay": {
            "committed": standing.ts,
            "by": standing.by,
            "tokens": standing.tokens,
            "over_cap": standing.over_cap,
            "file": file,
        }
        if standing
        else None,
        "questions": [
            {"id": one.question, "text": one.text, "command": questions.command_line(one)}
            for one in questions.open_questions(found, now)
        ],
        "unpushed": _unpushed(found),
        "events": found.seq,
        "may_miss_stop": found.may_miss_stop,
    }


def _unpushed(found: Projection) -> dict[str, Any] | None:
    """What of its work is on one host alone."""
    kept = found.unpushed
    return {"since": kept.ts, "host": found.moved.host, "words": kept.words} if kept else None


def _window(project: Project, name: str, found: Projection) -> dict[str, Any]:
    """How full the window of the last session is, and how often its cycle was handed off."""
    handed = handoff.count(sessions.of_cycle(found.attempts, found.cycle).values())
    tried = sessions.newest(found.attempts)
    life = found.lives.get(tried.session) if tried else None
    entry = project.manifest.agents[name]
    reading = None
    if life is not None and life.transcript and entry.harness in HARNESSES:
        learnt = found.windows.get(HARNESSES[entry.harness].NAME, {})
        windows = {model: one.window for model, one in learnt.items()}
        reading = HARNESSES[entry.harness].usage(transcripts.tail(life.transcript), windows)
    return {
        "handoffs": handed,
        "window": {
            "tokens": reading.tokens,
            "of": reading.window,
            "percent": None if reading.percent is None else round(reading.percent, 1),
            "known": reading.known,
            "handed_off_at": handoff.threshold(entry.handover, project.settings.runtime.relay),
        }
        if reading
        else None,
    }


def _run(found: Projection, *, supervised: bool) -> dict[str, Any]:
    """Whether somebody keeps it alive, and how its last process ended."""
    tried, run = sessions.newest(found.attempts) or Attempt(0, "", resumes=False), found.run
    spent, waits = run.spent_of_run(), run.waits(tried.seq)
    return {
        "supervised": supervised,
        "desired": run.desired or None,
        "over": run.ended.why if run.is_over else None,
        "over_words": run.ended.words if run.is_over else None,
        "safe_mode": {"why": run.safe.why, "words": run.safe.words} if run.is_safe else None,
        "waits": {"why": waits.why, "until": waits.until} if waits else None,
        "spent": {"usd": spent.usd, "tokens": spent.tokens, "unpriced": spent.unpriced},
        "run_began": run.began_at,
        "cycle": found.cycle,
        "cycle_done": not found.is_cycle_open,
        "cycles": {"done": max(0, found.cycle_ended - run.first), "of": run.cycles.cycles},
        "last_cycle": _last_cycle(found),
        "hurried": loop.is_hurried(found.ended),
        "session": tried.session,
        "began": tried.began,
        "exit": tried.exit or None,
    }


def _last_cycle(found: Projection) -> dict[str, Any] | None:
    last = found.last_ended
    if last is None:
        return None
    return {"cycle": last.cycle, "how": last.how, "verdict": last.verdict, "why": last.words}
