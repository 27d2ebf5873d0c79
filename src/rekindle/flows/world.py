"""What a supervisor is given: the agent it keeps, the world around both, and who it tells."""

from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from rekindle.documents import launch
from rekindle.documents.event import WorkSigns
from rekindle.documents.launch import Exit, Seen
from rekindle.documents.manifest import Budget, Persona, Price
from rekindle.policy.settings import FOLD_EVERY_SECONDS, Settings
from rekindle.ports import Harness, Processes
from rekindle.stores.files import FileStore


class Agent(msgspec.Struct, frozen=True):
    """What an agent is started from."""

    name: str
    harness: Harness
    folder: str
    """Where it works."""
    task: str
    rules: str
    persona: Persona
    environment: Mapping[str, str]
    hook: tuple[str, ...]
    """The hook program."""
    scratch: str = ""
    """The folder, outside the workspace, of the files that a launch passes to its CLI."""
    protected: tuple[str, ...] = ()
    """Files and folders that decide what runs outside a sandbox: the agent must not write them."""
    path: str = ""
    """The PATH for its commands, if its CLI has another one; empty: the same."""
    program: tuple[str, ...] = ()
    """What is started in the place of the CLI's own program."""
    instructions: str = ""
    """The text of the persona's system prompt."""
    budget: Budget | None = None
    prices: Mapping[str, Price] = {}
    stays: bool = False
    """A person sits before it: the terminal is the agent's."""
    cycles: int = 1
    """How many of them a run has; 0: any number."""
    until_claimed: bool = False
    """The command of `until:` runs only after the agent has reported that it is done."""
    converges: bool = False
    """It is held to options, a choice and work, one after the other."""
    threshold: int | None = None
    """How full its window may be, in percent, before a fresh session goes on; None: never mind."""
    keep: tuple[str, ...] = ()
    """Patterns of command lines: what matches one outlives the launch that started it."""
    may_control: bool = False
    """Commands that it calls may change which agents of its project run."""
    drafts: bool = False
    """It is asked for the relay of the next cycle."""
    persona_name: str = "default"
    project: str = ""
    """The folder of the manifest."""
    relay: str = ""
    """A relay file of its own, below the folder of the manifest; empty: there is none."""


class Launching(msgspec.Struct, frozen=True):
    """About to start a process."""

    cycle: int
    session: str
    resumes: bool
    recovery: bool
    why: str = ""


class CallRefused(msgspec.Struct, frozen=True):
    """The CLI refused a tool call because nothing permits it."""

    call: str
    """The tool and what it was given, in a line."""
    command: str = ""
    """The command that answers the question about it; empty: there is none."""
    is_repeated: bool = False
    """It was reported while it happened; now there is a question about it."""


class Fell(msgspec.Struct, frozen=True):
    """A process has ended."""

    exit: Exit
    swept: int


class HandedOff(msgspec.Struct, frozen=True):
    """A session has handed its work to the next one, inside a cycle."""

    how: str
    """Who wrote the checkpoint: headless, a model; mechanical, none."""
    words: str = ""
    """Why no model did."""


class Handed(msgspec.Struct, frozen=True):
    """A cycle has handed its work on."""

    cycle: int
    how: str
    verdict: str
    words: str
    refused: str = ""
    """Why `until:` or the review does not let it end the run; empty: neither was asked, or both
    passed."""


class Trouble(msgspec.Struct, frozen=True):
    """Something of ours went wrong, and the agent works on."""

    words: str


class Noticed(msgspec.Struct, frozen=True):
    """A process shows nothing, and is left alone or ended for it."""

    words: str
    ended: bool


class SettingsChanged(msgspec.Struct, frozen=True):
    """The operator's command accepts settings that differ from the last accepted ones."""

    changes: list[str]


class Waits(msgspec.Struct, frozen=True):
    """Nothing is started before an instant."""

    why: str
    until: datetime


class InSafeMode(msgspec.Struct, frozen=True):
    """Alive, running nothing, waiting for a person."""

    why: str
    words: str
    command: str = ""
    """The command that answers its question; empty: it has none."""
    takes_enter: bool = False
    """Enter at the terminal answers it too."""


Report = (
    Launching
    | Seen
    | CallRefused
    | Fell
    | HandedOff
    | Handed
    | Trouble
    | Noticed
    | SettingsChanged
    | Waits
    | InSafeMode
)


REPORTS: Mapping[type[Report], str] = {
    Launching: "launch.started",
    Fell: "launch.ended",
    HandedOff: "handoff.resumed",
    Handed: "cycle.ended",
    Noticed: "hang.noticed",
    Waits: "wait.started",
    InSafeMode: "safe_mode.entered",
    SettingsChanged: "settings.changed",
    CallRefused: "call.refused",
    Trouble: "trouble",
    launch.Opened: "cli.opened",
    launch.Said: "cli.said",
    launch.Called: "cli.called",
    launch.Returned: "cli.returned",
    launch.Used: "cli.used",
    launch.Retried: "cli.retried",
    launch.Warned: "cli.warned",
    launch.Refused: "cli.refused",
    launch.RefusedCall: "cli.refused_call",
    launch.Compacted: "cli.compacted",
    launch.Finished: "cli.finished",
}
"""What a report is called in the output of a host; the event's kind, if the log has it too."""


class World(msgspec.Struct, frozen=True):
    """What a supervisor has around it."""

    store: FileStore
    processes: Processes
    settings: Settings
    clock: Callable[[], datetime]
    elapsed: Callable[[], float]
    """Seconds on a clock that nobody sets, and that stands still while the host sleeps."""
    rest: Callable[[float], None]
    """Sleep, for so many seconds or less."""
    interrupted: Callable[[], int]
    """How often somebody has asked us to stop."""
    by_hand: Callable[[], bool]
    """Whether it was a person at the terminal who asked."""
    goes_on: Callable[[], bool]
    """Whether a person at the terminal wants it to go on: Enter was pressed."""
    tell: Callable[[Report], None]
    notify: Callable[[str, str], None]
    """Tell a person who is not there: of what, and in which words."""
    stops: Callable[[], bool] = bool
    """Whether we are to stop, for whoever waits for a program that was asked something."""
    fold_every: float = FOLD_EVERY_SECONDS
    """How often what hooks have reported is folded, at most; in seconds."""
    windows: Callable[[], Mapping[str, int]] = dict
    """How large its CLI says that its models' windows are."""
    work: Callable[[], str] = str
    """A fingerprint of what git knows of the agent's folder; empty: nobody knows."""
    signs: Callable[[str, float], WorkSigns | None] = lambda head, since: None  # noqa: ARG005 - unknown
    """Work in the agent's folder after a commit and a moment, in seconds since 1970."""
    head: Callable[[], str] = str
    """The commit that the agent's folder stands at; empty: nobody knows."""
    unaccepted: Callable[[], str] = str
    """Why nothing may be started: the settings are not those that the operator accepted."""
    settings_stamp: Callable[[], object] = object
    """A value that changes if `unaccepted` may give another answer; cheap to get."""
    renewed: Callable[[], Agent | None] = lambda: None
    """The agent as a person has set it up by now; None: as before."""
