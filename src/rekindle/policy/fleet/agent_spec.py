"""Define an agent on a fleet from a program, without a rekindle.yaml."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any

import msgspec

from rekindle.documents import manifest
from rekindle.documents.commits.work_commit import strip_user
from rekindle.documents.manifest import SCHEMA, Permissions
from rekindle.documents.manifest_keys import Budget
from rekindle.documents.manifest_sandbox import SandboxEntry
from rekindle.errors import DefinitionError, ManifestError
from rekindle.formats import git_names, validation
from rekindle.formats.identifiers import AGENT_NAME
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.handoff import window_rule
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings import notify_addresses, runtime_settings
from rekindle.policy.settings.runtime_settings import FLEET_DOCUMENT_BYTES, FleetSettings
from rekindle.policy.supervision.next_move import AgentLimits

_TASK, _RULES, _SYSTEM_PROMPT = "task.md", "rules.md", "system-prompt.md"
_PERSONA = "agent"
_NAME_HINT = "use up to 63 of a-z, 0-9, - and _, starting with a letter or a digit"
_OWN_FIELDS = {
    "prompt": "use `task`",
    "rules": "use `rules`",
    "dir": "use `folder`",
    "cycles": "pass it to `Fleet.run`",
    "mode": "leave it out, because a fleet has no terminal",
    "every": "use `rekindle run` with a rekindle.yaml, or start the runs from your program",
    "workspace": "leave it out, because each host gives the agent its own clone",
    "copy": "leave it out, because hosts do not have the files of your checkout",
    **{name: f"use `{name}`" for name in ("harness", "command", "until", "budget", "env")},
    "sandbox": "use `sandbox`",
}
"""Keys of an agent in rekindle.yaml that `settings` must not have, each with a hint."""
_SECTIONS = ("runtime", "personas", "notify", "redact", "prices", "accounts", "quota")
_KEY_PATH = re.compile(r"^[\w.\[\]-]+: ")
"""Beginning of a message about a key in rekindle.yaml, which the program does not have."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_TEXTS = (
    *("name", "harness", "task", "repository", "branch", "folder", "team", "pool", "model"),
    *("system_prompt", "rules"),
)
_LISTS = ("command", "until")
_MAPPINGS = ("env", "settings", "manifest")
_PLACEHOLDER = "agent"
"""Name in the manifest that is checked, so that agents with equal settings share the result."""


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """An agent for a fleet. Only a name, a harness and a task are required."""

    name: str
    """Name of the agent, which must be unique in the engine's namespace."""
    harness: str
    """Agent CLI, as in `harness:` in rekindle.yaml."""
    task: str
    """Text of the agent's prompt."""
    repository: str = ""
    """URL of the git remote with the agent's work; empty for an empty folder on each host."""
    branch: str = ""
    """Branch of the repository from which the agent starts; empty for the default branch."""
    folder: str = ""
    """Folder in the repository where the agent works; empty for all of it."""
    team: str | None = None
    """Team that the agent belongs to; None for the team of the connection."""
    pool: str | None = None
    """Pool of hosts that may run the agent; None for the pool of the connection."""
    command: Sequence[str] = ()
    """Program that `harness: command` runs, or that replaces the CLI."""
    model: str = ""
    """Model name, as the CLI spells it; empty for the CLI's default."""
    permissions: Permissions | None = None
    """Tools that the agent may use."""
    system_prompt: str = ""
    """Text of a system prompt; empty if there is none."""
    rules: str = ""
    """Rules that every session receives word for word; empty if there are none."""
    until: Sequence[str] = ()
    """Command that exits with 0 once the work is done, which ends the run."""
    budget: Budget | None = None
    """Limits for each run."""
    sandbox: SandboxEntry | Mapping[str, Any] | str | bool | None = None
    """Sandbox of the agent, as in `sandbox:` in rekindle.yaml. Hosts may be stricter."""
    env: Mapping[str, str] = {}
    """Environment variables for the agent. `$NAME` passes through a variable of the host."""
    settings: Mapping[str, Any] = {}
    """More keys of the agent, as in rekindle.yaml, such as `handover`."""
    manifest: Mapping[str, Any] = {}
    """More sections of rekindle.yaml for this agent, such as `runtime` and `notify`."""


class _CheckedSettings(msgspec.Struct, frozen=True):
    limits: AgentLimits
    notifies: bool
    allowed: tuple[str, ...]
    """Texts that are not redacted."""


def make_definition(spec: AgentSettings, fleet: FleetSettings) -> AgentDefinition:
    """Return everything that a host needs to run an agent.

    As with `rekindle run`, secrets are removed from the agent's texts.

    Raises:
        DefinitionError: A field is not valid. The error names it.
    """
    _require_types(spec)
    pool, team = _require_names(spec, fleet)
    manifest_data = _make_manifest(spec) | {"fleet": {"pool": pool, "team": team}}
    checked = _check(spec, manifest_data)
    redaction = Redaction(checked.allowed)
    texts = {_TASK: spec.task, _RULES: spec.rules, _SYSTEM_PROMPT: spec.system_prompt}
    named = dict(manifest_data, agents={spec.name: manifest_data["agents"][_PLACEHOLDER]})
    return AgentDefinition(
        manifest=_render(named),
        files={file: redaction.text(text) for file, text in texts.items() if text},
        limits=checked.limits,
        pool=pool,
        team=team,
        heartbeat_seconds=float(fleet.heartbeat_timeout),
        remote=strip_user(spec.repository),
        within=spec.folder.strip("/"),
        branch=spec.branch,
        notifies=checked.notifies,
    )


def require_same_owner(name: str, before: AgentDefinition, after: AgentDefinition) -> None:
    """Raise DefinitionError if a definition would take an agent from its folder or its remote."""
    hint = "choose another name, or pass `replace=True` to take the agent over"
    if before.project and not after.project:
        reason = f"the agent is defined by rekindle.yaml in the folder {before.project}"
        raise DefinitionError(name, "name", reason, hint=hint)
    if before.remote != after.remote:
        reason = f"the agent's work is pushed to {before.remote}"
        if not before.remote:
            reason = "the agent has no git remote, and its work stays on its host"
        raise DefinitionError(
            name, "repository", reason, hint=f"keep `repository={before.remote!r}`; or {hint}"
        )


def _require_types(spec: object) -> None:
    """Raise DefinitionError for the first field of another type, which Python does not check."""
    if not isinstance(spec, AgentSettings):
        hint = 'use `rekindle.AgentSettings(name="...", harness="...", task="...")`'
        reason = f"a definition is an AgentSettings, not a {type(spec).__name__}"
        raise DefinitionError("without a name", "spec", reason, hint=hint)
    _require_texts(spec)
    for field in _LISTS:
        words = getattr(spec, field)
        hint = f'use a program and its arguments, each a text: `{field}=["make", "test"]`'
        if isinstance(words, str | bytes) or not isinstance(words, Sequence):
            raise _make_type_error(spec, field, "a list", hint)
        if not all(isinstance(word, str) for word in words):
            raise DefinitionError(spec.name, field, "is not a list of texts", hint=hint)
    for field in _MAPPINGS:
        if not isinstance(getattr(spec, field), Mapping):
            hint = f'use a mapping: `{field}={{"KEY": "value"}}`'
            raise _make_type_error(spec, field, "a mapping", hint)
    for key, value in spec.env.items():
        if not isinstance(value, str):
            hint = 'use a text: `env={"KEY": "value"}`'
            raise DefinitionError(spec.name, f"env.{key}", "is not a text", hint=hint)
    if not isinstance(spec.manifest.get("personas", {}), Mapping):
        hint = "use a mapping of names to personas, as in rekindle.yaml"
        raise DefinitionError(spec.name, "manifest.personas", "is not a mapping", hint=hint)


def _require_texts(spec: AgentSettings) -> None:
    for field in _TEXTS:
        text = getattr(spec, field)
        if text is None and field in {"team", "pool"}:
            continue
        if not isinstance(text, str):
            raise _make_type_error(spec, field, "a text", f'use a text: `{field}="..."`')
        if _SURROGATE.search(text):
            hint = "decode it from bytes as UTF-8"
            raise DefinitionError(str(spec.name), field, "is not valid Unicode", hint=hint)


def _make_type_error(spec: AgentSettings, field: str, kind: str, hint: str) -> DefinitionError:
    found = type(getattr(spec, field)).__name__
    return DefinitionError(str(spec.name), field, f"is not {kind}, but {found}", hint=hint)


def _require_size(spec: AgentSettings, rendered: str) -> None:
    """Raise DefinitionError if the engine would refuse the definition because of its size."""
    hint = "let the text name a file of the repository instead"
    texts = {"task": spec.task, "rules": spec.rules, "system_prompt": spec.system_prompt}
    sizes = {field: len(text.encode()) for field, text in texts.items()}
    for field, size in sizes.items():
        if size > FLEET_DOCUMENT_BYTES:
            reason = f"is longer than {FLEET_DOCUMENT_BYTES:,} bytes"
            raise DefinitionError(spec.name, field, reason, hint=hint)
    if len(rendered.encode()) > FLEET_DOCUMENT_BYTES:
        field = max(("command", *_MAPPINGS), key=lambda field: len(repr(getattr(spec, field))))
        reason = f"the settings together are longer than {FLEET_DOCUMENT_BYTES:,} bytes"
        hint = "put long values into a file of the repository, or into a variable on each host"
        raise DefinitionError(spec.name, field, reason, hint=hint)


def _require_names(spec: AgentSettings, fleet: FleetSettings) -> tuple[str, str]:
    """Return the agent's pool and team, after checking all fields that are not in a manifest."""
    pool = fleet.pool if spec.pool is None else spec.pool
    team = fleet.team if spec.team is None else spec.team
    for field, name in (("name", spec.name), ("pool", pool), ("team", team)):
        if not AGENT_NAME.match(name) and (name or field != "team"):
            raise DefinitionError(
                spec.name, field, f"{name!r} is not a valid name", hint=_NAME_HINT
            )
    if not spec.task.strip():
        raise DefinitionError(spec.name, "task", "is empty", hint="say what the agent should do")
    if spec.harness == "command" and not spec.command:
        hint = "name the program and its arguments as a list"
        raise DefinitionError(spec.name, "command", "is empty", hint=hint)
    if ".." in spec.folder.split("/") or spec.folder.startswith("/"):
        hint = "use a path relative to the root of the repository"
        raise DefinitionError(spec.name, "folder", "is outside the repository", hint=hint)
    for field in ("branch", "folder"):
        if getattr(spec, field) and not spec.repository:
            hint = "set `repository` to the URL of a git remote"
            raise DefinitionError(spec.name, field, "needs a repository", hint=hint)
    if spec.repository and not git_names.is_remote(spec.repository):
        hint = (
            "use a URL such as https://example.org/shop.git or git@example.org:shop.git, or an "
            "absolute path on the hosts"
        )
        raise DefinitionError(spec.name, "repository", "is not a git remote", hint=hint)
    if spec.branch and not git_names.is_branch(spec.branch):
        hint = "use a name that `git check-ref-format --branch` accepts, such as release/2"
        reason = f"{spec.branch!r} is not a valid branch"
        raise DefinitionError(spec.name, "branch", reason, hint=hint)
    return pool, team


def _make_manifest(spec: AgentSettings) -> dict[str, Any]:
    """Return the manifest of an agent, under a placeholder instead of its name."""
    for key in spec.settings:
        if key in _OWN_FIELDS:
            raise DefinitionError(
                spec.name, f"settings.{key}", "is not possible here", hint=_OWN_FIELDS[key]
            )
    for key in spec.manifest:
        if key not in _SECTIONS:
            hint = f"use one of: {', '.join(_SECTIONS)}"
            raise DefinitionError(spec.name, f"manifest.{key}", "is not possible here", hint=hint)
    entry: dict[str, Any] = {"harness": spec.harness, "prompt": _TASK}
    persona: dict[str, Any] = {"model": spec.model, "permissions": spec.permissions}
    persona["system_prompt_file"] = _SYSTEM_PROMPT if spec.system_prompt else None
    persona = {key: value for key, value in persona.items() if value}
    optional = {
        "rules": _RULES if spec.rules else None,
        "persona": _PERSONA if persona else None,
        "command": list(spec.command),
        "until": list(spec.until),
        "budget": spec.budget,
        "env": dict(spec.env),
    }
    entry |= {key: value for key, value in optional.items() if value}
    entry |= {} if spec.sandbox is None else {"sandbox": spec.sandbox}
    entry |= spec.settings
    data: dict[str, Any] = {"version": SCHEMA, "agents": {_PLACEHOLDER: entry}} | dict(
        spec.manifest
    )
    if persona:
        data["personas"] = {**data.get("personas", {}), _PERSONA: persona}
    return data


def _render(data: Mapping[str, Any]) -> str:
    """Return the manifest as JSON with one key per line, which is also YAML."""
    encoded = msgspec.to_builtins(_drop_missing(data), enc_hook=validation.encode_custom)
    return msgspec.json.format(msgspec.json.encode(encoded), indent=1).decode()


def _drop_missing(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, Mapping):
        return {key: _drop_missing(part) for key, part in value.items() if part is not None}
    return value


def _check(spec: AgentSettings, data: Mapping[str, Any]) -> _CheckedSettings:
    try:
        text = _render(data)
    except (TypeError, ValueError, NotImplementedError) as error:
        hint = "use numbers, texts, lists and mappings, as in rekindle.yaml"
        raise DefinitionError(spec.name, "settings", str(error), hint=hint) from error
    _require_size(spec, text)
    try:
        return _check_text(text)
    except _InvalidFieldError as error:
        raise DefinitionError(spec.name, error.field, error.reason, hint=error.hint) from error


class _InvalidFieldError(Exception):
    def __init__(self, field: str, reason: str, hint: str) -> None:
        self.field, self.reason, self.hint = field, reason, hint
        super().__init__(reason)


@lru_cache(maxsize=256)
def _check_text(text: str) -> _CheckedSettings:
    """Check a manifest. Thousands of agents may share one, apart from their names and tasks."""
    lines = text.splitlines()
    try:
        parsed, marked = manifest.read_manifest(text)
        settings = runtime_settings.resolve_settings(marked)
    except ManifestError as error:
        field = _find_field(lines, error.line or 1)
        reason = _KEY_PATH.sub("", error.message).replace(f"agents.{_PLACEHOLDER}.", "")
        hint = validation.advise_program(error.hint)
        raise _InvalidFieldError(field, reason, hint) from error
    for number, address in enumerate(parsed.notify):
        if not notify_addresses.has_only_variables(address):
            reason = f"address {number + 1} may contain a secret, which the engine would store"
            hint = 'put it into a variable on each host, and use its name: `["$ALERTS"]`'
            raise _InvalidFieldError("manifest.notify", reason, hint)
    allowed = tuple(parsed.redact.allow)
    cleaned = Redaction(allowed).text(text).splitlines()
    for number, (line, clean) in enumerate(zip_longest(lines, cleaned), 1):
        if line != clean:
            reason = "may contain a secret, which the engine would store"
            hint = "put it into a variable on each host, and use its name, as in `env`"
            raise _InvalidFieldError(_find_field(lines, number), reason, hint)
    for name, persona in parsed.personas.items():
        if persona.system_prompt_file and name != _PERSONA:
            hint = "use `system_prompt`, because hosts do not have the files of your program"
            raise _InvalidFieldError(f"manifest.personas.{name}", "names a file", hint)
    entry = parsed.agents[_PLACEHOLDER]
    relay = settings.runtime.relay
    return _CheckedSettings(
        AgentLimits(
            runtime=settings.runtime,
            budget=entry.budget,
            threshold=window_rule.find_threshold(entry.handover, relay),
        ),
        bool(parsed.notify),
        allowed,
    )


def _find_field(lines: Sequence[str], number: int) -> str:
    """Return the field of a spec that a line of its manifest belongs to."""
    path: list[str] = []
    for line in lines[:number]:
        depth, (key, colon, _) = len(line) - len(line.lstrip()), line.strip().partition(":")
        if colon and key.startswith('"'):
            path = [*path[: depth - 1], key.strip('"')]
    match path:
        case ["agents", _, "prompt", *_]:
            return "task"
        case ["agents", _, key, *rest]:
            return ".".join(
                [key if key in AgentSettings.__struct_fields__ else f"settings.{key}", *rest]
            )
        case ["personas", name, key, *rest] if name == _PERSONA:
            return ".".join([key, *rest])
    return ".".join(["manifest", *path])
