"""`rekindle status`."""

from datetime import datetime
from typing import Any

import click

from rekindle import config
from rekindle.cli import rows as rows_of
from rekindle.cli.options import ago, as_json, here, open_fleet, print_note
from rekindle.cli.output import echo, print_json, secho, styled
from rekindle.documents.identity import one_line
from rekindle.errors import TamperedLogError
from rekindle.policy import handoff
from rekindle.policy import run as policy
from rekindle.policy.settings import SECONDS_AN_HOUR
from rekindle.stores.files import ownership
from rekindle.stores.files.seal import TAMPERED
from rekindle.system import clock
from rekindle.thresholds.screens import QUESTION_WIDTH
from rekindle.wiring.store import open_store

SCHEMA = 1


@click.command()
@click.argument("agent", required=False)
@as_json
def status(agent: str | None, as_json: bool) -> None:
    """How the agents are, and what comes next. With AGENT: only that one."""
    project = config.load(here())
    names = [project.require_agent(agent)] if agent else list(project.manifest.agents)
    now = clock.now()
    if project.settings.fleet is not None:
        rows = rows_of.of_fleet(project, open_fleet(project, project.settings.fleet), names, now)
    else:
        store = open_store(project, say=print_note)
        rows = [rows_of.of_files(project, store, name, now) for name in names]
    if as_json:
        print_json({"v": SCHEMA, "agents": rows})
        return
    if not rows:
        echo("No agents yet. Next: `rekindle init --agent NAME`.")
    for row in rows:
        _print(row, now)


def _print(row: dict[str, Any], now: datetime) -> None:
    echo(styled(row["agent"], bold=True), f"  ({row['harness']})")
    if row["state"] == "new":
        echo(f"  {_nothing(row)}")
        return
    if row.get("fleet"):
        echo(f"  fleet:  {_on_fleet(row)}")
    if row["state"] == "listed":
        if "error" in row:
            secho(f"  ! {row['error']}", fg="yellow")
            echo(f"  → {row['hint']}")
        return
    if row["state"] == "unreadable":
        secho(f"  {row['error']}", fg="red")
        echo(f"  → {row['hint'] or 'rekindle doctor'}")
        return
    _print_known(row, now)


def _print_known(row: dict[str, Any], now: datetime) -> None:
    none = "no relay yet" if "fleet" in row else "no relay yet: rekindle relay set FILE"
    echo(f"  next:   {row['next_action'] or none}")
    stale = f", {row['stale_loops']} stale" if row["stale_loops"] else ""
    echo(f"  loops:  {row['open_loops']} open{stale}")
    echo(f"  active: {ago(row['last_active'], now)}")
    if row["run"]:
        echo(f"  cycle:  {_cycle(row['agent'], row['run'], now)}")
        if row["run"]["window"] or row["run"]["handoffs"]:
            echo(f"  window: {_fullness(row['run'])}")
        if row["budget"] or row["run"]["spent"]["tokens"]:
            echo(f"  spent:  {_spent(row['run'], row['budget'], now)}")
    if row["relay"]:
        _print_relay(row["relay"], now)
    for kept in row.get("kept", ()):
        echo(f"  kept:   {kept['command']} (pid {kept['pid']}, since {ago(kept['since'], now)})")
    for asked in row["questions"]:
        secho(f"  ? {one_line(asked['text'], QUESTION_WIDTH)}: {asked['command']}", fg="yellow")
    for line in _warnings(row):
        secho(f"  ! {line}", fg="yellow")


def _nothing(row: dict[str, Any]) -> str:
    if "fleet" not in row:
        return "nothing kept yet; it begins with the first command"
    if row["lives_here"]:
        return f"lives in this folder: `rekindle fleet import {row['agent']}` has the fleet keep it"
    return f"is not on the fleet: `rekindle run {row['agent']}` begins it there"


def _on_fleet(row: dict[str, Any]) -> str:
    listed = row["fleet"]
    where = f"host {listed['host']} of pool" if listed["host"] != "-" else "pool"
    count = f"; generation {row['generation']}" if "generation" in row else ""
    return f"{listed['state']}, {where} {listed['pool']}{count}"


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
        why = f" ({run['waits']['why']})" if run["waits"]["why"] else ""
        return f"{run['cycle']}, waits until {until}{why}"
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
        case policy.TAMPERED:
            return f"see `rekindle doctor`; `rekindle restart {name}` accepts the log"
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
    echo(f"  relay:  ~{relay['tokens']:,} tokens, by {relay['by']}, {ago(relay['committed'], now)}")


def _warnings(row: dict[str, Any]) -> list[str]:
    found = _about_files(row)
    found += [
        f"rekindle.yaml changed since your last command: {change};"
        f" `rekindle {'restart' if row['run'] and row['run']['supervised'] else 'run'}"
        f" {row['agent']}` accepts it"
        for change in row.get("settings_changed", ())
    ]
    if row["run"] and row["run"]["hurried"]:
        found.append("its cycles take less than a minute: make the steps of its task larger")
    if row["run"] and handoff.is_much(row["run"]["handoffs"]):
        found.append("split this work: its cycle has outgrown one window again and again")
    if "fleet" not in row and (row["host"] or "").startswith(ownership.FLEET):
        found.append("it lives on a fleet: this is how it left; say `fleet:` in rekindle.yaml")
    if unpushed := row["unpushed"]:
        words = one_line(unpushed["words"])
        found.append(
            f"its work could not be pushed, and is on host {unpushed['host']} alone: {words}"
        )
    if row["stale_loops"]:
        found.append("stale loops: finish or `rekindle resolve` them")
    return found


def _about_files(row: dict[str, Any]) -> list[str]:
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
    is_told = row["run"] and (row["run"]["safe_mode"] or {}).get("why") == policy.TAMPERED
    if row["log"] in TAMPERED and not is_told:
        words = TamperedLogError(row["agent"], row["log"]).reason
        found.append(f"{words}: see `rekindle doctor`; nothing starts it")
    if row["may_miss_stop"]:
        found.append("events of its log are lost, and a stop may be among them: rekindle doctor")
    if row["unreadable"]:
        found.append(f"unreadable records: {row['unreadable']}; see rekindle doctor")
    return found
