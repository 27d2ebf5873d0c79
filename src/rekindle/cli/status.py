"""`rekindle status`."""

from datetime import datetime
from typing import Any

import click
import msgspec

from rekindle.cli.options import ago, as_json, open_project, print_json
from rekindle.config import Project
from rekindle.errors import RekindleError
from rekindle.flows import transcripts
from rekindle.policy import handoff, loop, loops, sessions
from rekindle.policy.fold import Projection
from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import SECONDS_AN_HOUR
from rekindle.stores.files import FileStore, inspection, ownership
from rekindle.system import clock
from rekindle.wiring.store import HARNESSES

SCHEMA = 1


@click.command()
@click.argument("agent", required=False)
@as_json
def status(agent: str | None, as_json: bool) -> None:
    """How the agents are, and what comes next. With AGENT: only that one."""
    project, store = open_project()
    names = [project.require_agent(agent)] if agent else list(project.manifest.agents)
    now = clock.now()
    rows = [_row(project, store, name, now) for name in names]
    if as_json:
        print_json({"v": SCHEMA, "agents": rows})
        return
    if not rows:
        click.echo("No agents yet. Next: `rekindle init --agent NAME`.")
    for row in rows:
        _print(row, now)


def _row(project: Project, store: FileStore, name: str, now: datetime) -> dict[str, Any]:
    entry = project.manifest.agents[name]
    budget = msgspec.to_builtins(entry.budget) if entry.budget else None
    row: dict[str, Any] = {"agent": name, "harness": entry.harness, "budget": budget}
    if not store.exists(name):
        return row | {"state": "new"}
    try:
        return row | {"state": "kept"} | _facts(project, store, name, now)
    except RekindleError as error:
        # One broken agent must not hide the others.
        return row | {"state": "unreadable", "error": str(error), "hint": error.hint}


def _facts(project: Project, store: FileStore, name: str, now: datetime) -> dict[str, Any]:
    seen = store.read(name)
    found = seen.projection
    opened = loops.open_now(found.loops, now, project.settings.runtime.loops)
    standing = seen.committed.documents.get("relay")
    owner = ownership.read(store.folder(name))
    return {
        "last_active": found.last_active,
        "run": _run(store, name, found) | _window(project, name, found) if found.attempts else None,
        "open_loops": len(opened),
        "stale_loops": sum(one.stale for one in opened),
        "next_action": standing.headline if standing else None,
        "relay": {
            "committed": standing.ts,
            "by": standing.by,
            "tokens": standing.tokens,
            "over_cap": standing.over_cap,
            "file": inspection.condition_of(store.folder(name), "relay", standing),
        }
        if standing
        else None,
        "events": found.seq,
        "state_file": "edited" if store.has_edited_state(name) else "clean",
        "pending": len(seen.pending),
        "unreadable": len(seen.bad) + seen.unreadable,
        "generation": found.gen,
        "host": owner.host if owner else None,
    }


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


def _run(store: FileStore, name: str, found: Projection) -> dict[str, Any]:
    """Whether somebody keeps it alive, and how its last process ended."""
    tried, run = sessions.newest(found.attempts) or Attempt(0, "", resumes=False), found.run
    spent, waits = run.spent_of_run(), run.waits(tried.seq)
    return {
        "supervised": store.is_supervised(name),
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


def _print(row: dict[str, Any], now: datetime) -> None:
    click.echo(f"{click.style(row['agent'], bold=True)}  ({row['harness']})")
    if row["state"] == "new":
        click.echo("  nothing kept yet; it begins with the first command")
        return
    if row["state"] == "unreadable":
        click.secho(f"  {row['error']}", fg="red")
        click.echo(f"  → {row['hint'] or 'rekindle doctor'}")
        return
    click.echo(f"  next:   {row['next_action'] or 'no relay yet: rekindle relay set FILE'}")
    stale = f", {row['stale_loops']} stale" if row["stale_loops"] else ""
    click.echo(f"  loops:  {row['open_loops']} open{stale}")
    click.echo(f"  active: {ago(row['last_active'], now)}")
    if row["run"]:
        click.echo(f"  cycle:  {_cycle(row['agent'], row['run'], now)}")
        if row["run"]["window"] or row["run"]["handoffs"]:
            click.echo(f"  window: {_fullness(row['run'])}")
        if row["budget"] or row["run"]["spent"]["tokens"]:
            click.echo(f"  spent:  {_spent(row['run'], row['budget'], now)}")
    if row["relay"]:
        _print_relay(row["relay"], now)
    for line in _warnings(row):
        click.secho(f"  ! {line}", fg="yellow")


def _fullness(run: dict[str, Any]) -> str:
    window, parts = run["window"] or {}, []
    if window.get("percent") is not None:
        at = window["handed_off_at"]
        parts.append(
            f"{window['percent']:.0f} % of {window['of']:,} tokens full ({window['known']}), "
            + (f"handed off at {at} %" if at else "never handed off")
        )
    elif window:
        parts.append(f"{window['tokens']:,} tokens used; how large it is nobody knows")
    if run["handoffs"]:
        parts.append(f"handoffs in this cycle: {run['handoffs']}")
    return "; ".join(parts)


def _cycle(name: str, run: dict[str, Any], now: datetime) -> str:
    if run["safe_mode"]:
        where = "" if run["supervised"] else "; nobody keeps it"
        words = run["safe_mode"]["words"] or run["safe_mode"]["why"]
        goes_on = _goes_on(name, run["safe_mode"]["why"])
        return f"{run['cycle']}, in safe mode ({words}): {goes_on}{where}"
    if run["supervised"] and run["waits"]:
        until = f"{run['waits']['until'].astimezone():%Y-%m-%d %H:%M}"
        return f"{run['cycle']}, waits until {until} ({run['waits']['why']})"
    if run["supervised"]:
        return f"{run['cycle']}, running; its process began {ago(run['began'], now)}"
    return f"{run['cycle']} {_ended(name, run)}"


def _ended(name: str, run: dict[str, Any]) -> str:
    if run["cycle_done"] and run["over"] in {"waiting", "stalled", "cycles"}:
        words = run["over_words"] or run["over"]
        return f"was the last of its run ({words}): {_goes_on(name, run['over'])}"
    if run["cycle_done"]:
        return "is done"
    if run["over"] == "budget":
        return f"was ended, its budget is spent: `rekindle restart {name}` begins a new run"
    if run["desired"] == "stopped":
        return f"was stopped by you: `rekindle run {name}` goes on with it"
    how = run["exit"] or "its supervisor is gone"
    return f"was stopped ({how}): `rekindle run {name}` goes on with it"


def _goes_on(name: str, why: str) -> str:
    """The command that goes on, after what keeps an agent from it."""
    match why:
        case "waiting":
            return f"`rekindle answer {name} TEXT` goes on"
        case "cycles":
            return f"`rekindle run {name}` has as many again"
        case _:
            return f"`rekindle restart {name}` goes on"


def _spent(run: dict[str, Any], budget: dict[str, Any] | None, now: datetime) -> str:
    """What the run has spent, beside what it may."""
    spent, cap = run["spent"], budget or {}
    hours = (now - run["run_began"]).total_seconds() / SECONDS_AN_HOUR if run["run_began"] else 0
    of_usd = f" of ${cap['usd']:g}" if cap.get("usd") else ""
    of_tokens = f" of {cap['tokens']:,}" if cap.get("tokens") else ""
    has_money = bool(spent["usd"] or of_usd)  # of a program without prices there is none to tell
    parts = [f"${spent['usd']:.2f}{of_usd}"] if has_money else []
    parts.append(f"{spent['tokens']:,}{of_tokens} tokens")
    if cap.get("hours"):
        parts.append(f"{hours:.1f} of {cap['hours']:g} hours")
    if spent["unpriced"] and has_money:
        parts.append(f"and {spent['unpriced']} launches whose cost is not known")
    return ", ".join(parts)


def _print_relay(relay: dict[str, Any], now: datetime) -> None:
    click.echo(
        f"  relay:  ~{relay['tokens']:,} tokens, by {relay['by']}, {ago(relay['committed'], now)}"
    )


def _warnings(row: dict[str, Any]) -> list[str]:
    found = []
    relay = row["relay"]
    if relay and relay["over_cap"]:
        found.append("the relay is over its cap even when trimmed: shorten its Next Action")
    if relay and relay["file"] == "edited":
        found.append("the relay's file was edited: the next command takes it over")
    if relay and relay["file"] in {"missing", "behind"}:
        found.append(f"the relay's file is {relay['file']}: rekindle doctor --fix")
    if row["state_file"] == "edited":
        found.append("state.json was edited: the next command that writes takes it over")
    if row["pending"] and not (row["run"] and row["run"]["supervised"]):
        found.append(f"records that wait to be folded, and count already: {row['pending']}")
    if row["unreadable"]:
        found.append(f"unreadable records: {row['unreadable']}; see rekindle doctor")
    if row["run"] and row["run"]["hurried"]:
        found.append("its cycles take less than a minute: make the steps of its task larger")
    if row["run"] and handoff.is_much(row["run"]["handoffs"]):
        found.append("split this work: its cycle has outgrown one window again and again")
    if row["stale_loops"]:
        found.append("stale loops: finish or `rekindle resolve` them")
    return found
