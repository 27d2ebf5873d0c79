"""Every threshold there is: its default, its bounds and its reason stand here and nowhere else.

What the manifest can set is a field of a struct below, under the key of the same path.
What it cannot set is a constant at the end, listed in `FIXED`.
`rekindle config explain KEY` prints any of them with its value and origin.
"""

from difflib import get_close_matches
from typing import Annotated, Any, Literal, get_args

import msgspec

from rekindle.documents import shape
from rekindle.documents.manifest import Agent, Manifest
from rekindle.documents.shape import Duration
from rekindle.documents.yamltext import Marked, Path
from rekindle.errors import NotFoundError


def _doc(text: str, **bounds: Any) -> msgspec.Meta:
    return msgspec.Meta(description=text, **bounds)


class Relay(msgspec.Struct, frozen=True):
    token_threshold_percent: Annotated[
        int, _doc("Hand off when the context window is this full, in percent.", ge=1, le=100)
    ] = 80
    strategy: Annotated[
        Literal["summarize_to_checkpoint"], _doc("How a handoff carries the work over.")
    ] = "summarize_to_checkpoint"
    max_relay_tokens: Annotated[
        int, _doc("Trim the relay when it is larger: it is read at every start.", ge=200)
    ] = 2_000
    summarizer: Annotated[
        Literal["headless", "mechanical"],
        _doc("headless: a CLI is asked for a summary, without tools; mechanical: no model is."),
    ] = "headless"
    summarizer_max_input_tokens: Annotated[
        int, _doc("The most that a summarizer is ever given; beyond it a handoff halts.", ge=1_000)
    ] = 150_000
    summarizer_max_usd: Annotated[
        float,
        _doc("What one answer of a summarizer may cost, where its CLI can be held to it.", gt=0),
    ] = 2.0


class Restart(msgspec.Struct, frozen=True):
    max_crashes: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        _doc(
            "Crashes within `window` that end in safe mode; empty: after 5 launches in a row that"
            " fail at once, one is tried every 15 to 60 minutes instead."
        ),
    ] = None
    window: Annotated[Duration, _doc("The time over which crashes are counted.")] = Duration(900)
    cooldown: Annotated[Duration, _doc("The first pause after a crash; it doubles.")] = Duration(10)
    max_cooldown: Annotated[Duration, _doc("The longest pause after a crash.")] = Duration(300)
    healthy_after: Annotated[
        Duration, _doc("Running this long without a crash resets count and pause.")
    ] = Duration(600)
    fresh_when_cheaper: Annotated[
        bool,
        _doc(
            "Where the CLI says that its cache has expired, and going on in the session would cost"
            " more than a fresh one with its primer: take the fresh one."
        ),
    ] = False


class Watch(msgspec.Struct, frozen=True):
    every: Annotated[Duration, _doc("How often the watchdog looks.")] = Duration(15)
    silence: Annotated[
        Duration, _doc("No hook, stream or transcript activity for this long is a hang.")
    ] = Duration(600)
    tool_timeout: Annotated[
        Duration, _doc("End a tool call after this long; none: only say so.")
    ] = Duration("inf")
    idle_call: Annotated[
        Duration,
        _doc(
            "A tool call excuses silence until no process has worked for this long; none: always."
        ),
    ] = Duration(3600)


class Limits(msgspec.Struct, frozen=True):
    wait: Annotated[bool, _doc("Wait a usage limit out; false: stop and say so.")] = True


class Stall(msgspec.Struct, frozen=True):
    tell: Annotated[
        bool, _doc("Tell the next cycle, once, where two in a row asked for the same.")
    ] = True
    pause: Annotated[
        bool, _doc("Pause a loop that goes on without a step, or waits for a person.")
    ] = True


class Progress(msgspec.Struct, frozen=True):
    """Bounds on work that leads nowhere; `rekindle run --budget none` lifts those that pause."""

    paced_after: Annotated[
        int,
        _doc(
            "Launches in a row without progress before each further one waits 15 to 60 minutes.",
            ge=1,
            le=45,
        ),
    ] = 10
    max_launches: Annotated[
        int, _doc("Launches in a row without progress after which a run pauses.", ge=1, le=45)
    ] = 40
    max_hours: Annotated[
        float, _doc("Hours of work without progress after which a run pauses.", gt=0)
    ] = 12.0
    max_usd: Annotated[
        float,
        _doc(
            "Dollars without progress after which a run pauses, if the CLI shows that the account"
            " is billed per token.",
            gt=0,
        ),
    ] = 20.0


class Loops(msgspec.Struct, frozen=True):
    stale_after_days: Annotated[
        int, _doc("An open loop older than this many days is marked stale.", ge=1)
    ] = 14
    keep_resolved_days: Annotated[
        int, _doc("Days that a resolved loop stays in state.json; the log keeps it.", ge=1)
    ] = 7


class Brief(msgspec.Struct, frozen=True):
    at: Annotated[
        str,
        _doc(
            "When the daily brief is written; never: only when you ask for it.",
            pattern=r"^(([01]\d|2[0-3]):[0-5]\d|never)$",
        ),
    ] = "06:00"
    zone: Annotated[str, _doc("The time zone of `at`; empty: the machine's.")] = ""
    on_session_end: Annotated[bool, _doc("Write a brief after every session too.")] = False
    max_tokens: Annotated[int, _doc("The longest brief.", ge=100)] = 600
    max_usd: Annotated[
        float,
        _doc(
            "What a brief may cost in all, where its CLI tells; the oldest turns go unread.", gt=0
        ),
    ] = 5.0


class Archive(msgspec.Struct, frozen=True):
    transcripts: Annotated[
        bool, _doc("Keep transcripts: the CLIs delete theirs after a month.")
    ] = True


class Runtime(msgspec.Struct, frozen=True):
    relay: Relay = Relay()
    restart: Restart = Restart()
    watch: Watch = Watch()
    limits: Limits = Limits()
    stall: Stall = Stall()
    progress: Progress = Progress()
    loops: Loops = Loops()
    brief: Brief = Brief()
    archive: Archive = Archive()


class AgentDefaults(msgspec.Struct, frozen=True):
    """What an agent has where its entry in the manifest is silent."""

    prompt: Annotated[str, _doc("The file with the task of every cycle.")] = "PROMPT.md"
    dir: Annotated[str, _doc("The agent's working directory, from the manifest's folder.")] = "."
    mode: Annotated[
        Literal["loop", "stay"],
        _doc("loop: headless, cycle after cycle; stay: interactive, safe mode after a clean exit."),
    ] = "loop"
    persona: Annotated[str, _doc("How the harness is set up: a name under `personas`.")] = "default"
    cycles: Annotated[int, _doc("Cycles per run; 0: no end.", ge=0)] = 10
    convergence: Annotated[
        bool, _doc("on: hold the agent to brainstorm, decide, ship, by evidence.")
    ] = False
    keep: Annotated[
        list[str],
        _doc("Patterns of command lines; a background process that matches outlives its session."),
    ] = []
    may_control: Annotated[
        bool,
        _doc("true: `run`, `stop`, `restart` and the like also work when the agent calls them."),
    ] = False


class Tls(msgspec.Struct, frozen=True):
    """The files of a TLS connection, from the manifest's folder; "" where one is not named."""

    ca: str = ""
    cert: str = ""
    key: str = ""
    server_name: str = ""


class Codec(msgspec.Struct, frozen=True):
    """Where the keys are that documents are encrypted with before the engine sees them."""

    keys: Annotated[
        list[str],
        _doc("Variables with a key each, as in `[$NEW, $OLD]`: the first encrypts, all decrypt."),
    ] = []
    key_files: Annotated[list[str], _doc("The same, as files; say one of the two.")] = []
    strict: Annotated[
        bool,
        _doc("With a key, refuse plain text; false: only while a fleet changes to encryption."),
    ] = True


class Fleet(msgspec.Struct, frozen=True):
    """The engine that keeps the agents, and how it is reached."""

    address: Annotated[str, _doc("The engine's host and port.")] = "127.0.0.1:7233"
    namespace: Annotated[str, _doc("The engine's namespace.", min_length=1)] = "default"
    pool: Annotated[str, _doc("The hosts that may run these agents, by one name.")] = "default"
    heartbeat_timeout: Annotated[
        Duration, _doc("A host that is not heard of for this long has lost its agents.")
    ] = Duration(75)
    tls: Annotated[
        Tls | bool | None,
        _doc(
            "true: by the system's roots; or files: `{ca, cert, key, server_name}`; false: in plain"
            " text. Must be said where the engine is on another host."
        ),
    ] = None
    api_key: Annotated[
        str, _doc("The variable that holds the engine's key, as in `$ENGINE_KEY`.")
    ] = ""
    codec: Codec = Codec()


def cycles_of(agent: Agent) -> int:
    """How many cycles a run of an agent has; 0: any number."""
    return AgentDefaults().cycles if agent.cycles is None else agent.cycles


class Settings(msgspec.Struct, frozen=True):
    runtime: Runtime = Runtime()
    agent: AgentDefaults = AgentDefaults()
    fleet: Fleet | None = None
    """None: there is no fleet, and files on this host keep the agents."""


SNAPSHOT_EVERY_BYTES = 64 * 1024
"""Log written since the last snapshot that makes a new one: what a start has to read again."""
COLD_LOG_BYTES = 1024 * 1024
"""Log read without a snapshot after which the reader itself keeps one."""
SEAL_COMPACT_BYTES = 64 * 1024
"""Size at which the file of an agent's seal is replaced by its last record."""
LOCK_WAIT_SECONDS = 1.0
"""How long a command waits for the agent's writer before it leaves its record to it."""
RELAY_BYTES = 8_000_000
"""The largest file that is read as a relay: it is a page, and a log is none."""
MANIFEST_BYTES = 8_000_000
"""The largest rekindle.yaml that is read."""
TEXT_BYTES = 1_000_000
"""The largest file that is read as a prompt, as rules or as a system prompt."""
FILE_BYTES = 64 * 1024 * 1024
"""The largest file of an agent that is read at once; its log is read in pieces."""
ADOPT_BYTES = 8_000_000
"""The largest file that is taken over from another loop."""
ADOPT_DEPTH = 100
"""How deeply fields that nobody here knows may be nested there."""
AUDIT_CALL_SECONDS = 2.0
"""How long one call of git may take: a file system that hangs must not stop a commit."""
WORKTREE_CALL_SECONDS = 20.0
"""How long git may take to say what has changed in an agent's folder."""
REPLAY_CALL_SECONDS = 60.0
"""The same where a person waits for a whole history to be read."""
WORKSPACE_CALL_SECONDS = 120.0
"""The same for all files of a fleet agent's workspace, read or put there."""
WORKSPACE_TRANSFER_SECONDS = 600.0
"""How long git may take to bring a workspace from its remote, or to push it there."""
WORKSPACE_TRIES = 5
"""How often a work branch is claimed while its old owner still pushes."""
AUDIT_REST_SECONDS = 60.0
"""How long git is left alone after it was too slow."""
AUDIT_BATCH = 50
"""The most relays that one command adds to the git audit trail, where it lags."""
AUDIT_TRIES = 3
"""How often a commit is tried again when somebody else moved the audit branch meanwhile."""
HEADLINE_CHARACTERS = 200
"""How much of a directive a status shows."""
RESUME_TRIES = 2
"""How often resuming a session may fail before a fresh one takes over."""
HOOK_CHARACTERS = 10_000
"""What a CLI takes from a hook, in UTF-16 units; Claude Code hides longer texts in a file."""
SAME_START_SECONDS = 5.0
"""Hooks installed twice ask for the primer twice; within this time that is one start."""
FOLD_EVERY_SECONDS = 2.0
"""How often a supervisor folds what hooks have reported, at most."""
FLEET_FOLD_SECONDS = 30.0
"""The same on a host of a fleet, where each time asks something of the engine."""
FLEET_EVENTS_KEPT = 60
"""So many lines of an agent's log the engine keeps."""
FLEET_TAIL_BYTES = 64 * 1024
"""And of those no more than this."""
FLEET_PROMPT_CHARACTERS = 2_000
"""What the engine keeps of a prompt: the transcript has all of it."""
FLEET_COMMIT_BYTES = 256 * 1024
"""What a host has counted at once, and the longest line: more is said in pieces."""
FLEET_CURSORS_KEPT = 20
"""Of so many inbox segments the engine remembers how far they were read."""
FLEET_DOCUMENT_BYTES = 256 * 1024
"""A larger document is refused by the engine, whose messages have a limit of two megabytes."""
FLEET_HISTORY_EVENTS = 1_000
"""After so many events an agent's workflow is carried over into a new one, between two cycles: a
worker that has never seen it reads all of them, within `fleet.task_seconds`."""
FLEET_HOST_SECONDS = 5.0
"""How long the host that has an agent's workspace may take to begin, before another does."""
FLEET_BRIEF_SECONDS = 20.0
"""The same for a brief, which all agents may want in one hour."""
FLEET_BRIEF_SPREAD_SECONDS = 300.0
"""Over so long the briefs of one time of day are spread, on a fleet."""
FLEET_OFFER_SECONDS = 1.0
"""How long a host may take to say that it has a slot, before another is asked."""
FLEET_OFFERS = 6
"""So often the pool is asked for another host than one that has failed the agent."""
FLEET_SLOT_SECONDS = 20.0
"""How long work that is on one host alone waits, where that is full, until it asks again."""
FLEET_TASK_SECONDS = 2.0
"""How long a worker may take to decide what comes next, before another is asked."""
FLEET_WORD_SECONDS = 10.0
"""How long a host may take to hear the operator's word; else it hears it at its next commit."""
FLEET_RPC_SECONDS = 10.0
"""How long one question to the engine may take, before it is asked again."""
FLEET_ADMISSION_AGENTS = 200
"""Agents that a host which refuses plain text looks at before it takes any."""
FLEET_ANSWER_SECONDS = 5.0
"""How long a command waits for what is known of an agent, before it says that no worker is up."""
FLEET_STATUS_AGENTS = 20
"""Of more agents than these, `status` tells only what the engine's list of them has."""
FLEET_BEAT_SHARE = 0.4
"""How often a host says that it lives, as a share of the time after which it counts as gone."""
FLEET_STICKY_SECONDS = 1.0
"""How long what is to be decided waits for the worker that decided last."""
FLEET_LEAVE_SECONDS = 30.0
"""How long a worker that ends may take to give back what runs there."""
FLEET_NICE = 10
"""By so much an agent on a host has a lower priority than the worker beside it."""
FLEET_LEASE_DAYS = 365
"""The longest that one cycle may take; that its host is gone is known long before."""
POLL_SECONDS = 1.0
"""How often a supervisor that waits looks for the operator's word."""
STOP_SECONDS = 10.0
"""How long an agent that is asked to end may take before it is killed."""
ORPHAN_SECONDS = 0.1
"""How long a process that a launch left behind may take to end before it is killed."""
RECORD_SECONDS = 2.0
"""How often a supervisor records the processes that it could not find again by their mark."""
LIMIT_PROBE_SECONDS = 900.0
"""How long after a usage limit whose end nobody knows it is tried again; it doubles."""
MAX_LIMIT_PROBE_SECONDS = 3600.0
"""The longest of these."""
PROBED_CRASHES = 5
"""Launches in a row that fail at once before the next ones are probes."""
INSTANT_SECONDS = 180.0
"""Run time below which a crash counts as a failure at once."""
RETRY_NOTICE_SECONDS = 2700.0
"""Time of failures without progress after which the operator is notified."""
PROGRESS_SAME = 3
"""Launches, or cycles, in a row that change a file before its changes stop being progress."""
PROGRESS_NAMES = 10
"""Changed files of a launch, or a cycle, that the log names."""
FINISHED_SECONDS = 60.0
"""How long a program that has given its last account may take to exit before it is ended."""
SECONDS_AN_HOUR = 3600.0
GUESSED_USD_READ = 3.0
"""What a million tokens may cost that a launch has read which was killed before it could say."""
GUESSED_USD_WRITTEN = 15.0
"""The same of those that it has written."""
SPENDING_SHARE = 0.01
"""The share of a cap, or of what was spent, by which a turn may grow before it is noted again."""
FRESH_TOKENS = 20_000
"""What a fresh session reads beside its primer: the CLI's own instructions and tools."""
BUSY_SHARE = 0.05
"""The share of a processor above which a silent process counts as working."""
BUSY_BYTES = 16_384
"""Bytes read and written in a second above which a silent process counts as working.

A shell that calls `sleep 1` in a loop reads half of that.
"""
NOTIFY_SECONDS = 10.0
"""How long a supervisor waits for its notifications to be delivered, all of them together."""
REDACT_GUESSABLE_CHARACTERS = 20
"""Secrets shorter than this show less of their hash: they could be guessed."""
REDACT_ROUNDS = 4
"""How often a text is looked through again after something in it was redacted."""
REDACT_SHORTEST = 8
"""Texts shorter than this are not looked through: `name=value` needs more."""
ARCHIVE_STEP_BYTES = 8 * 1024 * 1024
"""After so much of a transcript, what was read of it is kept for good."""
ARCHIVE_EVERY_SECONDS = 3 * 3600.0
"""How often the watchdog keeps the transcripts of an agent that nobody else keeps them of."""
SUMMARY_SECONDS = 300.0
"""How long a summarizer may take to answer."""
SUMMARY_SHOWN_CHARACTERS = (2_000, 500, 120, 0)
"""How much of what each tool gave a summarizer is shown: the first that fits its cap."""
QUOTED_WORDS = 5
"""So many words in a row that a summary shares with the transcript are a quotation."""
QUOTED_REQUEST_CHARACTERS = 300
"""Characters of the person's last request that a summary quotes."""
TRACE_STEMS = 3
"""Stems of a line, said by neither person nor agent, that show that it stems from a tool's text."""
TRACE_SUPPORT = 0.33
"""Share of an instruction's stems that the person or the agent must have said."""
TRACE_HEARSAY = 0.5
"""Share of a sentence's stems in a tool's text from which the sentence repeats that text."""
TRACE_WINDOW_WORDS = 40
"""Words of a tool's text that are compared with a line at a time."""
BRIEF_PIECES = 8
"""A day that does not fit one request is asked about in so many at most; the oldest is left out."""
BRIEF_RECORDS_SHARE = 0.4
"""The share of a request that what was known before may take: the rest is for the day."""
BRIEF_TURN_TOKENS = 100
"""With less room than this for its turns, a day cannot be asked about."""
BRIEF_RETRY_SECONDS = 900.0
"""How long after a brief was begun of which nothing came the watchdog has it begun again."""
BRIEF_RETRY_MOST_SECONDS = 86_400.0
"""The pause before a brief is begun again doubles each time, up to this."""
BRIEF_FIRST_DAYS = 7
"""An agent's first brief tells of so many days: what is older is history by then."""
BRIEF_OVERLAP_DAYS = 1
"""What was written to so long before the last brief is looked at again: clocks differ."""
BRIEF_UNUSABLE = 3
"""After so many briefs in a row whose answer could not be used, its turns are not read again."""
BRIEF_TURN_CHARACTERS = 8
"""Of turns with more characters for each token that a day may take, the oldest go unread."""
BRIEF_TOLD_KEPT = 1_000
"""Of so many transcripts it is remembered how far they were told."""
BRIEF_TOLD_DAYS = 14
"""And for so many days; one that goes on after that is told from its beginning."""
BRIEF_NUMBERS = 100
"""The most numbers that briefs add to the state; what you add yourself is not counted out."""
BRIEF_NUMBER_CHARACTERS = 40
"""The longest name, and value, of a number: what is longer is a sentence."""
BRIEF_FEW_LINES = 3
"""So many changes and open loops stay in a brief that is too long, before anything else goes."""
LOOP_SAME = 0.75
"""Two loops whose texts are this much alike, from 0 to 1, are one that was put differently."""
LOOP_NAMED = 0.75
"""A sentence with this share of a loop's words, from 0 to 1, speaks of it; so does its id."""
CLAIM_NAMED = 0.5
"""A commit that has this share of its words in what is said to have changed bears it out."""
UNTIL_SECONDS = 1800.0
"""How long the command of `until:` may take."""
SHORT_CYCLE_SECONDS = 60.0
"""Cycles that are shorter than this on average hand on more than they do."""
HANDOFF_VAIN_SHARE = 0.875
"""A fresh session that begins this near to its threshold has hardly any room."""
HANDOFFS_VAIN = 2
"""So many handoffs in a row that made no room are the last."""
HANDOFFS_MANY = 3
"""More handoffs than these in one cycle say that its work is too large for one."""
HANDOFFS_MOST = 20
"""After so many handoffs of one cycle a person looks at it. No rule can tell work that is large
from work that goes in circles and leaves traces; so many full windows cost as much as a day's work.
"""
CONNECT_SECONDS = 10.0
"""How long a fleet's engine may take to answer at all."""
CONNECT_AGAIN_SECONDS = 2.0
"""How often a host looks whether the engine is up that it waits for."""
MEASURE_SECONDS = 20.0
"""How long a CLI may take to say how large its window is."""
CYCLES_KEPT = 50
"""How many cycles that ended are remembered; the log has all of them."""
RESET_MINUTE_MARGIN_SECONDS = 60.0
"""A reset told to the minute, "5pm", was cut to it: it may be as late as 17:00:59."""
RESET_SECOND_MARGIN_SECONDS = 1.0
"""The same for a wait told in seconds, "53s"."""
RESET_SHORT_SECONDS = 3600.0
"""A wait shorter than this beside a limit of a day or more is not believed."""
STALL_LEAD_LINES = 6
"""So many open lines say what a directive is about; what follows is outlook."""
STALL_MOST_LINES = 100
"""Of so many changed lines each is held against each; a directive with more is a log."""
STALL_SAME_LINE = 0.8
"""Lines of two directives that are this much alike, from 0 to 1, are the same item."""
STALL_SAME_HEAD = 0.75
"""The same of the first line: what is asked for."""
STALL_SAME_LEAD = 0.78
"""The same of the first lines, on average."""
STALL_SAME_WAIT = 0.6
"""The same of a line that waits for somebody: it is put into other words each time."""
STALL_TREADMILL_HEAD = 0.55
"""The first line where both directives ask to go on without end: its wording is a pastime."""
STALL_TREADMILL_LEAD = 0.5
"""The first lines, in the same case."""
STALL_STEM_CHARACTERS = 5
"""Words that begin with the same so many are the same word in another form."""
STALL_SWAP_WORDS = 3
"""From so many words on, one that takes another's place makes it another task."""
STALL_ALARM = 3
"""Pairs of relays in a row, with no step between any two, that make a loop stuck."""
STALL_TURNS = 4
"""So many directives may take turns and are still seen through."""
CONVERGENCE_OPTIONS = 2
"""So many ranked options open a topic."""
CONVERGENCE_SAME_WINNER = 0.6
"""Two names of a winner that are this much alike, from 0 to 1, are the same one."""
DECISION_SAME = 0.7
"""Two decisions that are this much alike, from 0 to 1, are one that was put differently."""
DECISION_MOST = 200
"""Of so many changed decisions each is held against each; a list with more is a log."""
DECISION_NAMED = 0.75
"""A line that has this share of a decision's words, from 0 to 1, is about the same thing."""
DECISION_ALTERNATIVE = 0.8
"""An alternative that is this much like a decision's subject, from 0 to 1, is what was decided."""

FIXED: dict[str, tuple[Any, str]] = {
    "store.snapshot_every_bytes": (
        SNAPSHOT_EVERY_BYTES,
        "Log written since the last snapshot that makes a new one.",
    ),
    "store.cold_log_bytes": (
        COLD_LOG_BYTES,
        "Log read without a snapshot after which the reader itself keeps one.",
    ),
    "store.seal_compact_bytes": (
        SEAL_COMPACT_BYTES,
        "Size at which the file of an agent's seal is replaced by its last record.",
    ),
    "store.lock_wait_seconds": (
        LOCK_WAIT_SECONDS,
        "How long a command waits for the agent's writer before it leaves its record to it.",
    ),
    "relay.bytes": (RELAY_BYTES, "The largest file that is read as a relay."),
    "manifest.bytes": (MANIFEST_BYTES, "The largest rekindle.yaml that is read."),
    "text.bytes": (
        TEXT_BYTES,
        "The largest file that is read as a prompt, as rules or as a system prompt.",
    ),
    "store.file_bytes": (
        FILE_BYTES,
        "The largest file of an agent that is read at once; its log is read in pieces.",
    ),
    "adopt.bytes": (ADOPT_BYTES, "The largest file that is taken over from another loop."),
    "adopt.depth": (ADOPT_DEPTH, "How deeply fields that we do not know may be nested there."),
    "audit.call_seconds": (
        AUDIT_CALL_SECONDS,
        "How long one call of git may take for the audit trail, which then lags.",
    ),
    "worktree.call_seconds": (
        WORKTREE_CALL_SECONDS,
        "How long git may take to say what has changed in an agent's folder.",
    ),
    "workspace.call_seconds": (
        WORKSPACE_CALL_SECONDS,
        "How long git may take to look through a fleet agent's workspace, or to change it.",
    ),
    "workspace.transfer_seconds": (
        WORKSPACE_TRANSFER_SECONDS,
        "How long git may take to bring a workspace from its remote, or to push it there.",
    ),
    "workspace.tries": (
        WORKSPACE_TRIES,
        "How often a work branch is claimed while its old owner still pushes.",
    ),
    "replay.call_seconds": (
        REPLAY_CALL_SECONDS,
        "How long one call of git may take where a person waits for a whole history to be read.",
    ),
    "audit.rest_seconds": (
        AUDIT_REST_SECONDS,
        "How long git is left alone after it was too slow.",
    ),
    "audit.batch": (
        AUDIT_BATCH,
        "The most relays that one command adds to the audit trail, where it lags.",
    ),
    "audit.tries": (
        AUDIT_TRIES,
        "How often a commit is tried when somebody else moves the audit branch meanwhile.",
    ),
    "status.headline_characters": (HEADLINE_CHARACTERS, "How much of a directive a status shows."),
    "run.resume_tries": (
        RESUME_TRIES,
        "How often resuming a session may fail before a fresh one takes over.",
    ),
    "run.fold_every_seconds": (
        FOLD_EVERY_SECONDS,
        "How often a supervisor folds what hooks have reported, at most.",
    ),
    "fleet.fold_seconds": (
        FLEET_FOLD_SECONDS,
        "The same on a host of a fleet, where each time asks something of the engine.",
    ),
    "fleet.events_kept": (
        FLEET_EVENTS_KEPT,
        "So many lines of an agent's log the engine keeps.",
    ),
    "fleet.tail_bytes": (FLEET_TAIL_BYTES, "And of those no more than this."),
    "fleet.prompt_characters": (
        FLEET_PROMPT_CHARACTERS,
        "What the engine keeps of a prompt: the transcript has all of it.",
    ),
    "fleet.commit_bytes": (
        FLEET_COMMIT_BYTES,
        "What a host has counted at once, and the longest line: more is said in pieces.",
    ),
    "fleet.cursors_kept": (
        FLEET_CURSORS_KEPT,
        "Of so many inbox segments the engine remembers how far they were read.",
    ),
    "fleet.document_bytes": (
        FLEET_DOCUMENT_BYTES,
        "A larger document is refused by the engine, whose messages have a limit of two megabytes.",
    ),
    "fleet.history_events": (
        FLEET_HISTORY_EVENTS,
        "After so many events an agent's workflow is carried over, between two cycles.",
    ),
    "fleet.host_seconds": (
        FLEET_HOST_SECONDS,
        "How long the host that has an agent's workspace may take to begin, before another does.",
    ),
    "fleet.brief_seconds": (
        FLEET_BRIEF_SECONDS,
        "The same for a brief, which all agents may want in one hour.",
    ),
    "fleet.brief_spread_seconds": (
        FLEET_BRIEF_SPREAD_SECONDS,
        "Over so long the briefs of one time of day are spread, on a fleet.",
    ),
    "fleet.offer_seconds": (
        FLEET_OFFER_SECONDS,
        "How long a host may take to say that it has a slot, before another is asked.",
    ),
    "fleet.offers": (
        FLEET_OFFERS,
        "So often the pool is asked for another host than one that has failed the agent.",
    ),
    "fleet.slot_seconds": (
        FLEET_SLOT_SECONDS,
        "How long work that is on one host alone waits, where that is full, until it asks again.",
    ),
    "fleet.task_seconds": (
        FLEET_TASK_SECONDS,
        "How long a worker may take to decide what comes next, before another is asked.",
    ),
    "fleet.word_seconds": (
        FLEET_WORD_SECONDS,
        "How long a host may take to hear the operator's word.",
    ),
    "fleet.rpc_seconds": (
        FLEET_RPC_SECONDS,
        "How long one question to the engine may take, before it is asked again.",
    ),
    "fleet.admission_agents": (
        FLEET_ADMISSION_AGENTS,
        "Agents that a host which refuses plain text looks at before it takes any.",
    ),
    "fleet.answer_seconds": (
        FLEET_ANSWER_SECONDS,
        "How long a command waits for what is known of an agent.",
    ),
    "fleet.status_agents": (
        FLEET_STATUS_AGENTS,
        "Of more agents than these, `status` tells only what the engine's list of them has.",
    ),
    "fleet.beat_share": (
        FLEET_BEAT_SHARE,
        "How often a host says that it lives, as a share of the time after which it is gone.",
    ),
    "fleet.sticky_seconds": (
        FLEET_STICKY_SECONDS,
        "How long what is to be decided waits for the worker that decided last.",
    ),
    "fleet.leave_seconds": (
        FLEET_LEAVE_SECONDS,
        "How long a worker that ends may take to give back what runs there.",
    ),
    "fleet.nice": (
        FLEET_NICE,
        "By so much an agent on a host has a lower priority than the worker beside it.",
    ),
    "fleet.lease_days": (
        FLEET_LEASE_DAYS,
        "The longest that one cycle may take; that its host is gone is known long before.",
    ),
    "run.poll_seconds": (
        POLL_SECONDS,
        "How often a supervisor that waits looks for the operator's word.",
    ),
    "run.stop_seconds": (
        STOP_SECONDS,
        "How long an agent that is asked to end may take before it is killed.",
    ),
    "run.orphan_seconds": (
        ORPHAN_SECONDS,
        "How long a process that a launch left behind may take to end before it is killed.",
    ),
    "run.record_seconds": (
        RECORD_SECONDS,
        "How often a supervisor records the processes that it could not find again by their mark.",
    ),
    "run.finished_seconds": (
        FINISHED_SECONDS,
        "How long a program that has given its last account may take to exit, then it is ended.",
    ),
    "budget.guessed_usd_read": (
        GUESSED_USD_READ,
        "Dollars for a million tokens read by a launch that was killed before it could say.",
    ),
    "budget.guessed_usd_written": (GUESSED_USD_WRITTEN, "The same of those that it has written."),
    "budget.spending_share": (
        SPENDING_SHARE,
        "The share of a cap, or of what was spent, by which a turn grows before it is noted again.",
    ),
    "run.fresh_tokens": (
        FRESH_TOKENS,
        "What a fresh session reads beside its primer: the CLI's own instructions and tools.",
    ),
    "run.busy_share": (
        BUSY_SHARE,
        "The share of a processor above which a silent process counts as working.",
    ),
    "watch.busy_bytes": (
        BUSY_BYTES,
        "Bytes read and written in a second above which a silent process counts as working.",
    ),
    "limits.probe_seconds": (
        LIMIT_PROBE_SECONDS,
        "How long after a usage limit whose end nobody knows it is tried again; it doubles.",
    ),
    "limits.max_probe_seconds": (MAX_LIMIT_PROBE_SECONDS, "The longest of these."),
    "restart.probed_crashes": (
        PROBED_CRASHES,
        "Launches in a row that fail at once before the next ones are probes.",
    ),
    "restart.instant_seconds": (
        INSTANT_SECONDS,
        "Run time below which a crash counts as a failure at once.",
    ),
    "restart.retry_notice_seconds": (
        RETRY_NOTICE_SECONDS,
        "Time of failures without progress after which the operator is notified.",
    ),
    "progress.same": (
        PROGRESS_SAME,
        "Launches, or cycles, in a row that change a file before this stops being progress.",
    ),
    "progress.names": (
        PROGRESS_NAMES,
        "Changed files of a launch, or a cycle, that the log names.",
    ),
    "notify.seconds": (
        NOTIFY_SECONDS,
        "How long a supervisor waits for its notifications to be delivered, all together.",
    ),
    "limits.minute_margin_seconds": (
        RESET_MINUTE_MARGIN_SECONDS,
        "Added to a reset told to the minute, which was cut: nobody is woken early.",
    ),
    "limits.second_margin_seconds": (
        RESET_SECOND_MARGIN_SECONDS,
        "Added to a wait told in seconds, for the same reason.",
    ),
    "limits.short_seconds": (
        RESET_SHORT_SECONDS,
        "A wait shorter than this beside a limit of a day or more is not believed.",
    ),
    "stall.lead_lines": (
        STALL_LEAD_LINES,
        "So many open lines say what a directive is about; what follows is outlook.",
    ),
    "stall.most_lines": (
        STALL_MOST_LINES,
        "Of so many changed lines each is held against each; a directive with more is a log.",
    ),
    "stall.same_line": (
        STALL_SAME_LINE,
        "Lines of two directives that are this much alike, from 0 to 1, are the same item.",
    ),
    "stall.same_head": (STALL_SAME_HEAD, "The same of the first line: what is asked for."),
    "stall.same_lead": (STALL_SAME_LEAD, "The same of the first lines, on average."),
    "stall.same_wait": (STALL_SAME_WAIT, "The same of a line that waits for somebody."),
    "stall.treadmill_head": (
        STALL_TREADMILL_HEAD,
        "The first line where both directives ask to go on without end.",
    ),
    "stall.treadmill_lead": (STALL_TREADMILL_LEAD, "The first lines, in the same case."),
    "stall.stem_characters": (
        STALL_STEM_CHARACTERS,
        "Words that begin with the same so many are the same word in another form.",
    ),
    "stall.swap_words": (
        STALL_SWAP_WORDS,
        "From so many words on, one that takes another's place makes it another task.",
    ),
    "stall.alarm": (
        STALL_ALARM,
        "Pairs of relays in a row, with no step between any two, that make a loop stuck.",
    ),
    "stall.turns": (STALL_TURNS, "So many directives may take turns and are still seen through."),
    "convergence.options": (CONVERGENCE_OPTIONS, "So many ranked options open a topic."),
    "convergence.same_winner": (
        CONVERGENCE_SAME_WINNER,
        "Two names of a winner that are this much alike, from 0 to 1, are the same one.",
    ),
    "decisions.same": (
        DECISION_SAME,
        "Two decisions that are this much alike, from 0 to 1, are one that was put differently.",
    ),
    "decisions.most": (
        DECISION_MOST,
        "Of so many changed decisions each is held against each; a list with more is a log.",
    ),
    "decisions.named": (
        DECISION_NAMED,
        "A line that has this share of a decision's words, from 0 to 1, is about the same thing.",
    ),
    "decisions.alternative": (
        DECISION_ALTERNATIVE,
        "An alternative this much like a decision's subject, from 0 to 1, is what was decided.",
    ),
    "hooks.characters": (
        HOOK_CHARACTERS,
        "What a CLI takes from a hook, in UTF-16 units; a longer primer is shortened to it.",
    ),
    "hooks.same_start_seconds": (
        SAME_START_SECONDS,
        "Hooks installed twice ask for the primer twice; within this time that is one start.",
    ),
    "loop.until_seconds": (UNTIL_SECONDS, "How long the command of `until:` may take."),
    "loop.short_cycle_seconds": (
        SHORT_CYCLE_SECONDS,
        "Cycles that are shorter than this on average hand on more than they do.",
    ),
    "handoff.vain_share": (
        HANDOFF_VAIN_SHARE,
        "A fresh session that begins this near to its threshold has hardly any room.",
    ),
    "handoff.vain": (HANDOFFS_VAIN, "So many handoffs in a row that made no room are the last."),
    "handoff.many": (
        HANDOFFS_MANY,
        "More handoffs than these in one cycle say that its work is too large for one.",
    ),
    "handoff.most": (HANDOFFS_MOST, "After so many handoffs of one cycle a person looks at it."),
    "handoff.measure_seconds": (
        MEASURE_SECONDS,
        "How long a CLI may take to say how large its window is.",
    ),
    "fleet.connect_seconds": (
        CONNECT_SECONDS,
        "How long a fleet's engine may take to answer at all.",
    ),
    "fleet.connect_again_seconds": (
        CONNECT_AGAIN_SECONDS,
        "How often a host looks whether the engine is up that it waits for.",
    ),
    "loop.cycles_kept": (
        CYCLES_KEPT,
        "How many cycles that ended are remembered; the log has all of them.",
    ),
    "archive.step_bytes": (
        ARCHIVE_STEP_BYTES,
        "After so much of a transcript, what was read of it is kept for good.",
    ),
    "archive.every_seconds": (
        ARCHIVE_EVERY_SECONDS,
        "How often the watchdog keeps the transcripts of an agent that nobody else keeps them of.",
    ),
    "summary.seconds": (SUMMARY_SECONDS, "How long a summarizer may take to answer."),
    "summary.shown_characters": (
        SUMMARY_SHOWN_CHARACTERS,
        "How much of what each tool gave a summarizer is shown: the first that fits its cap.",
    ),
    "summary.quoted_words": (
        QUOTED_WORDS,
        "So many words in a row that a summary shares with the transcript are a quotation.",
    ),
    "summary.quoted_request_characters": (
        QUOTED_REQUEST_CHARACTERS,
        "Characters of the person's last request that a summary quotes.",
    ),
    "summary.trace_stems": (
        TRACE_STEMS,
        "Stems of a line, said by neither person nor agent, that show that it stems from a tool.",
    ),
    "summary.trace_support": (
        TRACE_SUPPORT,
        "Share of an instruction's stems that the person or the agent must have said.",
    ),
    "summary.trace_hearsay": (
        TRACE_HEARSAY,
        "Share of a sentence's stems in a tool's text from which it repeats that text.",
    ),
    "summary.trace_window_words": (
        TRACE_WINDOW_WORDS,
        "Words of a tool's text that are compared with a line at a time.",
    ),
    "brief.pieces": (
        BRIEF_PIECES,
        "A day that does not fit one request is asked about in so many at most.",
    ),
    "brief.records_share": (
        BRIEF_RECORDS_SHARE,
        "The share of a request that what was known before may take.",
    ),
    "brief.turn_tokens": (
        BRIEF_TURN_TOKENS,
        "With less room than this for its turns, a day cannot be asked about.",
    ),
    "brief.retry_seconds": (
        BRIEF_RETRY_SECONDS,
        "How long after a brief was begun of which nothing came it is begun again.",
    ),
    "brief.retry_most_seconds": (
        BRIEF_RETRY_MOST_SECONDS,
        "The pause before a brief is begun again doubles each time, up to this.",
    ),
    "brief.first_days": (BRIEF_FIRST_DAYS, "An agent's first brief tells of so many days."),
    "brief.overlap_days": (
        BRIEF_OVERLAP_DAYS,
        "What was written to so long before the last brief is looked at again.",
    ),
    "brief.unusable": (
        BRIEF_UNUSABLE,
        "After so many briefs in a row whose answer could not be used, its turns are given up.",
    ),
    "brief.turn_characters": (
        BRIEF_TURN_CHARACTERS,
        "Of turns with more characters for each token that a day may take, the oldest go unread.",
    ),
    "brief.told_kept": (
        BRIEF_TOLD_KEPT,
        "Of so many transcripts it is remembered how far they were told.",
    ),
    "brief.told_days": (
        BRIEF_TOLD_DAYS,
        "And for so many days; one that goes on after that is told from its beginning.",
    ),
    "brief.numbers": (BRIEF_NUMBERS, "The most numbers that briefs add to the state."),
    "brief.number_characters": (
        BRIEF_NUMBER_CHARACTERS,
        "The longest name, and value, of a number in a brief.",
    ),
    "brief.few_lines": (
        BRIEF_FEW_LINES,
        "So many changes and open loops stay longest in a brief that is too long.",
    ),
    "loops.same": (
        LOOP_SAME,
        "Two loops that are this much alike, from 0 to 1, are one that was put differently.",
    ),
    "loops.named": (
        LOOP_NAMED,
        "A sentence with this share of a loop's words, from 0 to 1, speaks of it.",
    ),
    "brief.claim_named": (
        CLAIM_NAMED,
        "A commit with this share of its words in what is said to have changed bears it out.",
    ),
    "redact.guessable_characters": (
        REDACT_GUESSABLE_CHARACTERS,
        "Secrets shorter than this show two digits of their hash instead of four.",
    ),
    "redact.shortest": (REDACT_SHORTEST, "Texts shorter than this are not looked through."),
    "redact.rounds": (
        REDACT_ROUNDS,
        "How often a text is looked through again after something in it was redacted.",
    ),
}


class Explanation(msgspec.Struct, frozen=True):
    key: str
    value: Any
    default: Any
    origin: str
    """`default`, `fixed`, or the file and line that set it."""
    meaning: str


def resolve(marked: Marked | None) -> Settings:
    """The settings in force: the manifest's where it speaks, else the defaults."""
    if marked is None:
        return Settings()
    fleet = shape.conform(marked, Fleet, ("fleet",))
    return Settings(
        runtime=shape.conform(marked, Runtime, ("runtime",)),
        fleet=fleet if _says_something(marked, "fleet") else None,
    )


def _says_something(marked: Marked, section: str) -> bool:
    """A section whose keys were all left empty, or that has none, is as one left out."""
    found = marked.data.get(section) if isinstance(marked.data, dict) else None
    return isinstance(found, dict) and any(value is not None for value in found.values())


def explain_all(manifest: Manifest | None, marked: Marked | None) -> list[Explanation]:
    """Every threshold, in the order of the reference manifest."""
    resolved = resolve(marked)
    found = list(_walk(("runtime",), Runtime(), resolved.runtime, marked))
    agents: list[str | None] = [*manifest.agents] if manifest else []
    for name in agents or [None]:
        found += _agent(name, manifest, marked)
    found += _walk(("fleet",), Fleet(), resolved.fleet or Fleet(), marked)
    found += [
        Explanation(key, value, value, "fixed", meaning) for key, (value, meaning) in FIXED.items()
    ]
    return found


def explain(key: str, manifest: Manifest | None, marked: Marked | None) -> list[Explanation]:
    """What a key means and what it is now; the last part of a key is enough."""
    every = explain_all(manifest, marked)
    found = [one for one in every if one.key == key or one.key.endswith(f".{key}")]
    found = found or [one for one in every if f".{key}." in f".{one.key}"]
    if not found:
        tails = {one.key.rsplit(".", 1)[1] for one in every} | {one.key for one in every}
        like = get_close_matches(key, tails, n=1)
        raise NotFoundError(
            f"no setting named {key!r}",
            hint=f"did you mean `{like[0]}`?" if like else "`rekindle config explain` lists all",
        )
    return found


def _agent(name: str | None, manifest: Manifest | None, marked: Marked | None) -> list[Explanation]:
    defaults = AgentDefaults()
    own = manifest.agents[name] if manifest and name is not None else None
    said = {
        key: value
        for key in msgspec.structs.asdict(defaults)
        if own is not None and (value := getattr(own, key)) is not None
    }
    path = ("agents", name or "NAME")
    return list(_walk(path, defaults, msgspec.structs.replace(defaults, **said), marked))


def _walk(path: Path, default: Any, value: Any, marked: Marked | None) -> list[Explanation]:
    found: list[Explanation] = []
    for name, annotation in shape.fields_of(type(default)).items():
        here = (*path, name)
        if isinstance(getattr(default, name), msgspec.Struct):
            found += _walk(here, getattr(default, name), getattr(value, name), marked)
            continue
        line = marked.lines.get(here) if marked else None
        meta = next(one for one in get_args(annotation) if isinstance(one, msgspec.Meta))
        found.append(
            Explanation(
                shape.dotted(here),
                getattr(value, name),
                getattr(default, name),
                f"{marked.file}:{line}" if marked and line else "default",
                meta.description or "",
            )
        )
    return found
