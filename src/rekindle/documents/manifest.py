"""The manifest, rekindle.yaml: the agents and how to run them.

Missing keys are None. Their defaults, and the keys of `runtime:` and `fleet:`, are defined in
policy/settings.
"""

from typing import Annotated, Any, Literal

import msgspec

from rekindle.documents.command_line import split_line
from rekindle.documents.manifest_keys import TRIGGER_PATTERN, Budget, CommandLine, Handover
from rekindle.documents.manifest_pipelines import (
    Pipeline,
    list_commands,
    list_steps,
    refuse_invalid_names,
    refuse_misplaced_keys,
    to_mapping,
)
from rekindle.documents.manifest_quota import PriorityKey, QuotaKey
from rekindle.documents.manifest_routes import (
    AccountEntry,
    HarnessEntry,
    fill_items,
    find_entry,
    name_harness_lists,
    split_harness_lists,
)
from rekindle.documents.manifest_sandbox import SandboxKey
from rekindle.documents.manifest_schedules import ScheduleKey
from rekindle.documents.wave_keys import translate_wave_keys
from rekindle.errors import ManifestError
from rekindle.formats import (
    validation,
    yaml_lines,
)
from rekindle.formats.identifiers import AGENT_NAME
from rekindle.formats.json_codec import refuse_newer_schema
from rekindle.formats.validation import describe_key as _doc
from rekindle.formats.yaml_lines import (
    KeyPath,
    MarkedData,
)

MANIFEST_FILE = "rekindle.yaml"
SCHEMA = 1
SCHEMA_FILE = "rekindle.schema.json"
"""JSON Schema file that `init` writes to `.rekindle`, where editors find it even offline."""
DEFAULT_PROMPT = """\
# Task

Describe here, in a few sentences, what the agent should do in every cycle, and how it can tell
that the work is done.
"""
"""Prompt file that `init` writes if the project has none."""
DEFAULT_SUMMARIZER = """\
# Summarizer

You hand work over between two people who never meet. Your reader has nothing else: no memory of
the session, only the files and what you say.

- Say what is done, what is half done and what is not, and never mix them.
- What was tried and failed is worth as much as what worked: say it, with the error.
- Prefer names of files, commands and numbers to adjectives.
- Leave out feelings, what is obvious from the code, and details that the reader will not need.
"""
"""System prompt that `init` writes for the summarizer. Each request specifies the format of its
answer.
"""

_COMMAND_LINES = {"agents": ("until", "command", "prepare"), "personas": ("command",)}


class ModelPrice(msgspec.Struct, frozen=True):
    """The price of a model, in dollars per million tokens."""

    input: Annotated[float, _doc("Price per million input tokens.", "dollars", ge=0)]
    output: Annotated[float, _doc("Price per million output tokens.", "dollars", ge=0)]
    cached: (
        Annotated[
            float,
            _doc(
                "Price per million input tokens read from the cache. Default: like other input.",
                "dollars",
                ge=0,
            ),
        ]
        | None
    ) = None
    cache_write: (
        Annotated[
            float,
            _doc(
                "Price per million input tokens written to the cache. Default: like other input.",
                "dollars",
                ge=0,
            ),
        ]
        | None
    ) = None


class AgentEntry(msgspec.Struct, frozen=True):
    harness: Annotated[
        str,
        _doc(
            "Agent CLI: claude-code, codex, gemini, command, or a plugin's name. A list names CLIs "
            "that continue the work, in order, while those before them cannot."
        ),
    ]
    prompt: str | None = None
    dir: str | None = None
    workspace: (
        Annotated[
            Literal["here", "clone", "worktree"],
            _doc(
                "Where the agent works: `here` in your checkout (the default), or in its own "
                "`clone` or `worktree` of the repository."
            ),
        ]
        | None
    ) = None
    copy: (
        Annotated[
            list[str],
            _doc(
                "Ignored files and folders to copy into a new clone or work tree, such as `.env`."
            ),
        ]
        | None
    ) = None
    prepare: Annotated[
        CommandLine | None,
        _doc("Command that runs once in a new clone or work tree, such as `npm ci`."),
    ] = None
    rules: (
        Annotated[str, _doc("File with rules that every session receives word for word.")] | None
    ) = None
    relay: (
        Annotated[
            str,
            _doc("Project file that the agent uses as its relay, such as memories/consensus.md."),
        ]
        | None
    ) = None
    mode: Literal["loop", "stay"] | None = None
    persona: str | None = None
    cycles: Annotated[int, msgspec.Meta(ge=0)] | None = None
    until: Annotated[
        CommandLine | None,
        _doc("Command that exits with 0 once the work is done, which ends the run."),
    ] = None
    until_claimed: bool | None = None
    """Whether `until:` counts only after the agent reports that the work is done."""
    review: (
        Annotated[
            str,
            _doc("Persona from `personas` that must confirm that the work is done."),
        ]
        | None
    ) = None
    budget: Annotated[
        Budget | None, _doc("Limits for each run. A run ends when it reaches one of them.")
    ] = None
    convergence: bool | None = None
    handover: Annotated[
        Handover | None, _doc("How to hand the work over before the context window is full.")
    ] = None
    command: Annotated[
        CommandLine | None,
        _doc("Program that `harness: command` runs. With any other harness, it replaces the CLI."),
    ] = None
    env: (
        Annotated[
            dict[str, str],
            _doc(
                "Environment variables for the agent. Use `$NAME` to pass through a variable from "
                "your environment."
            ),
        ]
        | None
    ) = None
    keep: list[str] | None = None
    """Command-line patterns. Matching background processes keep running after the launch ends."""
    may_control: bool | None = None
    """Whether the agent may run commands that start, stop or answer agents."""
    sandbox: SandboxKey = None
    every: ScheduleKey = None
    accounts: (
        Annotated[
            list[str], _doc("Accounts from `accounts:`, in the order in which the agent uses them.")
        ]
        | None
    ) = None
    harnesses: list[HarnessEntry] | None = None
    """The list in `harness:`, if it is one. `harness` then is the first name in it."""
    priority: PriorityKey = None


class Permissions(msgspec.Struct, frozen=True):
    allowed_tools: (
        Annotated[
            list[str],
            _doc(
                "Tools that the agent may use. All others are denied. By default, the CLI decides."
            ),
        ]
        | None
    ) = None
    deny: Annotated[list[str], _doc("Tools that the agent may never use.")] | None = None
    ask: (
        Annotated[
            list[str],
            _doc(
                "Tools and commands that wait for your approval, such as `Bash(git push*)`. "
                "Without an answer, the call is refused."
            ),
        ]
        | None
    ) = None


class Persona(msgspec.Struct, frozen=True):
    adapter: (
        Annotated[str, _doc("Agent CLI for this persona. Defaults to the agent's own CLI.")] | None
    ) = None
    command: Annotated[
        CommandLine | None,
        _doc("Program that `adapter: command` runs. With any other adapter, it replaces the CLI."),
    ] = None
    """Program that `adapter: command` runs. With any other adapter, it replaces the CLI's own
    program.
    """
    system_prompt_file: Annotated[str, _doc("File with the system prompt.")] | None = None
    model: (
        Annotated[
            str,
            _doc(
                "Model name, as the CLI spells it.",
                pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]*$",
            ),
        ]
        | None
    ) = None
    temperature: (
        Annotated[float, _doc("Model temperature, if the CLI has an option for it.", "count")]
        | None
    ) = None
    permissions: Annotated[Permissions | None, _doc("Tools that the agent may use.")] = None
    sandbox: SandboxKey = None

    @property
    def writes(self) -> bool:
        """Return whether the persona may write files, including the relay draft.

        Without `allowed_tools`, it may, unless both Edit and Write are denied. A shell counts only
        if it may run any command.
        """
        allowed = self.permissions.allowed_tools if self.permissions else None
        denied = (self.permissions.deny if self.permissions else None) or ()
        if allowed is None:
            return not {"Edit", "Write"} <= set(denied)
        named = {rule.partition("(")[0] for rule in allowed} & {"Write", "Edit", "write_file"}
        return bool(named) or not {"Bash", "run_shell_command"}.isdisjoint(allowed)


class RedactEntry(msgspec.Struct, frozen=True):
    allow: Annotated[
        list[str], _doc("Strings that look like secrets but should not be redacted.")
    ] = []


class Manifest(msgspec.Struct, frozen=True):
    version: Annotated[int, _doc("Manifest format version.", "count", ge=1)]
    agents: dict[str, AgentEntry] = {}
    personas: dict[str, Persona] = {}
    runtime: dict[str, Any] = {}
    redact: RedactEntry = RedactEntry()
    prices: dict[str, ModelPrice] = {}
    accounts: dict[str, AccountEntry] = {}
    quota: QuotaKey = None
    notify: Annotated[
        list[str],
        _doc(
            "Addresses to notify, such as `ntfys://$TOPIC`. Use environment variables for secrets."
        ),
    ] = []
    fleet: dict[str, Any] = {}
    pipelines: dict[str, Pipeline] = {}


def read_manifest(text: str, file: str = MANIFEST_FILE) -> tuple[Manifest, MarkedData]:
    """Parse a manifest. Also return its data with line numbers, for `runtime:` and `fleet:`."""
    marked = yaml_lines.parse(text, file)
    if marked.data is None:
        raise ManifestError("is empty", file=file, hint="run `rekindle init` to write one")
    if not isinstance(marked.data, dict):
        raise ManifestError("does not consist of `key: value` lines", file=file, line=1)
    if "version" not in marked.data:
        hint = f"add `version: {SCHEMA}` as the first line"
        raise ManifestError("the file has no 'version'", file=file, hint=hint)
    # Validation reports a version of another type below, with its line.
    if isinstance(marked.data.get("version"), int):
        refuse_newer_schema(int(marked.data["version"]), file, SCHEMA)
    translate_wave_keys(marked)
    refuse_misplaced_keys(marked)
    _refuse_unreadable_triggers(marked, file)
    _split_command_lines(marked, file, split_harness_lists(marked))
    _refuse_keys_of_personas(marked, file)
    with name_harness_lists():
        parsed = validation.validate_data(marked, Manifest)
    agents = {name: _fill_harnesses(entry) for name, entry in parsed.agents.items()}
    parsed = msgspec.structs.replace(parsed, agents=agents)
    for name in parsed.agents:
        if not AGENT_NAME.match(name):
            raise ManifestError(
                f"{name!r} is not a valid agent name",
                file=file,
                line=marked.line(("agents", name)),
                hint="use up to 63 of a-z, 0-9, - and _, starting with a letter or a digit",
            )
    refuse_invalid_names(parsed.pipelines, marked)
    return parsed, marked


def _fill_harnesses(entry: AgentEntry) -> AgentEntry:
    """Return the entry with the keys of the first CLI in its list, if it has one."""
    if not entry.harnesses:
        return entry
    items = fill_items(entry.harnesses, entry.persona, entry.command)
    persona, command = items[0].persona, items[0].command
    return msgspec.structs.replace(entry, persona=persona, command=command, harnesses=items)


def _refuse_unreadable_triggers(marked: MarkedData, file: str) -> None:
    """Refuse an invalid trigger, because it would silently never fire.

    This checks the raw data, so that a value of the wrong type gets its own message.
    """
    data: dict[str, Any] = marked.data
    places: list[tuple[KeyPath, Any]] = [
        (("agents", name), agent) for name, agent in to_mapping(data.get("agents")).items()
    ]
    places += list_steps(data)
    for path, entry in places:
        compaction = to_mapping(to_mapping(entry).get("handover")).get("compaction")
        trigger = to_mapping(compaction).get("trigger")
        place = (*path, "handover", "compaction")
        if isinstance(compaction, str | int) and not isinstance(compaction, bool):
            raise ManifestError(
                f"{compaction!r} is not a valid value for `compaction`",
                file=file,
                line=marked.line(place),
                hint='write `off`, without quotes, or `{trigger: "token_limit_80%"}`',
            )
        if trigger is not None and not TRIGGER_PATTERN.fullmatch(str(trigger)):
            raise ManifestError(
                f"{trigger!r} is not a trigger",
                file=file,
                line=marked.line((*place, "trigger")),
                hint='write "token_limit_80%", with a number from 1 to 100; to disable handoffs, '
                "write `compaction: off`",
            )


def _split_command_lines(marked: MarkedData, file: str, listed: list[KeyPath]) -> None:
    """Split each one-line command into words."""
    places: list[tuple[KeyPath, dict[str, Any]]] = [
        ((section, name, key), to_mapping(entry))
        for section, keys in _COMMAND_LINES.items()
        for name, entry in to_mapping(marked.data.get(section)).items()
        for key in keys
    ]
    places += [((*path, "command"), find_entry(marked.data, path)) for path in listed]
    for path, entry in places + list_commands(marked.data):
        key = str(path[-1])
        line = entry.get(key)
        if isinstance(line, str):
            marked.command_lines[path] = line
            entry[key] = split_line(line, key, file=file, number=marked.line(path))


def _refuse_keys_of_personas(marked: MarkedData, file: str) -> None:
    """Refuse a persona key in an agent's entry, with a hint about where it belongs."""
    agent_keys = validation.list_fields(AgentEntry)
    for name, entry in to_mapping(marked.data.get("agents")).items():
        for key in to_mapping(entry):
            if key not in agent_keys and key in validation.list_fields(Persona):
                raise ManifestError(
                    f"unknown key {validation.join_path(('agents', name, key))!r}",
                    file=file,
                    line=marked.line(("agents", name, key)),
                    hint=f"`{key}:` belongs to a persona: write it under `personas: NAME:`,"
                    " and `persona: NAME` here",
                )


def parse(text: str, file: str = MANIFEST_FILE) -> Manifest:
    return read_manifest(text, file)[0]
