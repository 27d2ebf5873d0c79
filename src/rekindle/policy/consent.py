"""Which settings need the operator's consent, and how two versions of them differ.

An agent can write to `rekindle.yaml`. What it writes there must not decide what the next supervisor
starts, pays for, or permits. The operator's `run`, `up` and `restart` record these settings outside
the workspace; a supervisor that finds others, or none, starts nothing.

Every key is controlled unless it is listed in `FREE`, so that a new key is safe by default.
"""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from rekindle.documents.identity import one_line
from rekindle.documents.manifest import Manifest
from rekindle.policy import addresses
from rekindle.thresholds.texts import CHANGES_SHOWN, CONSENT_VALUE_CHARACTERS

FREE = frozenset({"prompt", "rules", "convergence", "handover"})
"""Keys of an agent that name its task and its method; they start nothing and permit nothing."""
_FLEET = "fleet"
_SHARED = ("personas", "notify", "prices", "runtime", "redact", _FLEET)
_NOTHING: Mapping[str, str] = MappingProxyType({})

Controlled = dict[str, Any]
"""Controlled settings by their place in the manifest, as plain JSON values."""


class Change(msgspec.Struct, frozen=True):
    """One controlled setting that differs from what the operator accepted."""

    key: str
    before: str
    """The accepted value as one line; empty if there was none."""
    after: str
    """The present value as one line; empty if it was removed."""

    def render(self) -> str:
        if not self.before:
            return f"{self.key}: added {self.after}"
        return f"{self.key}: {self.before} → {self.after or 'removed'}"


def select_controlled(
    manifest: Manifest, agent: str, outside: Mapping[str, str] = _NOTHING
) -> Controlled:
    """Return the controlled settings of one agent.

    `outside` holds the keys that lead to a file or a folder outside the project, with the path:
    these are controlled whatever the key.
    """
    entry = msgspec.to_builtins(manifest.agents.get(agent, {}))
    found = {f"agents.{agent}.{key}": value for key, value in entry.items() if key not in FREE}
    for section in _SHARED:
        value = msgspec.to_builtins(getattr(manifest, section))
        if isinstance(value, dict):
            found |= {f"{section}.{key}": inner for key, inner in value.items()}
        else:
            found[section] = value
    found |= outside
    return {key: value for key, value in found.items() if value not in (None, {}, [])}


def select_fleet(controlled: Controlled) -> Controlled:
    """Return those of an agent's controlled settings that name the fleet, and are the project's."""
    return {key: value for key, value in controlled.items() if key.startswith(f"{_FLEET}.")}


def without_fleet(controlled: Controlled) -> Controlled:
    return {key: value for key, value in controlled.items() if not key.startswith(f"{_FLEET}.")}


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Return what changed, by key."""
    return [
        Change(key, _shown(key, before.get(key)), _shown(key, after.get(key)))
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key)
    ]


def render_changes(changes: Sequence[Change], most: int = CHANGES_SHOWN) -> str:
    """Render changes on one line, at most so many of them."""
    shown = "; ".join(change.render() for change in changes[:most])
    return shown + (f"; and {len(changes) - most} more" if len(changes) > most else "")


def _shown(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key == "notify":
        value = [addresses.hide_secrets(address) for address in value]
    return one_line(json.dumps(_without_nulls(value), ensure_ascii=False), CONSENT_VALUE_CHARACTERS)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return value
