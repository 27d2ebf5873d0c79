"""Decide which settings need the operator's consent, and compare two versions of them.

An agent can write to `rekindle.yaml`, but must not decide what the next supervisor starts, pays for
or permits. The operator's `run`, `up` and `restart` record these settings outside the workspace. A
supervisor that finds different settings, or no record, starts nothing. The same applies to each
pipeline.

Every key is controlled unless it is listed in `UNCONTROLLED_KEYS`, or for the steps of a pipeline
in `UNCONTROLLED_STEP_KEYS`, so new keys are safe by default.
"""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from rekindle.documents.manifest import MANIFEST_FILE, Manifest
from rekindle.documents.manifest_pipelines import Pipeline
from rekindle.policy.pipelines.worker_entry import find_inherited
from rekindle.policy.settings import notify_addresses
from rekindle.policy.settings.runtime_settings import AgentDefaults
from rekindle.policy.settings.used_personas import find_pipeline_personas, keep_personas
from rekindle.thresholds.texts import (
    CHANGES_SHOWN,
    CONSENT_CONTEXT_CHARACTERS,
    CONSENT_SHOWN_CHARACTERS,
    CONSENT_VALUE_CHARACTERS,
)

UNCONTROLLED_KEYS = frozenset({"prompt", "rules", "convergence", "handover"})
"""Keys that describe an agent's task and way of working, but do not start or permit anything."""
UNCONTROLLED_STEP_KEYS = frozenset({"id", "prompt", "convergence"})
"""Keys of a step that do not start or permit anything. The id is part of the other keys' names."""
_COMPACTION = "compaction"
_FLEET = "fleet"
_SHARED = ("personas", "accounts", "notify", "prices", "quota", "runtime", "redact", _FLEET)
_NOTHING: Mapping[str, str] = MappingProxyType({})

ControlledSettings = dict[str, Any]
"""Controlled settings as plain JSON values, by manifest key."""


class SettingChange(msgspec.Struct, frozen=True):
    """A controlled setting whose value differs from the one that the operator accepted."""

    key: str
    before: str
    """Accepted value on one line; empty if the setting is new."""
    after: str
    """Current value on one line; empty if the setting was removed."""

    def render(self) -> str:
        """Render the change on one line. Long values are cut to the part that differs."""
        if not self.before:
            return f"{self.key}: added {_cut_value(self.after)}"
        if not self.after:
            return f"{self.key}: {_cut_value(self.before)} → removed"
        before, after = _select_difference(self.before, self.after)
        return f"{self.key}: {_cut_value(before)} → {_cut_value(after)}"


def select_controlled(
    manifest: Manifest, agent: str, outside: Mapping[str, str] = _NOTHING
) -> ControlledSettings:
    """Return one agent's controlled settings.

    `outside` maps keys to the files or folders outside the project that they point to. These keys
    are always controlled.
    """
    entry = msgspec.to_builtins(manifest.agents.get(agent, {}))
    if listed := entry.pop("harnesses", None):
        items = _drop_nulls(listed)
        entry["harness"] = [item["use"] if len(item) == 1 else item for item in items]
    settings = {
        f"agents.{agent}.{key}": value
        for key, value in entry.items()
        if key not in UNCONTROLLED_KEYS
    }
    return _drop_empty(settings | _select_shared(manifest) | dict(outside))


def select_pipeline(
    manifest: Manifest, name: str, outside: Mapping[str, str] = _NOTHING
) -> ControlledSettings:
    """Return one pipeline's controlled settings, which are all except the text of its prompts.

    They include only the personas that the pipeline uses. `outside` works as in
    `select_controlled`. `manifest` must not contain the agents of a run.
    """
    start = f"pipelines.{name}"
    pipeline = manifest.pipelines[name]
    shared = _select_shared(keep_personas(manifest, find_pipeline_personas(pipeline)))
    entry = _drop_nulls(msgspec.to_builtins(pipeline))
    settings = {f"{start}.{key}": value for key, value in entry.items() if key != "steps"}
    for step in entry["steps"]:
        handover = {
            key: value for key, value in step.get("handover", {}).items() if key != _COMPACTION
        }
        settings |= {
            f"{start}.steps.{step['id']}.{key}": value
            for key, value in {**step, "handover": handover}.items()
            if key not in UNCONTROLLED_STEP_KEYS
        }
    if _uses_common_harness(manifest, pipeline):
        settings[f"{start}.harness"] = sorted({agent.harness for agent in manifest.agents.values()})
    settings |= select_inherited(manifest, pipeline)
    return _drop_empty(settings | drop_fleet_settings(shared) | dict(outside))


def select_inherited(manifest: Manifest, pipeline: Pipeline) -> ControlledSettings:
    """Return the settings that a pipeline's workers take over from the manifest's agents.

    `manifest` must not contain the agents of a run.
    """
    used = keep_personas(manifest, find_pipeline_personas(pipeline)).personas.values()
    harnesses = {persona.adapter for persona in used if persona.adapter}
    if _uses_common_harness(manifest, pipeline):
        harnesses |= {agent.harness for agent in manifest.agents.values()}
    settings = {
        f"agents with {harness}.{key}": value
        for harness in sorted(harnesses)
        for key, value in msgspec.to_builtins(find_inherited(manifest, harness)).items()
    }
    return _drop_empty(settings)


def _uses_common_harness(manifest: Manifest, pipeline: Pipeline) -> bool:
    """Return whether a worker uses the CLI that all agents use."""
    names = {step.persona for step in pipeline.steps if step.run is None}
    names |= {step.merge.persona or step.persona for step in pipeline.steps if step.merge}
    personas = [manifest.personas.get(name or AgentDefaults().persona) for name in names]
    return any(persona is None or not persona.adapter for persona in personas)


def _select_shared(manifest: Manifest) -> ControlledSettings:
    """Return the settings that apply to every agent."""
    settings: ControlledSettings = {}
    for section in _SHARED:
        value = msgspec.to_builtins(getattr(manifest, section))
        if isinstance(value, dict):
            settings |= {f"{section}.{key}": inner for key, inner in value.items()}
        else:
            settings[section] = value
    return settings


def _drop_empty(settings: ControlledSettings) -> ControlledSettings:
    return {key: value for key, value in settings.items() if value not in (None, {}, [])}


def select_fleet(controlled: ControlledSettings) -> ControlledSettings:
    """Return the fleet's controlled settings, which apply to the whole project."""
    return {key: value for key, value in controlled.items() if key.startswith(f"{_FLEET}.")}


def drop_fleet_settings(controlled: ControlledSettings) -> ControlledSettings:
    return {key: value for key, value in controlled.items() if not key.startswith(f"{_FLEET}.")}


def compare_settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[SettingChange]:
    """Return the settings that changed, sorted by key."""
    return [
        SettingChange(key, _render_value(key, before.get(key)), _render_value(key, after.get(key)))
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key)
    ]


def render_changes(changes: Sequence[SettingChange], most: int = CHANGES_SHOWN) -> str:
    """Render the first `most` changes on one line, and count the rest."""
    shown = "; ".join(change.render() for change in changes[:most])
    return shown + (f"; and {len(changes) - most} more" if len(changes) > most else "")


def _render_value(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key == "notify":
        value = [notify_addresses.hide_address_secrets(address) for address in value]
    text = json.dumps(_drop_nulls(value), ensure_ascii=False)
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def _select_difference(before: str, after: str) -> tuple[str, str]:
    """Return both values if they are short, otherwise only the parts that differ, in brackets."""
    if max(len(before), len(after)) <= CONSENT_VALUE_CHARACTERS:
        return before, after
    start = _count_same(before, after)
    same = _count_same(before[start:][::-1], after[start:][::-1])
    return _mark_part(before, start, same), _mark_part(after, start, same)


def _count_same(first: str, second: str) -> int:
    """Return the length of the common prefix of two texts."""
    pairs = enumerate(zip(first, second, strict=False))
    shorter = min(len(first), len(second))
    return next((place for place, (one, other) in pairs if one != other), shorter)


def _mark_part(value: str, start: int, same: int) -> str:
    """Return `…context[part]context…`, where `part` excludes the last `same` characters."""
    end = len(value) - same
    first, last = max(0, start - CONSENT_CONTEXT_CHARACTERS), end + CONSENT_CONTEXT_CHARACTERS
    lead = "…" if first else ""
    tail = "…" if last < len(value) else ""
    return f"{lead}{value[first:start]}[{value[start:end]}]{value[end:last]}{tail}"


def _cut_value(value: str) -> str:
    """Render a value for display. If it is too long, cut it and name the file that contains it."""
    if len(value) <= CONSENT_SHOWN_CHARACTERS:
        return value
    part = value[:CONSENT_VALUE_CHARACTERS]
    return f"{part}… ({len(value)} characters; see {MANIFEST_FILE})"


def _drop_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_drop_nulls(inner) for inner in value] if isinstance(value, list) else value
