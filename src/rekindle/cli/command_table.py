"""Table of all commands: each command's module, and its line in `rekindle --help`.

`--help` prints this table without importing any of the commands.
"""

from typing import NamedTuple


class CommandEntry(NamedTuple):
    location: str
    """Location of the command's function, as "module:name" relative to `rekindle.cli`."""
    summary: str


COMMAND_GROUPS: dict[str, dict[str, CommandEntry]] = {
    "Start": {
        "demo": CommandEntry("setup.demo_command:demo", "Watch an agent get killed and recover."),
        "init": CommandEntry("setup.init_command:init", "Set up an agent in this folder."),
        "doctor": CommandEntry(
            "setup.doctor_command:doctor", "Check the setup, and print a fix for each problem."
        ),
    },
    "Run": {
        "run": CommandEntry(
            "running.run_command:run", "Run an agent, and keep it alive until it is done."
        ),
        "up": CommandEntry("running.up_command:up", "Run agents in the background."),
        "down": CommandEntry("running.up_command:down", "Stop all agents, and keep them stopped."),
        "stop": CommandEntry("running.stop_command:stop", "Stop an agent, and keep it stopped."),
        "restart": CommandEntry(
            "running.restart_command:restart", "Restart agents now, from a wait or from safe mode."
        ),
        "handoff": CommandEntry(
            "running.handoff_command:handoff", "Continue an agent's work in a fresh session."
        ),
        "answer": CommandEntry("running.answer_commands:answer", "Answer an agent's question."),
        "approve": CommandEntry("running.answer_commands:approve", "Answer yes to a question."),
        "deny": CommandEntry("running.answer_commands:deny", "Answer no to a question."),
    },
    "Look": {
        "status": CommandEntry(
            "reports.status_command:status", "Show what each agent is doing, and what it waits for."
        ),
        "questions": CommandEntry(
            "running.questions_command:questions", "List the questions that agents have asked you."
        ),
        "logs": CommandEntry(
            "reports.logs_command:logs", "Print what agents said and did; -f to follow."
        ),
        "brief": CommandEntry(
            "reports.brief_command:brief", "Summarize what an agent did, and what is open."
        ),
        "events": CommandEntry(
            "reports.events_command:events", "Print an agent's event log, newest last."
        ),
        "transcript": CommandEntry(
            "reports.transcript_command:transcript",
            "Print what was said and done in an agent's sessions.",
        ),
        "attach": CommandEntry(
            "running.tmux_attach:attach", "Open the tmux window of an agent, to watch and type."
        ),
    },
    "Memory": {
        "relay": CommandEntry(
            "documents.relay_command:relay",
            "Show, check or set the relay, which the next cycle reads.",
        ),
        "loops": CommandEntry(
            "documents.loops_command:loops", "List the open loops of an agent, or add one."
        ),
        "resolve": CommandEntry(
            "documents.loops_command:resolve", "Resolve an open loop, and record the reason."
        ),
        "decisions": CommandEntry(
            "documents.decisions_command:decisions",
            "List an agent's decisions, and which still hold.",
        ),
        "summarize": CommandEntry(
            "documents.summarize_command:summarize",
            "Turn a transcript into a checkpoint, relay or brief.",
        ),
    },
    "Always on": {
        "service": CommandEntry(
            "running.service_command:service", "Install a service that starts the daemon at boot."
        ),
        "daemon": CommandEntry(
            "running.watch_command:daemon", "Restart supervisors that die, until you stop it."
        ),
        "watch": CommandEntry(
            "running.watch_command:watch", "Restart supervisors that have died, once; for cron."
        ),
    },
    "Fleet": {
        "fleet": CommandEntry("fleet.fleet_command:fleet", "Run agents on many hosts."),
    },
    "Set up": {
        "config": CommandEntry(
            "setup.config_command:config", "Show every setting with its value, origin and meaning."
        ),
        "hooks": CommandEntry(
            "setup.hooks_command:hooks", "Let an agent CLI report its sessions to Rekindle."
        ),
        "adopt": CommandEntry(
            "setup.adopt_command:adopt", "Import the state of another agent loop."
        ),
        "forget": CommandEntry(
            "setup.forget_command:forget", "Remove everything that Rekindle keeps for a project."
        ),
        "uninstall": CommandEntry(
            "setup.forget_command:uninstall", "Remove everything that Rekindle keeps on this host."
        ),
    },
    "Tools": {
        "redact": CommandEntry(
            "documents.redact_command:redact", "Print a text with its secrets removed."
        ),
        "torture": CommandEntry(
            "setup.torture_command:torture", "Test whether a file system is safe for Rekindle."
        ),
    },
}

COMMANDS = {name: entry for group in COMMAND_GROUPS.values() for name, entry in group.items()}

OTHER_NAMES = {
    "add": "init",
    "cancel": "stop",
    "check": "doctor",
    "create": "init",
    "kill": "stop",
    "list": "status",
    "log": "logs",
    "ls": "status",
    "new": "init",
    "ps": "status",
    "resume": "run",
    "start": "up",
    "tail": "logs -f",
    "top": "status --watch",
}
"""Command names that users know from other programs, each with its Rekindle command."""
