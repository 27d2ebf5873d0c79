"""The manifest, rekindle.yaml: the agents and how to run them.

A missing key is None here. Defaults are defined only in policy/settings, which also defines the
keys of `runtime:` and `fleet:`.
"""

import re
from typing import Annotated, Any, Literal

import msgspec

from rekindle.documents.command_line import split_line
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
"""JSON Schema that `init` writes to `.rekindle`, so that an editor finds it without a network."""
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
"""System prompt that `init` writes for the summarizer; each request specifies the format of its
answer.
"""

TRIGGER_PATTERN = re.compile(r"token_limit_([1-9]\d?|100)%", re.ASCII)
"""Pattern of a trigger: the fill of the window, in percent, at which a fresh session takes over."""
CommandLine = Annotated[list[str], msgspec.Meta(description="A list of words, or one line.")]
"""A program and its arguments; a line is split into words as in a shell, but no shell runs it."""
_COMMAND_LINES = {"agents": ("until", "command"), "personas": ("command",)}


class Budget(msgspec.Struct, frozen=True):
    """Caps on a run, which ends when it reaches the first one; spending counts across restarts."""

    usd: Annotated[float, _doc("Maximum cost of a run, in dollars.", "dollars", gt=0)] | None = None
    tokens: (
        Annotated[int, _doc("Maximum number of tokens that a run may use.", "tokens", gt=0)] | None
    ) = None
    hours: Annotated[float, _doc("Maximum duration of a run, in hours.", "hours", gt=0)] | None = (
        None
    )


class ModelPrice(msgspec.Struct, frozen=True):
    """The price of a model, in dollars per million tokens."""

    input: Annotated[float, _doc("Price of a million input tokens.", "dollars", ge=0)]
    output: Annotated[float, _doc("Price of a million output tokens.", "dollars", ge=0)]


class Compaction(msgspec.Struct, frozen=True):
    trigger: (
        Annotated[
            str,
            _doc(
                'Share of the window at which a handoff starts, such as "token_limit_80%".',
                pattern=f"^{TRIGGER_PATTERN.pattern}$",
            ),
        ]
        | None
    ) = None
    persona: (
        Annotated[str, _doc("Persona, under `personas`, that writes the checkpoint.")] | None
    ) = None


class Handover(msgspec.Struct, frozen=True):
    compaction: Annotated[
        Compaction | bool | None,
        _doc("When to hand over to a fresh session and which persona does it, or `off`."),
    ] = None


class AgentEntry(msgspec.Struct, frozen=True):
    harness: Annotated[
        str, _doc("Agent CLI: claude-code, codex, gemini, command or the name of a plugin.")
    ]
    prompt: str | None = None
    dir: str | None = None
    rules: (
        Annotated[str, _doc("File with rules that are repeated word for word in every session.")]
        | None
    ) = None
    relay: (
        Annotated[
            str,
            _doc("File of the project that the agent uses as its relay (memories/consensus.md)."),
        ]
        | None
    ) = None
    mode: Literal["loop", "stay"] | None = None
    persona: str | None = None
    cycles: Annotated[int, msgspec.Meta(ge=0)] | None = None
    until: Annotated[
        CommandLine | None,
        _doc("Command that exits with 0 once the work is done; the run then ends."),
    ] = None
    until_claimed: bool | None = None
    """Whether `until:` counts only after the agent has reported that the work is done."""
    review: (
        Annotated[
            str,
            _doc("Persona, under `personas`, that must confirm that the work is done."),
        ]
        | None
    ) = None
    budget: Annotated[
        Budget | None, _doc("Limits of a run, which ends when it reaches the first of them.")
    ] = None
    convergence: bool | None = None
    handover: Annotated[
        Handover | None, _doc("How the work is handed over before the context window is full.")
    ] = None
    command: Annotated[
        CommandLine | None,
        _doc("Program that `harness: command` runs; for other harnesses, it replaces the CLI."),
    ] = None
    env: (
        Annotated[
            dict[str, str],
            _doc("Environment variables for the agent; `$NAME` passes one of yours on."),
        ]
        | None
    ) = None
    keep: list[str] | None = None
    """Patterns of command lines; a background process with a matching one outlives its launch."""
    may_control: bool | None = None
    """Whether commands that the agent calls may start, stop or answer agents."""


class Permissions(msgspec.Struct, frozen=True):
    allowed_tools: (
        Annotated[
            list[str], _doc("The only tools that the agent may use; by default, the CLI decides.")
        ]
        | None
    ) = None
    deny: Annotated[list[str], _doc("Tools that the agent may never use.")] | None = None


class Persona(msgspec.Struct, frozen=True):
    adapter: (
        Annotated[str, _doc("Agent CLI of this persona, if it is not the agent's own.")] | None
    ) = None
    command: Annotated[
        CommandLine | None,
        _doc("Program that `adapter: command` runs; for other adapters, it replaces the CLI."),
    ] = None
    """Program to run with `adapter: command`; for other adapters, it replaces the CLI's own
    program.
    """
    system_prompt_file: Annotated[str, _doc("File with the text of the system prompt.")] | None = (
        None
    )
    model: (
        Annotated[
            str,
            _doc(
                "Name of the model, as the CLI knows it.",
                pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]*$",
            ),
        ]
        | None
    ) = None
    temperature: (
        Annotated[float, _doc("Temperature of the model, if the CLI has such an option.", "count")]
        | None
    ) = None
    permissions: Annotated[Permissions | None, _doc("Tools that the agent may use.")] = None

    @property
    def writes(self) -> bool:
        """Return whether the persona may write files; if not, it cannot write the relay's draft.

        A tool that is offered is restricted only by rules, and the user's own rules may permit
        more.
        """
        allowed = self.permissions.allowed_tools if self.permissions else None
        denied = (self.permissions.deny if self.permissions else None) or ()
        if allowed is None:
            return not {"Edit", "Write"} <= set(denied)
        named = {rule.partition("(")[0] for rule in allowed} & {"Write", "Edit", "write_file"}
        return bool(named) or not {"Bash", "run_shell_command"}.isdisjoint(allowed)


class Matrix(msgspec.Struct, frozen=True):
    source: Annotated[str, _doc("Step or file that lists the items.")] = msgspec.field(name="from")
    max_concurrency: (
        Annotated[int, _doc("Maximum number of items in progress at the same time.", "count", ge=1)]
        | None
    ) = None


class Strategy(msgspec.Struct, frozen=True):
    matrix: Annotated[Matrix | None, _doc("List of items; the step runs once for each.")] = None


class PipelineStep(msgspec.Struct, frozen=True):
    id: Annotated[str, _doc("Name of the step.")]
    persona: Annotated[str, _doc("Persona, under `personas`, that works on the step.")] | None = (
        None
    )
    prompt: Annotated[str, _doc("Prompt of the step.")] | None = None
    depends_on: Annotated[list[str], _doc("Names of steps that must be done first.")] | None = None
    handover: Annotated[
        Handover | None, _doc("How the work is handed over before the context window is full.")
    ] = None
    strategy: Annotated[Strategy | None, _doc("Whether the step runs once or once per item.")] = (
        None
    )


class Pipeline(msgspec.Struct, frozen=True):
    steps: Annotated[list[PipelineStep], _doc("The steps of the pipeline.")]


class RedactEntry(msgspec.Struct, frozen=True):
    allow: Annotated[list[str], _doc("Texts that look like secrets but are not redacted.")] = []


class Manifest(msgspec.Struct, frozen=True):
    version: Annotated[int, _doc("Version of the manifest's format.", "count", ge=1)]
    agents: dict[str, AgentEntry] = {}
    personas: dict[str, Persona] = {}
    runtime: dict[str, Any] = {}
    redact: RedactEntry = RedactEntry()
    prices: dict[str, ModelPrice] = {}
    notify: Annotated[
        list[str],
        _doc("Addresses to notify, such as `ntfys://$TOPIC`; write secrets as variables."),
    ] = []
    fleet: dict[str, Any] = {}
    pipelines: dict[str, Pipeline] = {}


def read_manifest(text: str, file: str = MANIFEST_FILE) -> tuple[Manifest, MarkedData]:
    """Return the manifest, and its data with line numbers for parsing `runtime:` and `fleet:`."""
    marked = yaml_lines.parse(text, file)
    if marked.data is None:
        raise ManifestError("is empty", file=file, hint="run `rekindle init` to write one")
    if not isinstance(marked.data, dict):
        raise ManifestError("does not consist of `key: value` lines", file=file, line=1)
    if isinstance(
        marked.data.get("version"), int
    ):  # values of other types are reported below, with their line
        refuse_newer_schema(int(marked.data["version"]), file, SCHEMA)
    _refuse_unreadable_triggers(marked, file)
    _split_command_lines(marked, file)
    _refuse_keys_of_personas(marked, file)
    parsed = validation.validate_data(marked, Manifest)
    for name in parsed.agents:
        if not AGENT_NAME.match(name):
            raise ManifestError(
                f"{name!r} is not a valid agent name",
                file=file,
                line=marked.line(("agents", name)),
                hint="use up to 63 of a-z, 0-9, - and _, starting with a letter or a digit",
            )
    return parsed, marked


def _refuse_unreadable_triggers(marked: MarkedData, file: str) -> None:
    """Refuse a trigger that cannot be parsed: it would never fire, and the user would not notice.

    The raw data is checked, because a value of another type needs its own message.
    """
    data: dict[str, Any] = marked.data
    places: list[tuple[KeyPath, Any]] = [
        (("agents", name), agent) for name, agent in _to_mapping(data.get("agents")).items()
    ]
    for name, pipeline in _to_mapping(data.get("pipelines")).items():
        steps = _to_mapping(pipeline).get("steps")
        for number, step in enumerate(steps if isinstance(steps, list) else ()):
            places.append((("pipelines", name, "steps", number), step))
    for path, entry in places:
        compaction = _to_mapping(_to_mapping(entry).get("handover")).get("compaction")
        trigger = _to_mapping(compaction).get("trigger")
        place = (*path, "handover", "compaction")
        if isinstance(compaction, str | int) and not isinstance(compaction, bool):
            raise ManifestError(
                f"{compaction!r} is not a value for `compaction`",
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


def _split_command_lines(marked: MarkedData, file: str) -> None:
    """Replace each command that is written as one line with its words."""
    for section, keys in _COMMAND_LINES.items():
        for name, entry in _to_mapping(marked.data.get(section)).items():
            for key in keys:
                line = _to_mapping(entry).get(key)
                if isinstance(line, str):
                    number = marked.line((section, name, key))
                    marked.command_lines[section, name, key] = line
                    entry[key] = split_line(line, key, file=file, number=number)


def _refuse_keys_of_personas(marked: MarkedData, file: str) -> None:
    """Refuse a persona's key in an agent's entry; the usual hint for `model` would be `mode`."""
    agent_keys = validation.list_fields(AgentEntry)
    for name, entry in _to_mapping(marked.data.get("agents")).items():
        for key in _to_mapping(entry):
            if key not in agent_keys and key in validation.list_fields(Persona):
                raise ManifestError(
                    f"unknown key {validation.join_path(('agents', name, key))!r}",
                    file=file,
                    line=marked.line(("agents", name, key)),
                    hint=f"`{key}:` belongs to a persona: write it under `personas: NAME:`,"
                    " and `persona: NAME` here",
                )


def _to_mapping(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def parse(text: str, file: str = MANIFEST_FILE) -> Manifest:
    return read_manifest(text, file)[0]
