"""All settings in rekindle.yaml, each declared once with its default, bounds, unit and meaning.

A setting is a field in one of these structs; the field's path is its key in the manifest. A
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
from rekindle.policy.settings.fleet_settings import *  # noqa: F403 - exported here too
from rekindle.policy.settings.fleet_settings import FleetSettings
from rekindle.policy.settings.metrics_settings import MetricsSettings
from rekindle.thresholds import screens
from rekindle.thresholds.bridge_limits import *  # noqa: F403 - every name there is a threshold
from rekindle.thresholds.build_limits import *  # noqa: F403
from rekindle.thresholds.comparison import *  # noqa: F403
from rekindle.thresholds.control_limits import *  # noqa: F403
from rekindle.thresholds.credential_limits import *  # noqa: F403
from rekindle.thresholds.fleet_limits import *  # noqa: F403
from rekindle.thresholds.hook_limits import *  # noqa: F403
from rekindle.thresholds.hook_limits import GATE_LEAST_SECONDS, GATE_MOST_SECONDS
from rekindle.thresholds.host_limits import *  # noqa: F403
from rekindle.thresholds.keep_limits import *  # noqa: F403
from rekindle.thresholds.login_limits import *  # noqa: F403
from rekindle.thresholds.message_limits import *  # noqa: F403
from rekindle.thresholds.phone_limits import *  # noqa: F403
from rekindle.thresholds.pipeline_limits import *  # noqa: F403
from rekindle.thresholds.proposal_limits import *  # noqa: F403
from rekindle.thresholds.quota_limits import *  # noqa: F403
from rekindle.thresholds.repetition_limits import *  # noqa: F403
from rekindle.thresholds.route_limits import *  # noqa: F403
from rekindle.thresholds.sandbox_limits import *  # noqa: F403
from rekindle.thresholds.schedule_limits import *  # noqa: F403
from rekindle.thresholds.screens import *  # noqa: F403
from rekindle.thresholds.storage import *  # noqa: F403
from rekindle.thresholds.supervision import *  # noqa: F403
from rekindle.thresholds.supervision import (
    LIMIT_PROBE_SECONDS,
    MAX_LIMIT_PROBE_SECONDS,
    PROBED_CRASHES,
)
from rekindle.thresholds.team_limits import *  # noqa: F403
from rekindle.thresholds.texts import *  # noqa: F403
from rekindle.thresholds.web_limits import *  # noqa: F403

SECONDS_AN_HOUR = 3600.0
PROBE_INTERVAL = f"{LIMIT_PROBE_SECONDS / 60:g} to {MAX_LIMIT_PROBE_SECONDS / 60:g} minutes"
"""Interval between two probes, as shown to the user."""


class RelaySettings(msgspec.Struct, frozen=True):
    token_threshold_percent: Annotated[
        int, _doc("Context-window usage at which a handoff starts.", "percent", ge=1, le=100)
    ] = 80
    strategy: Annotated[
        Literal["summarize_to_checkpoint"],
        _doc("How a handoff passes the work on to the next session."),
    ] = "summarize_to_checkpoint"
    max_relay_tokens: Annotated[
        int,
        _doc(
            "Maximum relay size. Every session reads the relay, and a larger one is trimmed.",
            "tokens",
            ge=200,
        ),
    ] = 2_000
    summarizer: Annotated[
        Literal["headless", "mechanical"],
        _doc(
            "`headless`: the CLI writes the summary without tools. `mechanical`: no model is used."
        ),
    ] = "headless"
    summarizer_max_input_tokens: Annotated[
        int,
        _doc(
            "Maximum summarizer input. Rekindle refuses a handoff that needs more.",
            "tokens",
            ge=1_000,
        ),
    ] = 150_000
    summarizer_max_usd: Annotated[
        float,
        _doc("Maximum cost of one summarizer call, if the CLI supports a limit.", "dollars", gt=0),
    ] = 2.0


class RestartSettings(msgspec.Struct, frozen=True):
    max_crashes: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        _doc(
            "Number of crashes within `window` that puts the agent into safe mode. If not set, "
            f"then after {PROBED_CRASHES} launches in a row that fail immediately, Rekindle "
            f"retries every {PROBE_INTERVAL} instead.",
            "count",
        ),
    ] = None
    window: Annotated[Duration, _doc("Period over which crashes are counted.")] = Duration(900)
    cooldown: Annotated[
        Duration, _doc("Pause after the first crash. It doubles with every further crash.")
    ] = Duration(10)
    max_cooldown: Annotated[Duration, _doc("Maximum pause after a crash.")] = Duration(300)
    healthy_after: Annotated[
        Duration, _doc("Time without a crash after which the crash count and the pause are reset.")
    ] = Duration(600)


class WatchSettings(msgspec.Struct, frozen=True):
    every: Annotated[Duration, _doc("Interval between watchdog checks, from 1s to 5m.")] = Duration(
        15
    )
    silence: Annotated[
        Duration,
        _doc(
            "Time without hook, stream or transcript activity after which a session is considered "
            "hung."
        ),
    ] = Duration(600)
    tool_timeout: Annotated[
        Duration,
        _doc(
            "Time after which a tool call is stopped. With `none`, a long call is reported "
            "but not stopped."
        ),
    ] = Duration("inf")
    idle_call: Annotated[
        Duration,
        _doc(
            "Time after which a tool call with idle processes is considered hung, or `none` for "
            "never."
        ),
    ] = Duration(3600)

    @property
    def interval(self) -> float:
        """Return the seconds between two checks, within fixed bounds."""
        return min(max(self.every, screens.WATCH_LEAST_SECONDS), screens.WATCH_MOST_SECONDS)


class LimitSettings(msgspec.Struct, frozen=True):
    wait: Annotated[
        bool,
        _doc("Whether a run waits for a usage limit to reset. If `false`, the run stops instead."),
    ] = True


class StallSettings(msgspec.Struct, frozen=True):
    identical: Annotated[
        bool,
        _doc(
            "Whether repeating the same Next Action is a stall, even if the cycle did other work."
        ),
    ] = False
    tell: Annotated[
        bool,
        _doc("Whether to warn the next cycle if two cycles in a row asked for the same work."),
    ] = True
    pause: Annotated[
        bool, _doc("Whether to pause a loop that makes no progress or waits for a person.")
    ] = True
    ask: Annotated[
        bool,
        _doc(
            "Whether to ask the summarizer for a second opinion if the relay and the changed files "
            "disagree about a stall."
        ),
    ] = False


class QuestionSettings(msgspec.Struct, frozen=True):
    deadline: Annotated[
        Duration,
        _doc("Time to answer a question before its default applies, or `none` for no limit."),
    ] = Duration(604_800)
    wait: Annotated[
        Duration,
        _doc(
            "How long a tool call that matches `ask:` waits for your answer, from 5s to 10m. After "
            "that, it is refused."
        ),
    ] = Duration(300)

    @property
    def gate_seconds(self) -> float:
        """Return how long a call waits for an answer, within the range that the CLIs support."""
        return min(max(float(self.wait), GATE_LEAST_SECONDS), GATE_MOST_SECONDS)


class ProgressSettings(msgspec.Struct, frozen=True):
    """Limits on work without progress; `rekindle run --budget none` disables these pauses."""

    paced_after: Annotated[
        int,
        _doc(
            "Number of launches in a row without progress before Rekindle starts to wait between "
            f"launches, for {PROBE_INTERVAL}.",
            "count",
            ge=1,
            le=45,
        ),
    ] = 10
    max_launches: Annotated[
        int,
        _doc(
            "Number of launches in a row without progress before a run pauses.",
            "count",
            ge=1,
            le=45,
        ),
    ] = 40
    max_hours: Annotated[
        float,
        _doc("Hours of work without progress before a run pauses.", "hours", gt=0),
    ] = 12.0
    max_usd: Annotated[
        float,
        _doc(
            "Dollars spent without progress before a run pauses. Applies if the CLI shows that "
            "the account is billed per token.",
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
            "Number of days that a resolved loop stays in state.json. It always remains in the "
            "log.",
            "days",
            ge=1,
        ),
    ] = 7


class BriefSettings(msgspec.Struct, frozen=True):
    at: Annotated[
        str,
        _doc(
            "Time of day at which to write the brief, or `never` to write it only on request.",
            pattern=r"^(([01]\d|2[0-3]):[0-5]\d|never)$",
        ),
    ] = "06:00"
    zone: Annotated[str, _doc("Time zone for `at`. Defaults to the machine's time zone.")] = ""
    on_session_end: Annotated[bool, _doc("Whether to also write a brief after every session.")] = (
        False
    )
    max_tokens: Annotated[int, _doc("Maximum brief length.", "tokens", ge=100)] = 600
    max_usd: Annotated[
        float,
        _doc(
            "Maximum cost of a brief, if the CLI reports costs. The oldest turns are left out to "
            "stay within this limit.",
            "dollars",
            gt=0,
        ),
    ] = 5.0


class ArchiveSettings(msgspec.Struct, frozen=True):
    transcripts: Annotated[
        bool,
        _doc(
            "Whether Rekindle keeps a copy of each transcript. The CLIs delete theirs after a "
            "month."
        ),
    ] = True


class SnapshotSettings(msgspec.Struct, frozen=True):
    take: Annotated[
        bool,
        _doc(
            "Whether Rekindle takes snapshots of the work tree in git. `rekindle rewind` restores "
            "them."
        ),
    ] = True


class AccountSettings(msgspec.Struct, frozen=True):
    switch: Annotated[
        bool,
        _doc(
            "Whether an agent continues with the next account in its `accounts:` while a usage "
            "limit, an outage or an expired login blocks the one before it."
        ),
    ] = False


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
    snapshots: SnapshotSettings = SnapshotSettings()
    metrics: MetricsSettings = MetricsSettings()
    accounts: AccountSettings = AccountSettings()


class AgentDefaults(msgspec.Struct, frozen=True):
    """Defaults for keys that are missing from an agent's entry in the manifest."""

    prompt: Annotated[str, _doc("File that describes the task. Every cycle receives it.")] = (
        "PROMPT.md"
    )
    dir: Annotated[str, _doc("Working directory, relative to the manifest's folder.")] = "."
    mode: Annotated[
        Literal["loop", "stay"],
        _doc("`loop`: headless, cycle after cycle. `stay`: interactive, in your terminal."),
    ] = "loop"
    persona: Annotated[str, _doc("Persona that configures the harness.")] = "default"
    cycles: Annotated[
        int, _doc("Maximum number of cycles per run, or 0 for no limit.", "count", ge=0)
    ] = 10
    until_claimed: Annotated[
        bool, _doc("Whether to run `until:` only after the agent reports that it is done.")
    ] = False
    convergence: Annotated[
        bool, _doc("Whether the agent must move from brainstorming to deciding to shipping.")
    ] = False
    keep: Annotated[
        list[str],
        _doc(
            "Command-line patterns. Matching background processes keep running after the session."
        ),
    ] = []
    may_control: Annotated[
        bool,
        _doc("Whether the agent may call commands such as `run`, `stop` and `restart`."),
    ] = False


def find_cycle_limit(agent: AgentEntry) -> int:
    """Return the maximum number of cycles in an agent's run; 0 for no limit."""
    return AgentDefaults().cycles if agent.cycles is None else agent.cycles


class Settings(msgspec.Struct, frozen=True):
    runtime: RuntimeSettings = RuntimeSettings()
    agent: AgentDefaults = AgentDefaults()
    fleet: FleetSettings | None = None
    """The fleet's settings; None if agents are stored in files on this host."""


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
