"""All settings in rekindle.yaml, each declared once with its default, bounds, unit and meaning.

A setting is a field of one of these structs; the path of the field is its key in the manifest. A
threshold that the manifest cannot set is a constant in `rekindle.thresholds`; this module exports
those constants too. The reference page, `rekindle config explain` and `rekindle config schema` are
generated from these declarations.
"""

from typing import Annotated, Literal

import msgspec

from rekindle.documents.manifest import AgentEntry
from rekindle.formats import validation
from rekindle.formats.validation import Duration
from rekindle.formats.validation import describe_key as _doc
from rekindle.formats.yaml_lines import MarkedData
from rekindle.thresholds import screens
from rekindle.thresholds.comparison import *  # noqa: F403 - every name there is a threshold
from rekindle.thresholds.fleet_limits import *  # noqa: F403
from rekindle.thresholds.hook_limits import *  # noqa: F403
from rekindle.thresholds.screens import *  # noqa: F403
from rekindle.thresholds.storage import *  # noqa: F403
from rekindle.thresholds.supervision import *  # noqa: F403
from rekindle.thresholds.supervision import (
    LIMIT_PROBE_SECONDS,
    MAX_LIMIT_PROBE_SECONDS,
    PROBED_CRASHES,
)
from rekindle.thresholds.texts import *  # noqa: F403

SECONDS_AN_HOUR = 3600.0
PROBE_INTERVAL = f"{LIMIT_PROBE_SECONDS / 60:g} to {MAX_LIMIT_PROBE_SECONDS / 60:g} minutes"
"""Interval between two probes, in words for the user."""


class RelaySettings(msgspec.Struct, frozen=True):
    token_threshold_percent: Annotated[
        int, _doc("Share of the context window at which a handoff starts.", "percent", ge=1, le=100)
    ] = 80
    strategy: Annotated[
        Literal["summarize_to_checkpoint"], _doc("Method by which a handoff carries the work over.")
    ] = "summarize_to_checkpoint"
    max_relay_tokens: Annotated[
        int,
        _doc(
            "Maximum size of the relay, which every session reads; a larger relay is trimmed.",
            "tokens",
            ge=200,
        ),
    ] = 2_000
    summarizer: Annotated[
        Literal["headless", "mechanical"],
        _doc("`headless`: a CLI without tools writes the summary. `mechanical`: no model is used."),
    ] = "headless"
    summarizer_max_input_tokens: Annotated[
        int,
        _doc(
            "Maximum size of a summarizer's input; a larger handoff is refused.",
            "tokens",
            ge=1_000,
        ),
    ] = 150_000
    summarizer_max_usd: Annotated[
        float,
        _doc("Maximum cost of one summarizer call, if its CLI supports a cap.", "dollars", gt=0),
    ] = 2.0


class RestartSettings(msgspec.Struct, frozen=True):
    max_crashes: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        _doc(
            "Number of crashes within `window` that leads to safe mode. By default, after"
            f" {PROBED_CRASHES} launches in a row that fail at once, one is tried every"
            f" {PROBE_INTERVAL} instead.",
            "count",
        ),
    ] = None
    window: Annotated[Duration, _doc("Period over which crashes are counted.")] = Duration(900)
    cooldown: Annotated[
        Duration, _doc("Pause after the first crash; it doubles with each further crash.")
    ] = Duration(10)
    max_cooldown: Annotated[Duration, _doc("Maximum pause after a crash.")] = Duration(300)
    healthy_after: Annotated[
        Duration, _doc("Time without a crash after which the count and the pause are reset.")
    ] = Duration(600)


class WatchSettings(msgspec.Struct, frozen=True):
    every: Annotated[
        Duration, _doc("Interval between two checks of the watchdog, from 1s to 5m.")
    ] = Duration(15)
    silence: Annotated[
        Duration,
        _doc(
            "Time without hook, stream or transcript activity after which a session counts as hung."
        ),
    ] = Duration(600)
    tool_timeout: Annotated[
        Duration,
        _doc("Time after which a tool call is stopped; with `none`, it is only reported."),
    ] = Duration("inf")
    idle_call: Annotated[
        Duration,
        _doc(
            "Time after which a tool call with idle processes counts as hung; `none` means never."
        ),
    ] = Duration(3600)

    @property
    def interval(self) -> float:
        """Return the seconds between two checks, within fixed bounds."""
        return min(max(self.every, screens.WATCH_LEAST_SECONDS), screens.WATCH_MOST_SECONDS)


class LimitSettings(msgspec.Struct, frozen=True):
    wait: Annotated[
        bool, _doc("Whether a run waits until a usage limit ends; if not, it stops.")
    ] = True


class StallSettings(msgspec.Struct, frozen=True):
    identical: Annotated[
        bool, _doc("Whether an identical Next Action is a stall, even if the cycle did other work.")
    ] = False
    tell: Annotated[
        bool,
        _doc("Whether the next cycle is told that two cycles in a row asked for the same work."),
    ] = True
    pause: Annotated[
        bool, _doc("Whether a loop that makes no progress or waits for a person is paused.")
    ] = True


class QuestionSettings(msgspec.Struct, frozen=True):
    deadline: Annotated[
        Duration,
        _doc("Time to answer a question, after which its default applies; `none` means no limit."),
    ] = Duration(604_800)


class ProgressSettings(msgspec.Struct, frozen=True):
    """Limits on work without progress; `rekindle run --budget none` disables these pauses."""

    paced_after: Annotated[
        int,
        _doc(
            "Number of launches in a row without progress after which each further launch waits "
            f"{PROBE_INTERVAL}.",
            "count",
            ge=1,
            le=45,
        ),
    ] = 10
    max_launches: Annotated[
        int,
        _doc(
            "Number of launches in a row without progress after which a run pauses.",
            "count",
            ge=1,
            le=45,
        ),
    ] = 40
    max_hours: Annotated[
        float,
        _doc("Number of hours of work without progress after which a run pauses.", "hours", gt=0),
    ] = 12.0
    max_usd: Annotated[
        float,
        _doc(
            "Spending without progress after which a run pauses, if the CLI shows that the account"
            " is billed per token.",
            "dollars",
            gt=0,
        ),
    ] = 20.0


class LoopSettings(msgspec.Struct, frozen=True):
    stale_after_days: Annotated[
        int, _doc("Age at which an open loop is marked as stale.", "days", ge=1)
    ] = 14
    keep_resolved_days: Annotated[
        int,
        _doc(
            "Number of days that a resolved loop stays in state.json; the log keeps it.",
            "days",
            ge=1,
        ),
    ] = 7


class BriefSettings(msgspec.Struct, frozen=True):
    at: Annotated[
        str,
        _doc(
            "Time of day at which the brief is written; `never` means only on request.",
            pattern=r"^(([01]\d|2[0-3]):[0-5]\d|never)$",
        ),
    ] = "06:00"
    zone: Annotated[str, _doc("Time zone of `at`; by default, the time zone of the machine.")] = ""
    on_session_end: Annotated[
        bool, _doc("Whether a brief is also written after every session.")
    ] = False
    max_tokens: Annotated[int, _doc("Maximum length of a brief.", "tokens", ge=100)] = 600
    max_usd: Annotated[
        float,
        _doc(
            "Maximum cost of a whole brief, if the CLI reports cost; the oldest turns are left "
            "out.",
            "dollars",
            gt=0,
        ),
    ] = 5.0


class ArchiveSettings(msgspec.Struct, frozen=True):
    transcripts: Annotated[
        bool, _doc("Whether Rekindle keeps transcripts, which the CLIs delete after a month.")
    ] = True


class RuntimeSettings(msgspec.Struct, frozen=True):
    relay: RelaySettings = RelaySettings()
    restart: RestartSettings = RestartSettings()
    watch: WatchSettings = WatchSettings()
    limits: LimitSettings = LimitSettings()
    stall: StallSettings = StallSettings()
    questions: QuestionSettings = QuestionSettings()
    progress: ProgressSettings = ProgressSettings()
    loops: LoopSettings = LoopSettings()
    brief: BriefSettings = BriefSettings()
    archive: ArchiveSettings = ArchiveSettings()


class AgentDefaults(msgspec.Struct, frozen=True):
    """Defaults for keys that are missing from an agent's entry in the manifest."""

    prompt: Annotated[str, _doc("File with the task of every cycle.")] = "PROMPT.md"
    dir: Annotated[str, _doc("Working directory, relative to the manifest's folder.")] = "."
    mode: Annotated[
        Literal["loop", "stay"],
        _doc("`loop`: headless, cycle after cycle. `stay`: interactive, in your terminal."),
    ] = "loop"
    persona: Annotated[str, _doc("Persona that configures the harness.")] = "default"
    cycles: Annotated[
        int, _doc("Maximum number of cycles per run; 0 means no limit.", "count", ge=0)
    ] = 10
    until_claimed: Annotated[
        bool, _doc("Whether `until:` counts only after the agent has reported that it is done.")
    ] = False
    convergence: Annotated[
        bool, _doc("Whether the agent must show that it brainstorms, decides and ships.")
    ] = False
    keep: Annotated[
        list[str],
        _doc("Patterns of command lines; a matching background process outlives its session."),
    ] = []
    may_control: Annotated[
        bool,
        _doc("Whether commands such as `run`, `stop` and `restart` work if the agent calls them."),
    ] = False


class TlsSettings(msgspec.Struct, frozen=True):
    """Files for a TLS connection, relative to the manifest's folder; empty if not set."""

    ca: Annotated[str, _doc("File with the certificate of the certificate authority.")] = ""
    cert: Annotated[str, _doc("File with the certificate of this host.")] = ""
    key: Annotated[str, _doc("File with the private key of this host's certificate.")] = ""
    server_name: Annotated[str, _doc("Name in the engine's certificate.")] = ""


class CodecSettings(msgspec.Struct, frozen=True):
    """Keys that encrypt documents before they are sent to the engine."""

    keys: Annotated[
        list[str],
        _doc("Variables with a key each, such as `[$NEW, $OLD]`; the first one encrypts."),
    ] = []
    key_files: Annotated[
        list[str],
        _doc("Files with a key each, instead of `keys`; the first one encrypts."),
    ] = []
    strict: Annotated[
        bool,
        _doc("Whether plain text is refused if a key is set; `false` is for adopting encryption."),
    ] = True


class FleetSettings(msgspec.Struct, frozen=True):
    """A fleet's engine and the connection to it."""

    address: Annotated[str, _doc("Host and port of the engine.")] = "127.0.0.1:7233"
    namespace: Annotated[str, _doc("Namespace in the engine.", min_length=1)] = "default"
    pool: Annotated[str, _doc("Pool of hosts that may run these agents.")] = "default"
    heartbeat_timeout: Annotated[
        Duration, _doc("Time without a heartbeat after which a host loses its agents.")
    ] = Duration(75)
    tls: Annotated[
        TlsSettings | bool | None,
        _doc(
            "`true` for the system's root certificates, a mapping of files, or `false` for plain"
            " text. Required if the engine is on another host."
        ),
    ] = None
    api_key: Annotated[str, _doc("Variable with the engine's API key, such as `$ENGINE_KEY`.")] = ""
    codec: CodecSettings = CodecSettings()


def find_cycle_limit(agent: AgentEntry) -> int:
    """Return the maximum number of cycles in an agent's run; 0 for no limit."""
    return AgentDefaults().cycles if agent.cycles is None else agent.cycles


class Settings(msgspec.Struct, frozen=True):
    runtime: RuntimeSettings = RuntimeSettings()
    agent: AgentDefaults = AgentDefaults()
    fleet: FleetSettings | None = None
    """Settings of the fleet; None if agents are stored in files on this host."""


def resolve_settings(marked: MarkedData | None) -> Settings:
    """Return the effective settings: those in the manifest, and the defaults for all others."""
    if marked is None:
        return Settings()
    fleet = validation.validate_data(marked, FleetSettings, ("fleet",))
    return Settings(
        runtime=validation.validate_data(marked, RuntimeSettings, ("runtime",)),
        fleet=fleet if _has_keys(marked, "fleet") else None,
    )


def _has_keys(marked: MarkedData, section: str) -> bool:
    """Return whether any key in a section has a value; if not, the section counts as missing."""
    keys = marked.data.get(section) if isinstance(marked.data, dict) else None
    return isinstance(keys, dict) and any(value is not None for value in keys.values())
