"""Table of all commands, each with its module and help line.

`--help` prints this table without importing any of the commands.
"""

from typing import NamedTuple


class CommandEntry(NamedTuple):
    location: str
    """Import path of the command's function, as "module:name" relative to `rekindle.cli`."""
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
        "keep": CommandEntry(
            "running.keep_command:keep", "Continue a session that you started by hand."
        ),
        "down": CommandEntry("running.up_command:down", "Stop all agents and keep them stopped."),
        "stop": CommandEntry("running.stop_command:stop", "Stop an agent and keep it stopped."),
        "restart": CommandEntry(
            "running.restart_command:restart", "Restart agents, even from a wait or safe mode."
        ),
        "handoff": CommandEntry(
            "running.handoff_command:handoff", "Continue an agent's work in a fresh session."
        ),
        "budget": CommandEntry(
            "running.budget_command:budget", "Show an agent's budget, or raise it."
        ),
        "tell": CommandEntry(
            "running.tell_command:tell", "Send a message to an agent without interrupting it."
        ),
        "answer": CommandEntry("running.answer_commands:answer", "Answer an agent's question."),
        "approve": CommandEntry("running.answer_commands:approve", "Answer yes to a question."),
        "deny": CommandEntry("running.answer_commands:deny", "Answer no to a question."),
    },
    "Look": {
        "top": CommandEntry("reports.top_command:top", "Show all agents live in this terminal."),
        "ui": CommandEntry("reports.ui_command:ui", "Show all agents in a browser."),
        "status": CommandEntry(
            "reports.status_command:status", "Show what each agent is doing or waiting for."
        ),
        "statusline": CommandEntry(
            "reports.statusline_command:statusline", "Print an agent's state on one line."
        ),
        "questions": CommandEntry(
            "running.questions_command:questions", "List the questions that agents have asked you."
        ),
        "logs": CommandEntry(
            "reports.logs_command:logs", "Print what agents say and do (-f to follow)."
        ),
        "brief": CommandEntry(
            "reports.brief_command:brief", "Summarize an agent's recent work and open tasks."
        ),
        "events": CommandEntry(
            "reports.events_command:events", "Print an agent's event log, newest last."
        ),
        "transcript": CommandEntry(
            "reports.transcript_command:transcript",
            "Print the conversations from an agent's sessions.",
        ),
        "search": CommandEntry(
            "reports.search_command:search", "Find words in transcripts, relays and decisions."
        ),
        "metrics": CommandEntry(
            "reports.metrics_command:metrics", "Print figures about agents for Prometheus."
        ),
        "traces": CommandEntry(
            "reports.traces_command:traces", "Send runs and sessions to a trace collector."
        ),
        "attach": CommandEntry(
            "running.tmux_attach:attach", "Open an agent's tmux window, to watch and type."
        ),
    },
    "Memory": {
        "relay": CommandEntry(
            "documents.relay_command:relay",
            "Show, check or set the relay, which the next cycle reads.",
        ),
        "loops": CommandEntry(
            "documents.loops_command:loops", "List an agent's open loops, or add one."
        ),
        "resolve": CommandEntry(
            "documents.loops_command:resolve", "Resolve an open loop and record the reason."
        ),
        "decisions": CommandEntry(
            "documents.decisions_command:decisions",
            "List an agent's decisions and their status.",
        ),
        "summarize": CommandEntry(
            "documents.summarize_command:summarize",
            "Turn a transcript into a checkpoint, relay or brief.",
        ),
    },
    "Pipelines": {
        "pipeline": CommandEntry(
            "pipelines.pipeline_command:pipeline",
            "Run a task in steps, with parallel workers.",
        ),
    },
    "Own checkouts": {
        "merge": CommandEntry(
            "running.merge_command:merge",
            "Merge the work from an agent's own clone.",
        ),
        "clean": CommandEntry(
            "running.merge_command:clean", "Remove an agent's own clone after saving its work."
        ),
    },
    "Undo": {
        "snapshots": CommandEntry(
            "reports.snapshots_command:snapshots", "List the snapshots of the work tree."
        ),
        "diff": CommandEntry(
            "reports.snapshots_command:diff", "Show what changed since a snapshot."
        ),
        "rewind": CommandEntry(
            "running.rewind_command:rewind", "Restore the work tree from a snapshot."
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
            "running.watch_command:watch", "Restart supervisors that have died, once (for cron)."
        ),
        "phone": CommandEntry(
            "running.phone_command:phone", "Answer agents' questions from a phone."
        ),
        "schedules": CommandEntry(
            "running.schedules_command:schedules", "Show the next runs of agents and pipelines."
        ),
    },
    "Fleet": {
        "fleet": CommandEntry("fleet.fleet_command:fleet", "Run agents on many hosts."),
    },
    "Set up": {
        "config": CommandEntry(
            "setup.config_command:config", "Show every setting with its value, origin and meaning."
        ),
        "plugin": CommandEntry(
            "setup.plugin_command:plugin", "Add Rekindle to the CLIs that you use yourself."
        ),
        "hooks": CommandEntry(
            "setup.hooks_command:hooks", "Let an agent CLI report its sessions to Rekindle."
        ),
        "mcp": CommandEntry(
            "setup.mcp_command:mcp", "Serve an agent's notes to its CLI, for the agent's own use."
        ),
        "adopt": CommandEntry(
            "setup.adopt_command:adopt", "Import the state of another agent loop."
        ),
        "export": CommandEntry(
            "setup.export_command:export_command", "Move an agent: write it to one file."
        ),
        "import": CommandEntry(
            "setup.export_command:import_command", "Continue an agent from an exported file."
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
            "documents.redact_command:redact", "Print a file with its secrets redacted."
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
    "htop": "top",
    "undo": "rewind",
}
"""Commands that users know from other programs, each with the matching Rekindle command."""
