"""The reference page of the JSON that commands print, with every key and its meaning."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec
from event_page import read_meanings

from rekindle.cli import main
from rekindle.cli.output import OUTPUT_SCHEMA
from rekindle.documents.screens import agent_row
from rekindle.documents.screens.agent_row import AgentRow

EVENTS = {"events", "run"}
"""Commands that print events of the log; `events.md` has their fields."""
FIXED = {
    "redact": "one secret a line: `line`, `start`, `end` (all from 0) and `rule`",
    "relay replay": "one pair of relays a line (`prev`, `curr`, `verdict`, `why`), then one stretch"
    " a line (`stretch`, `verdicts`, `cycles`, `about`)",
}
"""Commands whose lines have no version, because their shape is specified elsewhere."""


class Output(NamedTuple):
    """What a command prints with `--json`."""

    about: str
    keys: dict[str, str]
    """Paths of keys and their meanings; `[]` is an entry of a list."""


def _nested(kind: type[msgspec.Struct], prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of a struct in `documents/screens/agent_row.py`, with their meanings."""
    meanings = read_meanings(Path(agent_row.__file__))[kind.__name__]
    for field in msgspec.structs.fields(kind):
        yield f"{prefix}{field.encode_name}", meanings[field.name]
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from _nested(field.type, f"{prefix}{field.encode_name}.")


ROW = dict(_nested(AgentRow, "agents[]."))
DETAILS = {
    "agents[].budget": "`budget:` of its entry in rekindle.yaml, or null.",
    "agents[].run": "Its run, or null if no launch was recorded.",
    "agents[].run.supervised": "Whether a supervisor runs.",
    "agents[].run.desired": "What the operator said last: `running` or `stopped`, or null.",
    "agents[].run.ended": "`kind` and `reason` of the end, if the run is over, or null.",
    "agents[].run.safe_mode": "`kind` and `reason` of the safe mode, or null.",
    "agents[].run.waits": "`kind` of a wait and its end (`until`), or null.",
    "agents[].run.run_began": "Time at which the run began, or null.",
    "agents[].run.cycle_done": "Whether its last cycle is over.",
    "agents[].run.last_cycle": "`cycle`, `how`, `verdict` and `reason` of the last cycle that"
    " ended, or null.",
    "agents[].run.hurried": "Whether cycles end so soon that handover costs more than the work.",
    "agents[].run.session": "Id of the last session.",
    "agents[].run.began": "Time at which its last launch began.",
    "agents[].run.exit": "How that launch exited, or null if it runs.",
    "agents[].run.handoffs": "Handoffs of the current cycle.",
    "agents[].run.handed_off_at": "Fill of the window, in percent, at which it is handed off.",
    "agents[].relay": "Its last relay, or null: `committed` (time), `by`, `tokens`, `over_cap`,"
    " `file` (`clean`, `edited` or `missing`).",
    "agents[].questions": "Questions that a person can answer now: `id`, `text`, `command`,"
    " `others`.",
    "agents[].unpushed": "`since`, `host` and `reason` of work that is on one host alone, or null.",
    "agents[].may_miss_stop": "Whether lost events may hold a stop.",
    "agents[].relay_file": "Condition of its relay file.",
    "agents[].state_file": "Condition of its state.json.",
    "agents[].log": "Condition of its log.",
    "agents[].pending": "Records that its writer has not taken in yet.",
    "agents[].unreadable": "Records and lines that could not be read.",
    "agents[].settings_changed": "Settings that differ from the accepted ones, as text.",
    "agents[].generation": "Generation of its writer.",
    "agents[].host": "Host that has it, or null.",
    "agents[].kept": "Background processes that outlive its sessions: `pid`, `command`, `since`.",
    "agents[].fleet": "Its entry in the list of the engine, or null; only on a fleet.",
    "agents[].lives_here": "Whether an agent that is not on the fleet has files here; only then.",
    "agents[].error": "Why the details could not be read; only then.",
    "agents[].hint": "What to do about it; only then.",
}
ANSWER = {
    "agent": "The agent.",
    "question": "Id of the question; null: the text is for the agent's next cycle.",
    "choice": "The choice, or empty.",
    "text": "The text, or empty.",
    "effect": "What it does: `restart`, `continue`, `stop`, `finish` or `note`.",
    "by": "Author of the answer.",
    "host": "Host on which it was given.",
    "origin": "Where it came from; `deadline`: no person gave it.",
    "ts": "Time of the answer.",
    "is_recorded": "Whether the log has it already.",
}
HOOKS = {
    "agent": "The agent that they report for; empty: found by the folder of the session.",
    "harness": "The CLI.",
    "level": "`local`, `project` or `user`.",
    "settings": "The settings file.",
    "changed": "Whether anything was changed.",
}
UNINSTALLED = {key: text for key, text in HOOKS.items() if key != "agent"}
WRITTEN = "`text`, `is_new`, `how` (`headless`, `mechanical` or empty), `words`, `turns`,\
 `left_out`, `read_bytes`, `opened`, `resolved`, `claimed`, `unknown`"
LOOP = {
    "id": "Id of the loop.",
    "outcome": "`opened`, `reworded`, `reopened`, `resolved` or `unchanged`.",
    "folded": "Whether the agent's writer has taken it in already.",
}
AGENT = "The agent."


def _with_list(keys: dict[str, str], name: str, meaning: str) -> dict[str, str]:
    return keys | {name: meaning} | {f"{name}[].{key}": text for key, text in keys.items()}


OUTPUTS = {
    "adopt": Output(
        "",
        {
            "agent": AGENT,
            "adopted": "False: it had been adopted before.",
            "did": "What was written, as sentences.",
            "took": "What was taken over.",
            "trimmed": "Whether the relay was trimmed.",
            "over_cap": "Whether it is still over its cap.",
            "left_out": "What was not taken over, as sentences.",
            "redacted": "Number of secrets that were redacted.",
        },
    ),
    "answer": Output("", ANSWER),
    "approve": Output("", ANSWER),
    "deny": Output("", ANSWER),
    "brief": Output(
        "`brief AGENT` has `agent` and `brief`; `--due` has `agents`; the morning page (`--all`,"
        " `--all-projects`) has `project`, `written`, `entries` and `cost`. On a fleet: `agent`,"
        " `new`, `text`.",
        {
            "agent": AGENT,
            "brief": f"The brief: {WRITTEN}.",
            "new": "Whether a host wrote a new one.",
            "text": "The brief.",
            "agents": "One entry for each agent.",
            "agents[].agent": AGENT,
            "agents[].written": "Whether one was due and written.",
            "agents[].words": "What was done, or why nothing was.",
            "agents[].brief": f"The brief, if one was written: {WRITTEN}.",
            "project": "The project, or how many there are.",
            "written": "Time of the page, in words.",
            "cost": "Cost of all agents, in words.",
            "entries": "One entry for each agent: `agent`, `state`, `why`, `done`, `next`, `asks`"
            " (`text`, `command`, `others`), `night` (`at`, `text`, `kind`), `loops`, `open_loops`,"
            " `refused`, `cost`, `brief`, `label`.",
        },
    ),
    "config explain": Output(
        "",
        {
            "settings": "One entry for each key.",
            "settings[].key": "The key.",
            "settings[].value": "The value in force.",
            "settings[].default": "Its default.",
            "settings[].unit": "What a number counts.",
            "settings[].origin": "Where the value comes from.",
            "settings[].meaning": "What it means.",
        },
    ),
    "decisions": Output(
        "",
        {
            "decisions": "One entry for each decision.",
            "decisions[].text": "Its words.",
            "decisions[].made": "Its date, or null.",
            "decisions[].key": "What makes it the same decision after an edit.",
            "decisions[].status": "Whether it is in force, superseded, archived or dropped.",
            "decisions[].by": "The decision that superseded it, or null.",
            "decisions[].first": "When a relay had it first.",
            "decisions[].last": "When a relay had it last.",
        },
    ),
    "doctor": Output(
        "",
        {
            "ok": "Whether nothing is broken.",
            "agents": "Problems by agent: `what`, `fix` (the command that fixes it), `broken`.",
            "programs": "Programs by name, and whether each was found.",
        },
    ),
    "down": Output(
        "",
        {
            "stopped": "Agents that are stopped.",
            "were_running": "Those of them that ran.",
            "still_ending": "Agents that have not ended yet.",
        },
    ),
    "up": Output(
        "",
        {
            "agents": "One entry for each agent.",
            "agents[].agent": AGENT,
            "agents[].state": "What became of it.",
            "agents[].error": "Why it was not started, or empty.",
            "agents[].hint": "What to do about that, or empty.",
        },
    ),
    "fleet import": Output(
        "",
        {
            "agents": "One entry for each agent.",
            "agents[].agent": AGENT,
            "agents[].imported": "False: it was on the fleet before.",
        },
    ),
    "fleet remove": Output(
        "",
        {
            "agents": "One entry for each agent.",
            "agents[].agent": AGENT,
            "agents[].cycle": "Its last cycle.",
            "agents[].events": "Number of its events.",
            "agents[].branch": "Branch of its remote with its work, or null.",
        },
    ),
    "handoff": Output("", {"agent": AGENT, "asked": "`handoff`."}),
    "hooks install": Output(
        "With `--all` one entry of `hooks` for each.",
        _with_list(HOOKS, "hooks", "With `--all`: one entry for each place."),
    ),
    "hooks uninstall": Output(
        "With `--all` one entry of `hooks` for each.",
        _with_list(UNINSTALLED, "hooks", "With `--all`: one entry for each place."),
    ),
    "hooks status": Output(
        "",
        {
            "hooks": "One entry for each place.",
            "hooks[].harness": HOOKS["harness"],
            "hooks[].level": HOOKS["level"],
            "hooks[].settings": HOOKS["settings"],
            "hooks[].state": "Whether they are installed, and can run.",
            "hooks[].problems": "What is wrong with them.",
            "hooks[].fix": "The command that fixes it, or empty.",
        },
    ),
    "init": Output(
        "",
        {
            "agent": AGENT,
            "harness": "Its CLI.",
            "folder": "Folder of the project.",
            "did": "What was written, as sentences.",
        },
    ),
    "loops": Output(
        "",
        {
            "open": "Open loops, oldest first: `id`, `text`, `added`, `stale`, `reopened` (times),"
            " `history` (`ts`, and `opened` or `resolved`), and its own fields in state.json.",
            "resolved": "Loops that were resolved lately: `id`, `reason`, `resolved_date`.",
        },
    ),
    "loops add": Output("", LOOP),
    "resolve": Output("", LOOP),
    "questions": Output(
        "",
        {
            "questions": "One entry for each question.",
            "questions[].id": "Its id.",
            "questions[].agent": "The agent that asks.",
            "questions[].about": "Why it asks.",
            "questions[].text": "The question.",
            "questions[].request": "The exact request, such as a tool call with its arguments.",
            "questions[].choices": "Answers that it takes.",
            "questions[].default": "Answer that applies after the deadline.",
            "questions[].asked": "Time at which it was asked.",
            "questions[].deadline": "Its deadline, or null.",
            "questions[].state": "`open`, `answered`, `unanswered` or `withdrawn`.",
            "questions[].command": "Command that answers it, or null if it is not open.",
            "questions[].others": "Other answers than that one.",
            "questions[].answer": "The answer, or null: `choice`, `text`, `effect`, `by`, `host`,"
            " `origin`, `ts`.",
        },
    ),
    "relay show": Output(
        "", {"agent": AGENT, "text": "The relay.", "fields": "Its parts by their names."}
    ),
    "relay check": Output(
        "",
        {
            "kind": "The most severe finding.",
            "usable": "Whether an agent could start with it.",
            "tokens": "Its size.",
            "fields": "Parts that it has.",
            "missing": "Parts that it does not have.",
            "headline": "Its next action in a line.",
            "findings": "What was found.",
            "redacted": "Number of secrets that were redacted.",
        },
    ),
    "relay set": Output(
        "A relay that is not committed yet has the first three keys only.",
        {
            "agent": AGENT,
            "folded": "Whether it is committed already.",
            "redacted": "Number of secrets that were redacted.",
            "seq": "Number of its event.",
            "ts": "Time of the commit.",
            "sha256": "Hash of its text.",
            "previous": "Hash of the relay before it.",
            "path": "Its file in the archive.",
            "by": "Its author.",
            "tokens": "Its size.",
            "headline": "Its next action in a line.",
            "trimmed": "File with what was cut off, or empty.",
            "over_cap": "Whether it is still over its cap.",
            "is_said": "Whether a person set it.",
            "session": "Empty.",
        },
    ),
    "relay history": Output(
        "",
        {
            "relays": "One entry for each relay, newest first.",
            "relays[].seq": "Number of its event.",
            "relays[].ts": "Time of the commit.",
            "relays[].by": "Its author.",
            "relays[].tokens": "Its size.",
            "relays[].sha256": "Hash of its text.",
            "relays[].next_action": "Its next action in a line.",
            "relays[].path": "Its file in the archive.",
            "relays[].commit": "Its commit in the git audit trail, or null.",
        },
    ),
    "relay diff": Output(
        "",
        {
            "older": "Number of the older relay.",
            "newer": "Number of the newer relay.",
            "diff": "Lines of a unified diff.",
        },
    ),
    "restart": Output(
        "Several agents are entries of `agents`.",
        _with_list(
            {
                "agent": AGENT,
                "desired": "`running`; null if there is nothing to restart.",
                "supervised": "Whether a supervisor runs, which starts it.",
            },
            "agents",
            "One entry for each agent.",
        ),
    ),
    "status": Output(
        "Numbers (`value`) have a `source`: `reported`, `estimated` or `unknown`. Details that"
        " could not be read are left out. With `--all`: one entry of `projects` for each project,"
        " with `project` and `agents`, or `error` and `hint`.",
        {"agents": "One entry for each agent."}
        | ROW
        | DETAILS
        | {"projects": "With `--all`: one entry for each project."},
    ),
    "stop": Output(
        "One line for each agent; several agents, or `--all`: the keys of `down`.",
        {
            "agent": AGENT,
            "desired": "`stopped`.",
            "was_running": "Whether it ran.",
            "stopped": "Agents that are stopped.",
            "were_running": "Those of them that ran.",
            "still_ending": "Agents that have not ended yet.",
        },
    ),
    "summarize": Output(
        "",
        {
            "kind": "Kind of document.",
            "how": "`headless` or `mechanical`.",
            "words": "Why no model made it, or empty.",
            "usd": "Its cost, or null.",
            "tokens": "Tokens that were used, or null.",
            "text": "The document.",
        },
    ),
    "torture": Output(
        "",
        {
            "folder": "The folder.",
            "seed": "Seed of the random numbers.",
            "held": "Whether every promise was kept.",
            "findings": "One entry for each promise: `promise`, `tried`, `broken` (empty: kept),"
            " `means`.",
        },
    ),
    "transcript": Output(
        "One turn a line; a key that has its default is left out.",
        {
            "session": "Id of the session.",
            "harness": "Its CLI.",
            "number": "Number of the turn.",
            "who": "Who spoke.",
            "at": "Time of the turn.",
            "thread": "Thread of a subagent.",
            "text": "What was said.",
            "calls": "Tool calls: `tool`, `about`, `result`, `shown`.",
            "read": "Tokens that the model read.",
            "written": "Tokens that it wrote.",
            "model": "The model.",
            "compacted": "Whether a summary replaced all turns before it.",
        },
    ),
    "watch": Output(
        "",
        {
            "agents": "One entry for each agent; with `--all` each has `project` and `report`.",
            "agents[].agent": AGENT,
            "agents[].started": "Whether a supervisor was started.",
            "agents[].words": "What was found.",
            "agents[].failed": "Whether the supervisor that was started before did not come up.",
            "agents[].project": "With `--all`: folder of the project.",
            "agents[].report": "With `--all`: the other four keys.",
        },
    ),
}


def list_commands() -> list[str]:
    """Return the commands that have `--json`."""
    context = click.Context(main.app, info_name="rekindle")
    found: list[str] = []
    for name in main.COMMANDS:
        if command := main.app.get_command(context, name):
            found += _with_json(command, context, name)
    return found


def _with_json(command: click.Command, parent: click.Context, name: str) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    if any("--json" in one.opts for one in command.params):
        yield context.command_path.removeprefix("rekindle ")
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            if found := command.get_command(context, below):
                yield from _with_json(found, context, below)


def find_unnamed(command: str, document: dict[str, Any]) -> list[str]:
    """Return the keys of a printed object that the page does not name."""
    keys = OUTPUTS[command].keys
    return sorted({path for path in _paths(document, "", keys) if path not in {"v", *keys}})


def _paths(value: Any, prefix: str, keys: dict[str, str]) -> Iterator[str]:
    """Yield the path of each key, and of the keys below it if the page names any of them."""
    for key, below in value.items():
        path = f"{prefix}{key}"
        yield path
        if isinstance(below, dict) and any(one.startswith(f"{path}.") for one in keys):
            yield from _paths(below, f"{path}.", keys)
        if isinstance(below, list) and any(one.startswith(f"{path}[].") for one in keys):
            for entry in below:
                yield from _paths(entry, f"{path}[].", keys)


def _quote(command: str) -> str:
    return f"`rekindle {command}`"


def page() -> str:
    parts = [
        "# JSON for programs\n",
        "A command with `--json` prints one object on one line. The key `v` is the version of the",
        f"format, {OUTPUT_SCHEMA}. A stream has one object per line, each with `v`; only",
        f"{' and '.join(map(_quote, FIXED))} print lines without it, as shown below. Keys keep",
        "their names and meanings within a version. Later releases may add keys, so ignore keys",
        "that you do not know. Times are in UTC. Errors go to standard error as text, and the",
        "[exit code](exit-codes.md) shows the kind of error.\n",
        "`rekindle events --json` and `rekindle run --json` print [events](events.md).\n",
    ]
    for command in list_commands():
        if command in EVENTS:
            continue
        parts.append(f"## {command}\n")
        if command in FIXED:
            parts.append(f"Without `v`: {FIXED[command]}.\n")
            continue
        output = OUTPUTS[command]
        parts += [f"{output.about}\n"] if output.about else []
        parts += ["| key | meaning |", "|---|---|"]
        parts += [f"| `{key}` | {meaning} |" for key, meaning in output.keys.items()]
        parts.append("")
    return "\n".join(parts)
