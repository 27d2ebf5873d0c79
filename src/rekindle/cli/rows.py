"""The rows of `rekindle status`, and the details beside them: from files, or from a fleet."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from rekindle.cli.options import take_over_edits
from rekindle.config import Project
from rekindle.documents.row import Row
from rekindle.errors import RekindleError
from rekindle.flows.read_rows import Reading, ReadRows
from rekindle.policy import handoff, loop, sessions
from rekindle.policy.fold import Projection
from rekindle.policy.row import Around, listed_row, make_row, new_row
from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import FLEET_STATUS_AGENTS
from rekindle.stores.files import FileStore, inspection
from rekindle.stores.files.view import View
from rekindle.system import clock
from rekindle.wiring import trust
from rekindle.wiring.store import open_store

if TYPE_CHECKING:
    from rekindle.fleet.client import Listed
    from rekindle.fleet.store import FleetStore


class Shown(msgspec.Struct, frozen=True):
    """An agent as `status` shows it."""

    row: Row
    details: dict[str, Any] = {}
    """What only `status` shows; empty: nothing more is known."""

    def as_json(self) -> dict[str, Any]:
        row: dict[str, Any] = msgspec.to_builtins(self.row, builtin_types=(datetime,))
        return row | self.details


def of_fleet(
    project: Project, store: "FleetStore", names: Sequence[str], now: datetime
) -> list[Shown]:
    """Return the agents of a fleet: the engine lists all at once, and is asked about a few."""
    asks = len(names) <= FLEET_STATUS_AGENTS
    listed, files = store.listed(names if asks else ()), open_store(project)
    return [
        _on_fleet(project, store, name, listed[name], now if asks else None)
        if name in listed
        else _new_on_fleet(project, name, lives_here=files.has_lived(name))
        for name in names
    ]


def _new_on_fleet(project: Project, name: str, *, lives_here: bool) -> Shown:
    row = new_row(name, project.manifest.agents[name].harness)
    if lives_here:
        words, command = "lives in this folder", f"rekindle fleet import {name}"
        row = msgspec.structs.replace(row, reason=words, command=command)
    else:
        row = msgspec.structs.replace(row, reason="is not on the fleet")
    return Shown(row, {"fleet": None, "lives_here": lives_here})


def _on_fleet(
    project: Project, store: "FleetStore", name: str, listed: "Listed", now: datetime | None
) -> Shown:
    """Return an agent of a fleet; without `now` only what the engine's own list has."""
    entry = project.manifest.agents[name]
    row = listed_row(name, entry.harness, listed.state, listed.cycle, listed.why)
    fleet = {"fleet": msgspec.to_builtins(listed)}
    if now is None:
        return Shown(row, fleet)
    try:
        kept = store.kept(name)
    except RekindleError as error:
        # What the engine's own list has is known all the same.
        return Shown(row, fleet | {"error": str(error), "hint": error.hint})
    found, is_kept = kept.projection, store.is_kept_alive(kept)
    around = Around(
        now=now,
        is_supervised=is_kept,
        budget=entry.budget,
        loops=project.settings.runtime.loops,
    )
    facts = _known(project, name, found, found, now, supervised=is_kept, file="clean")
    more = {"state_file": "clean", "log": "sealed", "pending": 0, "unreadable": 0}
    owner = {"generation": kept.generation, "host": kept.host or None}
    return Shown(make_row(found, around, entry.harness), fleet | facts | more | owner)


def of_files(project: Project, store: FileStore, names: Sequence[str]) -> list[Shown]:
    """Return the agents of a project, each with its details where its files can be read."""
    return FileRows(project, store).read(names)


class FileRows:
    """The agents of a project; one whose files did not change is not read again."""

    def __init__(self, project: Project, store: FileStore) -> None:
        runtime = project.settings.runtime
        zone = clock.zone(runtime.brief.zone) if runtime.brief.zone else None
        self._project, self._store = project, store
        self._rows = ReadRows(
            store, project.manifest.agents, runtime, clock.now, zone=zone, is_alive=_is_alive
        )
        self._shown: dict[str, tuple[Reading, Shown]] = {}

    def read(self, names: Sequence[str]) -> list[Shown]:
        return [self._read(name) for name in names]

    def _read(self, name: str) -> Shown:
        reading = self._rows.read(name)
        before, shown = self._shown.get(name, (None, None))
        if shown is None or reading is not before:
            shown = _of_files(self._project, self._store, reading)
            if _is_edited(shown) and not reading.is_supervised:
                take_over_edits(self._store, name)
                reading = self._rows.read(name)
                shown = _of_files(self._project, self._store, reading)
            self._shown[name] = reading, shown
        return shown


def _is_edited(shown: Shown) -> bool:
    files = (shown.details.get(key) for key in ("relay_file", "state_file"))
    return "edited" in files


def _is_alive(process: str) -> bool:
    from rekindle.system.orphans import is_alive  # noqa: PLC0415 - only for sessions by hand

    return is_alive(process)


def _of_files(project: Project, store: FileStore, reading: Reading) -> Shown:
    if reading.view is None:
        return Shown(reading.row)
    try:
        return Shown(reading.row, _facts(project, store, reading, reading.view))
    except RekindleError as error:
        # The row has been made: only what is shown beside it could not be read.
        return Shown(reading.row, {"error": str(error), "hint": error.hint})


def _facts(project: Project, store: FileStore, reading: Reading, seen: View) -> dict[str, Any]:
    name, owner, supervised = reading.row.agent, reading.owner, reading.is_supervised
    standing = seen.committed.documents.get("relay")
    file = inspection.condition_of(store.folder(name), "relay", standing)
    found, committed = seen.projection, seen.committed
    return {
        **_known(project, name, found, committed, clock.now(), supervised=supervised, file=file),
        "relay_file": file,
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
    return [
        {"pid": one.pid, "command": one.command, "since": one.since}
        for one in kept
        if _is_alive(one.process)
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
    """Return what can be told of an agent wherever it is kept."""
    standing = committed.documents.get("relay")
    entry = project.manifest.agents[name]
    run = _run(found, supervised=supervised) | {
        "handoffs": handoff.count(sessions.of_cycle(found.attempts, found.cycle).values()),
        "handed_off_at": handoff.threshold(entry.handover, project.settings.runtime.relay),
    }
    return {
        "budget": msgspec.to_builtins(entry.budget) if entry.budget else None,
        "run": run if found.attempts else None,
        "relay": {
            "committed": standing.ts,
            "by": standing.by,
            "tokens": standing.tokens,
            "over_cap": standing.over_cap,
            "file": file,
        }
        if standing
        else None,
        "questions": _questions(found, now),
        "unpushed": _unpushed(found),
        "may_miss_stop": found.may_miss_stop,
    }


def _questions(found: Projection, now: datetime) -> list[dict[str, Any]]:
    """Return the questions that a person can answer now."""
    if not found.questions:
        return []
    from rekindle.policy import questions  # noqa: PLC0415 - few agents have any

    return [
        {
            "id": one.question,
            "text": one.text,
            "command": questions.command_line(one),
            "others": questions.other_answers(one),
        }
        for one in questions.open_questions(found, now)
    ]


def _unpushed(found: Projection) -> dict[str, Any] | None:
    """What of its work is on one host alone."""
    kept = found.unpushed
    return {"since": kept.ts, "host": found.moved.host, "reason": kept.words} if kept else None


def _run(found: Projection, *, supervised: bool) -> dict[str, Any]:
    """Return whether a supervisor runs, and how the last process ended."""
    tried, run = sessions.newest(found.attempts) or Attempt(0, "", resumes=False), found.run
    waits = run.waits(tried.seq)
    return {
        "supervised": supervised,
        "desired": run.desired or None,
        "ended": {"kind": run.ended.why, "reason": run.ended.words} if run.is_over else None,
        "safe_mode": {"kind": run.safe.why, "reason": run.safe.words} if run.is_safe else None,
        "waits": {"kind": waits.why, "until": waits.until} if waits else None,
        "run_began": run.began_at,
        "cycle_done": not found.is_cycle_open,
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
    return {"cycle": last.cycle, "how": last.how, "verdict": last.verdict, "reason": last.words}
