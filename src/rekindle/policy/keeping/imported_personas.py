"""Give an imported agent personas that no other agent uses.

An agent without `persona:` uses `default`, and a persona without keys in rekindle.yaml has
defaults. So a persona that an import adds or shares could change what an agent may do.
"""

from collections.abc import Container, Mapping
from itertools import count
from typing import Any

import msgspec

from rekindle.documents import agent_export, manifest
from rekindle.documents.agent_export import ExportHeader
from rekindle.documents.manifest import Manifest
from rekindle.policy.settings.runtime_settings import AgentDefaults
from rekindle.policy.settings.used_personas import find_agent_personas, find_all_personas

_DEFAULT = AgentDefaults().persona


class FittedSettings(msgspec.Struct, frozen=True):
    """The settings that an import adds to a manifest."""

    header: ExportHeader
    renamed: Mapping[str, str]
    """New names of the agent's personas, by their names in the file."""
    unused: tuple[str, ...]
    """Personas in the file that the agent does not use. They are not added."""


def add_agent(text: str, header: ExportHeader) -> str:
    """Add an exported agent and its personas to a manifest's text, unless it has the agent."""
    fitted = fit_settings(text, header)
    return agent_export.add_settings(text, fitted.header) if fitted else text


def fit_settings(text: str, header: ExportHeader) -> FittedSettings | None:
    """Return the settings that `add_agent` adds to a manifest's text, or None if it has the agent.

    A persona gets a name of its own if another agent could use it, or if the manifest has another
    one with its name.
    """
    known = manifest.parse(text) if text.strip() else Manifest(version=manifest.SCHEMA)
    return None if header.agent in known.agents else _fit_personas(known, header)


def _fit_personas(known: Manifest, header: ExportHeader) -> FittedSettings:
    exported = agent_export.read_settings(header)
    used = find_agent_personas(exported.agents[header.agent])
    others = find_all_personas(known) | {_DEFAULT}
    added: dict[str, dict[str, Any]] = {}
    renamed: dict[str, str] = {}
    for name in sorted(used):
        own, there = exported.personas.get(name), known.personas.get(name)
        if own == there:
            continue
        new = name
        if there is not None or name in others:
            taken = {*others, *known.personas, *used, *renamed.values()}
            new = renamed[name] = _make_name(header.agent, name, taken)
        # Without its keys, only the default persona can be used.
        if own is not None or name == _DEFAULT:
            added[new] = header.personas.get(name, {})
    entry = _rename_personas(header.entry, renamed)
    return FittedSettings(
        msgspec.structs.replace(header, entry=entry, personas=added),
        renamed,
        tuple(sorted(header.personas.keys() - used)),
    )


def _make_name(agent: str, name: str, taken: Container[str]) -> str:
    first = f"{agent}-{name}"
    names = (first if number == 1 else f"{first}-{number}" for number in count(1))
    return next(free for free in names if free not in taken)


def _rename_personas(entry: Mapping[str, Any], renamed: Mapping[str, str]) -> dict[str, Any]:
    """Return an agent's keys with the new names of its personas."""
    changed = _rename(entry, "persona", renamed)
    if not entry.get("persona") and _DEFAULT in renamed:
        changed["persona"] = renamed[_DEFAULT]
    changed = _rename(changed, "review", renamed)
    if isinstance(entry.get("harness"), list):
        changed["harness"] = [
            _rename(item, "persona", renamed) if isinstance(item, dict) else item
            for item in entry["harness"]
        ]
    handover = entry.get("handover")
    if isinstance(handover, dict) and isinstance(handover.get("compaction"), dict):
        compaction = _rename(handover["compaction"], "persona", renamed)
        changed["handover"] = {**handover, "compaction": compaction}
    return changed


def _rename(keys: Mapping[str, Any], key: str, renamed: Mapping[str, str]) -> dict[str, Any]:
    return {**keys, key: renamed[keys[key]]} if keys.get(key) in renamed else dict(keys)
