"""Generate the reference page for the JSON output of commands, with every key and its meaning."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec
from event_page import read_meanings

from rekindle.cli import main
from rekindle.cli.output import OUTPUT_SCHEMA
from rekindle.documents.launches.quota_windows import QuotaWindow
from rekindle.documents.screens.agent_row import AgentRow
from rekindle.documents.screens.pipeline_row import PersonTask, RunRow, StepRow, WorkerFailure
from rekindle.documents.search.search_types import SearchHit

EVENTS = {"events", "run", "pipeline logs", "pipeline run"}
"""Commands that print events of the log. `events.md` describes their fields."""
FIXED = {
    "redact": "one secret per line, with `line`, `start`, `end` (all counted from 0) and `rule`",
    "relay replay": "one pair of relays per line (`prev`, `curr`, `verdict`, `why`), then one"
    " stretch per line (`stretch`, `verdicts`, `cycles`, `about`)",
}
"""Commands whose lines have no version, because their format is specified elsewhere."""


class Output(NamedTuple):
    """Output of a command with `--json`."""

    about: str
    keys: dict[str, str]
    """Meaning of each key, by path. `[]` is an entry of a list."""


def _nested(kind: type[msgspec.Struct], prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of a struct, with the meanings in its source."""
    meanings = read_meanings(Path(inspect.getfile(kind)))[kind.__name__]
    for field in msgspec.structs.fields(kind):
        yield f"{prefix}{field.encode_name}", meanings[field.name]
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from _nested(field.type, f"{prefix}{field.encode_name}.")


ROW = dict(_nested(AgentRow, "agents[]."))
RUN = {
    path: meaning
    for kind, prefix in (
        (RunRow, "runs[]."),
        (StepRow, "runs[].steps[]."),
        (PersonTask, "runs[].tasks[]."),
        (WorkerFailure, "runs[].failures[]."),
    )
    for path, meaning in _nested(kind, prefix)
} | {
    "runs[].steps[].pending": "Number of workers that have not started.",
    "runs[].error": "Why the run cannot be read. Left out if it can.",
    "runs[].hint": "Hint for fixing that error. Left out if there is none.",
}
DETAILS = {
    "agents[].budget": "Value of `budget:` in rekindle.yaml, or null if it is not set.",
    "agents[].run": "The agent's run, or null if no launch was recorded.",
    "agents[].run.supervised": "Whether a supervisor is running.",
    "agents[].run.desired": "Desired state of the agent: `running`, `stopped`, or null if the"
    " operator has not set it.",
    "agents[].run.ended": "How the run ended (`kind` and `reason`), or null if it has not ended.",
    "agents[].run.safe_mode": "Why the agent is in safe mode (`kind` and `reason`), or null if it"
    " is not.",
    "agents[].run.waits": "What the agent is waiting for (`kind`) and until when (`until`), or"
    " null if it is not waiting.",
    "agents[].run.run_began": "When the run started, or null if no run has started.",
    "agents[].run.cycle_done": "Whether the last cycle has ended.",
    "agents[].run.last_cycle": "The last cycle that ended (`cycle`, `how`, `verdict` and"
    " `reason`), or null if none has ended.",
    "agents[].run.hurried": "Whether the cycles are so short that handing over costs more than"
    " the work itself.",
    "agents[].run.session": "Id of the last session.",
    "agents[].run.began": "When the last launch started.",
    "agents[].run.exit": "How the last launch exited, or null if it is still running.",
    "agents[].run.handoffs": "Number of handoffs in the current cycle.",
    "agents[].run.handed_off_at": "Context-window usage, in percent, at which Rekindle hands off"
    " the session.",
    "agents[].relay": "The last relay (`committed`, `by`, `tokens`, `over_cap`, and `file`, which"
    " is `clean`, `edited` or `missing`), or null if there is none.",
    "agents[].questions": "Questions that a person can answer now, each with `id`, `text`,"
    " `command` and "
    "`others`.",
    "agents[].refused_hosts": "Hosts that the sandbox refused in this run, each with `host` and"
    " `allow`, the line for rekindle.yaml that allows it.",
    "agents[].unpushed": "Work that exists only on one host (`since`, `host` and `reason`), or"
    " null if there is none.",
    "agents[].route": "CLI and account on which the agent works, and why not on an earlier one, or"
    " null if it has only one.",
    "agents[].may_miss_stop": "Whether the lost events may include a stop request.",
    "agents[].relay_file": "Relay file's state.",
    "agents[].state_file": "state.json's state.",
    "agents[].log": "State of the log.",
    "agents[].pending": "Number of records that are not in the log yet.",
    "agents[].unreadable": "Number of records and lines that could not be read.",
    "agents[].settings_changed": "Changed settings that you have not accepted yet, as text.",
    "agents[].generation": "The agent's writer generation.",
    "agents[].host": "Host that owns the agent, or null if no host does.",
    "agents[].kept": "Background processes that keep running after a session ends: `pid`,"
    " `command`, `since`.",
    "agents[].workspace": "The agent's own clone or work tree (`kind`, `folder`, `branch`, and"
    " `is_complete`, which is false before its first launch), or null if the agent works in your"
    " checkout.",
    "agents[].schedule": "The agent's schedule (`every`, `next`, `text`, and `warnings` about runs"
    " that do not start), left out if it has none.",
    "agents[].fleet": "The agent's entry in the engine's list, or null if it has none. Only"
    " printed on a fleet.",
    "agents[].lives_here": "True if the agent has files here but is not on the fleet. Left out"
    " otherwise.",
    "agents[].error": "Why the details could not be read. Left out if there was no problem.",
    "agents[].hint": "Hint for fixing that error. Left out if there is none.",
}
ANSWER = {
    "agent": "The agent.",
    "question": "Question id, or null if the text is for the agent's next cycle.",
    "choice": "Selected choice; empty if the answer is text.",
    "text": "Text of the answer; empty if the answer is a choice.",
    "effect": "Effect of the answer: `restart`, `continue`, `stop`, `finish` or `note`.",
    "by": "Who answered.",
    "host": "Host on which the person answered.",
    "origin": "Where the answer came from. `deadline` means that no person answered in time.",
    "ts": "Time at which the answer was given.",
    "is_recorded": "Whether the answer has been recorded in the log yet.",
}
HOOKS = {
    "agent": "Agent whose sessions the hooks report. If empty, they find the agent from the "
    "session's folder.",
    "harness": "The agent CLI.",
    "level": "`local`, `project` or `user`.",
    "settings": "The settings file.",
    "changed": "Whether anything changed.",
}
UNINSTALLED = {key: text for key, text in HOOKS.items() if key != "agent"}
WRITTEN = "`text`, `is_new`, `how` (`headless`, `mechanical` or empty), `words`, `turns`,\
 `left_out`, `read_bytes`, `opened`, `resolved`, `claimed`, `unknown`"
LOOP = {
    "id": "Loop id.",
    "outcome": "`opened`, `reworded`, `reopened`, `resolved` or `unchanged`.",
    "folded": "Whether the change has been recorded in the log yet.",
}
AGENT = "The agent."


def _with_list(keys: dict[str, str], name: str, meaning: str) -> dict[str, str]:
    return keys | {name: meaning} | {f"{name}[].{key}": text for key, text in keys.items()}


OUTPUTS = {
    "adopt": Output(
        "",
        {
            "agent": AGENT,
            "adopted": "Whether the files were newly adopted. False if they were already adopted.",
            "did": "Changes that were made, as sentences.",
            "took": "Imported documents.",
            "trimmed": "Whether the relay was trimmed.",
            "over_cap": "Whether the relay is still too long.",
            "left_out": "Parts that were not imported, as sentences.",
            "redacted": "Number of secrets that were redacted.",
        },
    ),
    "export": Output(
        "",
        {
            "agent": AGENT,
            "file": "Path of the exported file.",
            "session": "Session that continues after the import; empty if a fresh one starts.",
            "snapshot": "Snapshot with the project's files; empty if they are not in the file.",
            "omitted": "Variables of `env:` whose values are not in the file.",
        },
    ),
    "import": Output(
        "",
        {
            "agent": AGENT,
            "session": "Session that the next launch continues; empty if a fresh one starts.",
            "snapshot": "Snapshot with the project's files; empty if there is none.",
            "did": "Other changes that were made, as sentences.",
        },
    ),
    "answer": Output("", ANSWER),
    "approve": Output("", ANSWER),
    "deny": Output("", ANSWER),
    "brief": Output(
        "`brief AGENT` prints `agent` and `brief`, or on a fleet `agent`, `new` and `text`. `--due`"
        " prints `agents`. The morning page (`--all`, `--all-projects`) prints `project`,"
        " `written`, `entries` and `cost`.",
        {
            "agent": AGENT,
            "brief": f"The brief: {WRITTEN}.",
            "new": "Whether a fleet host wrote a new brief.",
            "text": "The brief.",
            "agents": "One entry for each agent.",
            "agents[].agent": AGENT,
            "agents[].written": "Whether a brief was due and written.",
            "agents[].words": "How the brief was written, or why none was.",
            "agents[].brief": f"The brief, if one was written: {WRITTEN}.",
            "project": "Project name, or the number of projects.",
            "written": "When the page was written, as text.",
            "cost": "Total cost of all agents, as text.",
            "entries": "One entry for each agent, with `agent`, `state`, `why`, `done`, `next`, "
            "`asks` (`text`, `command`, `others`), `night` (`at`, `text`, `kind`), "
            "`loops`, `open_loops`, `refused`, `cost`, `brief`, `label`.",
        },
    ),
    "config explain": Output(
        "",
        {
            "settings": "One entry for each key.",
            "settings[].key": "The key.",
            "settings[].value": "Current value.",
            "settings[].default": "Default value.",
            "settings[].unit": "Unit of the value.",
            "settings[].origin": "Where the value was set.",
            "settings[].meaning": "What the key means.",
        },
    ),
    "decisions": Output(
        "",
        {
            "decisions": "One entry for each decision.",
            "decisions[].text": "Text of the decision.",
            "decisions[].made": "Date of the decision, or null if it is unknown.",
            "decisions[].key": "Key that stays the same when the decision is edited.",
            "decisions[].status": "Whether the decision is in force, superseded, archived or"
            " dropped.",
            "decisions[].by": "Decision that superseded this one, or null if none did.",
            "decisions[].first": "First relay that contained the decision.",
            "decisions[].last": "Last relay that contained the decision.",
        },
    ),
    "merge": Output(
        "If there is a conflict, the exit code is 8.",
        {
            "agent": "The agent.",
            "branch": "The agent's branch.",
            "target": "Your branch, or HEAD if none is checked out.",
            "commits": "Number of the agent's commits that your branch did not have.",
            "uncommitted": "Number of merged files that the agent had not committed.",
            "is_working": "Whether the agent is working, so that only its commits are merged.",
            "is_merged": "Whether your branch was changed.",
            "commit": "The merged commit, or null if there are conflicts.",
            "conflicts": "Files with conflicts.",
        },
    ),
    "pipeline status": Output(
        "",
        {"runs": "One entry for each run, newest first, or only the selected run."} | RUN,
    ),
    "pipeline merge": Output(
        "If there is a conflict, the exit code is 8. With `--pr`, `commits` and `conflicts` "
        "are omitted.",
        {
            "pipeline": "Name of the pipeline.",
            "run": "Number of the run.",
            "branch": "Branch with the result.",
            "target": "Your branch, or HEAD if none is checked out.",
            "commits": "Number of commits that your branch did not have.",
            "is_merged": "Whether your branch was changed.",
            "commit": "The merged commit, or null if there are conflicts. With `--pr`, the result.",
            "conflicts": "Files with conflicts.",
            "url": "With `--pr`, address of the pull request.",
        },
    ),
    "pipeline clean": Output(
        "",
        {
            "pipeline": "Name of the pipeline.",
            "runs": "Numbers of the runs that were cleaned.",
            "kept_runs": "Numbers of the runs that were not cleaned, each with the reason.",
            "workers": "On a fleet, workers that were removed. Their hosts remove the folders.",
            "folders": "Workers' folders that were removed.",
            "kept_folders": "Workers' folders that were kept, each with the reason.",
            "branches": "Worker and merge branches that were removed.",
            "kept_branches": "Worker branches that were kept.",
            "is_forgotten": "Whether the logs and outputs of all these runs were removed.",
        },
    ),
    "snapshots": Output(
        "",
        {
            "snapshots": "One entry for each snapshot, sorted by agent and number.",
            "snapshots[].name": "Its name, which `diff` and `rewind` accept.",
            "snapshots[].agent": "The agent.",
            "snapshots[].number": "Its number.",
            "snapshots[].at": "When it was taken.",
            "snapshots[].reason": "When it was taken: start, handoff, end or rewind.",
            "snapshots[].cycle": "The cycle, or null.",
            "snapshots[].launch": "The last launch before it, or null.",
            "snapshots[].branch": "The branch that was checked out, or null.",
            "snapshots[].head": "The commit at HEAD, or null.",
            "snapshots[].commit": "The commit that holds the snapshot.",
            "snapshots[].left_out": "Files left out of it: `path` and `why`.",
            "snapshots[].more_left_out": "Number of other files left out of it.",
        },
    ),
    "doctor": Output(
        "",
        {
            "ok": "False if anything is broken.",
            "agents": "Problems by agent, each with `what`, `fix` (the command that fixes it) and "
            "`broken`.",
            "programs": "Whether each program was found, by name.",
        },
    ),
    "down": Output(
        "",
        {
            "stopped": "Agents that are stopped.",
            "were_running": "Agents that were running before.",
            "still_ending": "Agents that have not exited yet.",
        },
    ),
    "up": Output(
        "",
        {
            "agents": "One entry for each agent.",
            "agents[].agent": AGENT,
            "agents[].state": "State of the agent after the command.",
            "agents[].error": "Why the agent was not started; empty if it was.",
            "agents[].hint": "Hint for fixing the problem; empty if there is none.",
        },
    ),
    "fleet deploy": Output(
        "",
        {
            "build": "Build that the command was given or chose.",
            "before": "Build that was current before; empty if there was none.",
            "current": "Build that decides for new agents, and for all others from their next cycle"
            " on.",
            "ramping": "Build that decides for a share of the agents; empty without a ramp.",
            "percent": "That share, in percent.",
            "woken": "Number of idle agents and pipelines that were told to move.",
            "moved": "Number of agents and pipelines that `--move` moved immediately.",
            "builds": "One entry for each build that was ever registered.",
            "builds[].build": "Name of the build.",
            "builds[].role": "`current`, `ramping`, `former` if it was current once, or `new`.",
            "builds[].workers": "Number of workers that decide with the build.",
            "builds[].agents": "Number of agents that need the build.",
            "builds[].pipelines": "Number of pipeline runs that need the build.",
            "builds[].last_current": "When the build last became current, or null.",
        },
    ),
    "fleet drain": Output(
        "",
        {
            "host": "The host.",
            "seconds": "Longest time to wait for running cycles.",
        },
    ),
    "fleet hosts": Output(
        "",
        {
            "hosts": "One entry for each host, by name.",
            "hosts[].host": "Name of the host.",
            "hosts[].pool": "Pool of the host.",
            "hosts[].build": "Version of Rekindle on the host.",
            "hosts[].slots": "Maximum number of agents that the host runs at the same time.",
            "hosts[].agents": "Agents that the host runs.",
            "hosts[].draining": "Whether the host takes no new cycles.",
            "hosts[].seconds": "Seconds since the last heartbeat.",
        },
    ),
    "fleet status": Output(
        "",
        {
            "hosts": "Number of hosts.",
            "slots": "Number of agents that all hosts can run at the same time.",
            "used": "Number of slots in use.",
            "builds": "Versions of Rekindle on the hosts.",
            "agents": "Number of agents in each state.",
        },
    ),
    "fleet import": Output(
        "",
        {
            "agents": "One entry for each agent.",
            "agents[].agent": AGENT,
            "agents[].imported": "Whether the agent was imported. False if it was already on the"
            " fleet.",
        },
    ),
    "fleet keys": Output(
        "",
        {
            "current": "Id of the key with which this folder encrypts; empty without encryption.",
            "keys": "One entry for each key, the current key first.",
            "keys[].key": "Id of the key; empty for data that is not encrypted.",
            "keys[].workers": "Workers that have the key.",
            "keys[].stored": "Open workflows and schedules whose data needs the key.",
            "closed_hours": "Hours for which the engine keeps closed workflows, with their keys.",
        },
    ),
    "fleet team": Output(
        "",
        {
            "teams": "One entry for each team that has or had caps.",
            "teams[].team": "Name of the team.",
            "teams[].running": "Number of agents with a permit to run.",
            "teams[].waiting": "Number of agents that wait for a permit.",
            "teams[].agents": "Maximum number of running agents; null for no limit.",
            "teams[].usd_today": "Spending on this day in UTC, in dollars, as reported at the end"
            " of each cycle.",
            "teams[].usd_per_day": "Maximum spending per day; null for no limit.",
        },
    ),
    "fleet remove": Output(
        "",
        {
            "agents": "One entry for each agent.",
            "agents[].agent": AGENT,
            "agents[].cycle": "Number of the last cycle.",
            "agents[].events": "Number of events in the agent's log.",
            "agents[].branch": "Branch on the agent's git remote that holds its work, or null if"
            " there is "
            "none.",
        },
    ),
    "budget": Output(
        "With an option, the caps are the new ones.",
        {
            "agent": AGENT,
            "caps": "The caps of the run: `usd`, `tokens` and `hours`, each null if it has none.",
            "spent": "The run's spending so far, with the same keys.",
        },
    ),
    "tell": Output(
        "",
        {
            "agent": AGENT,
            "message": "Id of the message, as in the log.",
            "arrives": "When the agent will receive it.",
        },
    ),
    "handoff": Output(
        "",
        {
            "agent": AGENT,
            "asked": "`handoff`.",
            "to": "CLI and account of `--to`, or empty.",
        },
    ),
    "hooks install": Output(
        "With `--all`, `hooks` has one entry for each settings file.",
        _with_list(HOOKS, "hooks", "With `--all`, one entry for each settings file."),
    ),
    "hooks uninstall": Output(
        "With `--all`, `hooks` has one entry for each settings file.",
        _with_list(UNINSTALLED, "hooks", "With `--all`, one entry for each settings file."),
    ),
    "hooks status": Output(
        "",
        {
            "hooks": "One entry for each settings file.",
            "hooks[].harness": HOOKS["harness"],
            "hooks[].level": HOOKS["level"],
            "hooks[].settings": HOOKS["settings"],
            "hooks[].state": "Whether the hooks are installed and can run.",
            "hooks[].problems": "Problems with the hooks.",
            "hooks[].fix": "Command that fixes the problem; empty if there is none.",
        },
    ),
    "plugin status": Output(
        "",
        {
            "plugins": "One entry for each CLI on the PATH that can have the plugin.",
            "plugins[].cli": "The CLI: claude, codex or gemini.",
            "plugins[].state": "Whether the plugin is installed and can work.",
            "plugins[].version": "The plugin's version; empty if it is not installed.",
            "plugins[].problem": "What is wrong with the plugin; empty if nothing is.",
        },
    ),
    "init": Output(
        "",
        {
            "agent": AGENT,
            "harness": "The agent's CLI.",
            "folder": "The project's folder.",
            "did": "Changes that were made, as sentences.",
        },
    ),
    "loops": Output(
        "",
        {
            "open": "Open loops, oldest first, each with `id`, `text`, `added`, `stale`, "
            "`reopened` (times), `by` (the agent that opened it, or null), `proposed` (why the "
            "agent proposes to resolve it, or null), `history` (`ts`, and `opened` or "
            "`resolved`), and any other fields that the loop has in state.json.",
            "resolved": "Recently resolved loops, each with `id`, `reason` and `resolved_date`.",
        },
    ),
    "loops add": Output("", LOOP),
    "resolve": Output("", LOOP),
    "questions": Output(
        "",
        {
            "questions": "One entry for each question.",
            "questions[].id": "Question id.",
            "questions[].agent": "Agent that asks the question.",
            "questions[].about": "Why the agent asks.",
            "questions[].text": "The question.",
            "questions[].request": "Exact request, such as a tool call with its arguments.",
            "questions[].choices": "Possible answers.",
            "questions[].default": "Answer that applies after the deadline.",
            "questions[].asked": "When the question was asked.",
            "questions[].deadline": "When the default applies, or null if there is no deadline.",
            "questions[].state": "`open`, `answered`, `unanswered` or `withdrawn`.",
            "questions[].command": "Command that answers the question, or null if it is not open.",
            "questions[].others": "Other possible answers.",
            "questions[].answer": "The answer (`choice`, `text`, `effect`, `by`, `host`, `origin`,"
            " `ts`), or null if there is none yet.",
        },
    ),
    "schedules": Output(
        "",
        {
            "schedules": "One entry for each agent or pipeline with a schedule.",
            "schedules[].kind": "`agents` or `pipelines`.",
            "schedules[].name": "Name of the agent or pipeline.",
            "schedules[].every": "The schedule, with its time zone if it has one of its own.",
            "schedules[].accepted": "Whether you have accepted the schedule in rekindle.yaml.",
            "schedules[].removed": "Whether rekindle.yaml no longer contains the schedule, and you"
            " have not accepted this yet.",
            "schedules[].watched": "Whether a daemon has checked the schedule recently, or a host"
            " of the fleet is running.",
            "schedules[].next": "When the next run starts, or null if the schedule is not in"
            " effect.",
            "schedules[].waiting": "Whether a run waits to start.",
            "schedules[].history": "What happened at the last due times, each with `kind`"
            " (`started`, `skipped`, `missed`, or `restored` if the clock was set back), `first`,"
            " `last`, `at`, `count` and `reason`.",
            "schedules[].error": "Why the schedule cannot be read, or empty.",
        },
    ),
    "relay show": Output(
        "", {"agent": AGENT, "text": "The relay.", "fields": "Sections of the relay, by name."}
    ),
    "relay check": Output(
        "",
        {
            "kind": "Most severe finding.",
            "usable": "Whether the next cycle can use the relay.",
            "tokens": "Size of the relay in tokens.",
            "fields": "Sections that are present.",
            "missing": "Sections that are missing.",
            "headline": "Next action as one line.",
            "findings": "What was found.",
            "redacted": "Number of secrets that were redacted.",
        },
    ),
    "relay set": Output(
        "If the relay is not committed yet, the output has only the first three keys.",
        {
            "agent": AGENT,
            "folded": "Whether the relay has been committed yet.",
            "redacted": "Number of secrets that were redacted.",
            "seq": "Number of the relay's event.",
            "ts": "Time of the commit.",
            "sha256": "Hash of the relay's text.",
            "previous": "Hash of the previous relay.",
            "path": "The relay's path in the archive.",
            "by": "Who wrote the relay.",
            "tokens": "Size of the relay in tokens.",
            "headline": "Next action as one line.",
            "trimmed": "File with the trimmed text; empty if nothing was trimmed.",
            "over_cap": "Whether the relay is still too long.",
            "is_said": "Whether a person set the relay.",
            "session": "Always empty.",
        },
    ),
    "relay history": Output(
        "",
        {
            "relays": "One entry for each relay, newest first.",
            "relays[].seq": "Number of the relay's event.",
            "relays[].ts": "Time of the commit.",
            "relays[].by": "Who wrote the relay.",
            "relays[].tokens": "Size of the relay in tokens.",
            "relays[].sha256": "Hash of the relay's text.",
            "relays[].next_action": "Next action as one line.",
            "relays[].path": "The relay's path in the archive.",
            "relays[].commit": "Commit in the git audit trail, or null if it is not there.",
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
        "For several agents, `agents` has one entry for each.",
        _with_list(
            {
                "agent": AGENT,
                "desired": "`running`, or null if there is nothing to restart.",
                "supervised": "Whether a running supervisor will restart the agent.",
            },
            "agents",
            "One entry for each agent.",
        ),
    ),
    "phone status": Output(
        "Tokens are never shown.",
        {
            "running": "Whether the bridge is running.",
            "services": "Names of the services that are set up.",
            "chats": "One entry for each paired chat.",
            "chats[].service": "Name of the service.",
            "chats[].chat": "Id of the chat.",
            "chats[].user": "Id of the person; empty if the service does not know senders.",
            "chats[].may": "Right of the chat: `read`, `answer` or `operate`.",
            "waiting": "Number of messages whose question is still open.",
            "problems": "For each service that does not work, the reason.",
        },
    ),
    "status": Output(
        "Numbers (`value`) have a `source`: `reported`, `estimated` or `unknown`. Details that "
        "could not be read are omitted. With `--all`, `projects` has one entry for each project, "
        "with `project` and `agents`, or `error` and `hint`.",
        {"agents": "One entry for each agent."}
        | ROW
        | DETAILS
        | {
            "accounts": "One entry for each account that the agents use.",
            "accounts[].harness": "The account's CLI.",
            "accounts[].account": "Its name in `accounts:`; empty for the CLI's own configuration.",
            "accounts[].folder": "Configuration folder of the CLI.",
            "accounts[].seen_at": "When the CLI last reported a change, or null.",
            "accounts[].windows": "Quota windows, or null if the CLI has not reported any.",
        }
        | dict(_nested(QuotaWindow, "accounts[].windows[]."))
        | {"runs": "Unfinished pipeline runs, as in `pipeline status`."}
        | {"projects": "With `--all`, one entry for each project."},
    ),
    "stop": Output(
        "For several agents, or with `--all`, the keys are the same as for `down`.",
        {
            "agent": AGENT,
            "desired": "`stopped`.",
            "was_running": "Whether the agent was running.",
            "stopped": "Agents that are stopped.",
            "were_running": "Agents that were running before.",
            "still_ending": "Agents that have not exited yet.",
        },
    ),
    "summarize": Output(
        "",
        {
            "kind": "Kind of document.",
            "how": "`headless` or `mechanical`.",
            "words": "Why no model was used; empty if one was used.",
            "usd": "Cost in dollars, or null if it is unknown.",
            "tokens": "Number of tokens used, or null if it is unknown.",
            "text": "Document text.",
        },
    ),
    "search": Output(
        "",
        {"hits": "One entry for each result, newest first."} | dict(_nested(SearchHit, "hits[].")),
    ),
    "torture": Output(
        "",
        {
            "folder": "The folder.",
            "seed": "Random seed for the test.",
            "held": "Whether every guarantee held.",
            "findings": "One entry for each guarantee, with `promise`, `tried`, `broken` (empty if "
            "the guarantee held) and `means`.",
        },
    ),
    "transcript": Output(
        "Each line is one turn. Keys that have their default value are omitted.",
        {
            "session": "Session id.",
            "harness": "CLI that ran the session.",
            "number": "Number of the turn.",
            "who": "Author of the turn.",
            "at": "Time of the turn.",
            "thread": "The sub-agent's thread; left out for the main thread.",
            "text": "Text of the turn.",
            "calls": "Tool calls, each with `tool`, `about`, `result` and `shown`.",
            "read": "Number of input tokens.",
            "written": "Number of output tokens.",
            "model": "The model.",
            "compacted": "Whether a summary replaced all earlier turns.",
        },
    ),
    "watch": Output(
        "",
        {
            "agents": "One entry for each agent. With `--all`, each entry has `project` and"
            " `report`.",
            "agents[].agent": AGENT,
            "agents[].started": "Whether a supervisor was started.",
            "agents[].words": "What the watchdog found.",
            "agents[].failed": "Whether the last attempt to start a supervisor failed.",
            "agents[].project": "With `--all`, the project's folder.",
            "agents[].report": "With `--all`, an object with the other four keys.",
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
        "A command with `--json` prints one object on one line. The `v` key is the format",
        f"version, currently {OUTPUT_SCHEMA}. A stream has one object per line, each with `v`,",
        f"except for the output of {' and '.join(map(_quote, FIXED))}. Keys keep their names and",
        "meanings within a version. Later releases may add keys, so ignore keys",
        "that you do not know. Times are in UTC. Errors go to standard error as text, and the",
        "[exit code](exit-codes.md) shows the kind of error.\n",
        "`rekindle events --json`, `rekindle run --json`, `rekindle pipeline logs --json` and",
        "`rekindle pipeline run --json` print [events](events.md). Events from a pipeline run",
        "also have the keys `pipeline`, `run`, `step`, `worker` and `agent`. A key is null if the",
        "event does not belong to a step, or if the step has no matrix. With `--detach`, `pipeline",
        "run` prints one object with `pipeline` and `run`.\n",
    ]
    for command in list_commands():
        if command in EVENTS:
            continue
        parts.append(f"## {command}\n")
        if command in FIXED:
            parts.append(f"The lines have no `v`. Rekindle prints {FIXED[command]}.\n")
            continue
        output = OUTPUTS[command]
        parts += [f"{output.about}\n"] if output.about else []
        parts += ["| key | meaning |", "|---|---|"]
        parts += [f"| `{key}` | {meaning} |" for key, meaning in output.keys.items()]
        parts.append("")
    return "\n".join(parts)
