"""Explain every setting and threshold: its value, unit, origin and meaning."""

from collections.abc import Mapping
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from rekindle.documents.manifest import AgentEntry, Manifest, ModelPrice, Persona
from rekindle.documents.manifest_pipelines import Pipeline
from rekindle.documents.manifest_routes import AccountEntry
from rekindle.errors import NotFoundError
from rekindle.formats import validation
from rekindle.formats.yaml_lines import (
    KeyPath,
    MarkedData,
)
from rekindle.policy.settings.runtime_settings import (
    AgentDefaults,
    FleetSettings,
    RuntimeSettings,
    resolve_settings,
)
from rekindle.thresholds import FIXED

NAME = "NAME"
"""Placeholder for the name of an agent, a persona, a model or a pipeline in a key."""


class SettingExplanation(msgspec.Struct, frozen=True):
    key: str
    value: Any
    default: Any
    unit: str
    """Unit of a number; empty if the value is not a number."""
    origin: str
    """`default`, `fixed`, or the file and line that set the value."""
    meaning: str


def explain_settings(
    manifest: Manifest | None, marked: MarkedData | None
) -> list[SettingExplanation]:
    """Return every setting, in the reference manifest's order, and then every threshold."""
    resolved = resolve_settings(marked)
    explained = _explain_fields(("runtime",), RuntimeSettings(), resolved.runtime, marked)
    explained += _explain_top("version", manifest, marked)
    agents: list[str | None] = [*manifest.agents] if manifest else []
    for name in agents or [None]:
        explained += _explain_agent(name, manifest, marked)
    explained += _explain_named("personas", Persona, manifest.personas if manifest else {}, marked)
    accounts = manifest.accounts if manifest else {}
    explained += _explain_named("accounts", AccountEntry, accounts, marked)
    explained += _explain_named("prices", ModelPrice, manifest.prices if manifest else {}, marked)
    explained += _explain_top("quota", manifest, marked)
    explained += _explain_top("redact", manifest, marked)
    explained += _explain_top("notify", manifest, marked)
    explained += _explain_fields(
        ("fleet",), FleetSettings(), resolved.fleet or FleetSettings(), marked
    )
    pipelines = manifest.pipelines if manifest else {}
    explained += _explain_named("pipelines", Pipeline, pipelines, marked)
    return explained + [
        SettingExplanation(key, default, default, unit, "fixed", meaning)
        for key, (default, unit, meaning) in sorted(
            FIXED.items()
        )  # sorted, because the order of imports may vary
    ]


def explain_setting(
    key: str, manifest: Manifest | None, marked: MarkedData | None
) -> list[SettingExplanation]:
    """Return the settings that match a key: a full path, the last part of one, or a section."""
    settings = explain_settings(manifest, marked)
    matching = [
        setting for setting in settings if setting.key == key or setting.key.endswith(f".{key}")
    ]
    # Hide example entries called NAME if there are real entries.
    real = [setting for setting in matching if NAME not in setting.key.split(".")]
    matching = real or matching
    matching = matching or [setting for setting in settings if f".{key}." in f".{setting.key}"]
    if not matching:
        tails = {setting.key.rsplit(".", 1)[-1] for setting in settings} | {
            setting.key for setting in settings
        }
        similar = get_close_matches(key, tails, n=1)
        raise NotFoundError(
            f"no setting named {key!r}",
            hint=f"did you mean `{similar[0]}`?"
            if similar
            else "`rekindle config explain` lists all settings",
        )
    return matching


def _explain_agent(
    name: str | None, manifest: Manifest | None, marked: MarkedData | None
) -> list[SettingExplanation]:
    defaults = AgentDefaults()
    entry = manifest.agents[name] if manifest and name is not None else None
    own = {
        key: value
        for key in msgspec.structs.asdict(defaults)
        if entry is not None and (value := getattr(entry, key)) is not None
    }
    path = ("agents", name or NAME)
    with_default = _explain_fields(path, defaults, msgspec.structs.replace(defaults, **own), marked)
    by_key = {setting.key: [setting] for setting in with_default}
    explained: list[SettingExplanation] = []
    for key, kind in validation.list_fields(AgentEntry).items():
        # The manifest's reader moves a list in `harness:` to a field of its own.
        key_path = (*path, "harness" if key == "harnesses" else key)
        value = getattr(entry, key, None)
        explained += by_key.get(validation.join_path(key_path)) or _explain_key(
            key_path, kind, value, marked
        )
    return explained


def _explain_top(
    key: str, manifest: Manifest | None, marked: MarkedData | None
) -> list[SettingExplanation]:
    """Explain a top-level key and every key below it."""
    annotation = validation.list_fields(Manifest)[key]
    return _explain_key((key,), annotation, getattr(manifest, key, None), marked)


def _explain_named(
    section: str,
    kind: type[msgspec.Struct],
    entries: Mapping[str, msgspec.Struct],
    marked: MarkedData | None,
) -> list[SettingExplanation]:
    """Explain all entries of a section, or an example entry called NAME if the section is empty."""
    explained: list[SettingExplanation] = []
    for name in entries or [NAME]:
        for key, annotation in validation.list_fields(kind).items():
            value = getattr(entries.get(name), key, None)
            explained += _explain_key((section, name, key), annotation, value, marked)
    return explained


def _explain_key(
    path: KeyPath, annotation: Any, value: Any, marked: MarkedData | None
) -> list[SettingExplanation]:
    """Explain a key without a default, and every key below it."""
    explained = []
    if meta := find_meta(annotation):
        explained.append(_explain(path, meta, value, None, marked))
    item = _find_item(annotation)
    struct = None if item and isinstance(value, list) else validation.find_struct(annotation)
    if struct:
        attributes = {field.encode_name: field.name for field in msgspec.structs.fields(struct)}
        for key, kind in validation.list_fields(struct).items():
            below = getattr(value, attributes[key], None)
            explained += _explain_key((*path, key), kind, below, marked)
    elif item:
        places = [((*path, number), entry) for number, entry in enumerate(value or ())]
        for place, entry in places or [(path, None)]:
            explained += _explain_key(place, item, entry, marked)
    return explained


def _find_item(annotation: Any) -> type[msgspec.Struct] | None:
    """Return the struct type of the items in a list, or None if the items are plain values."""
    inner = get_args(annotation)
    if get_origin(annotation) is list:
        return validation.find_struct(inner[0])
    if get_origin(annotation) in {Union, UnionType}:
        return next(filter(None, map(_find_item, inner)), None)
    return _find_item(inner[0]) if get_origin(annotation) is Annotated else None


def find_meta(annotation: Any) -> msgspec.Meta | None:
    """Return a key's description, which may be inside a union, or None if it has none."""
    inner = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return next((argument for argument in inner if isinstance(argument, msgspec.Meta)), None)
    if get_origin(annotation) in {Union, UnionType}:
        return next(filter(None, map(find_meta, inner)), None)
    return None


def _explain_fields(
    path: KeyPath, default: Any, value: Any, marked: MarkedData | None
) -> list[SettingExplanation]:
    explained: list[SettingExplanation] = []
    for name, annotation in validation.list_fields(type(default)).items():
        key_path = (*path, name)
        if isinstance(getattr(default, name), msgspec.Struct):
            explained += _explain_fields(
                key_path, getattr(default, name), getattr(value, name), marked
            )
            continue
        if not (meta := find_meta(annotation)):
            raise TypeError(f"`{validation.join_path(key_path)}` has no `_doc` in runtime_settings")
        explained.append(
            _explain(key_path, meta, getattr(value, name), getattr(default, name), marked)
        )
        if struct := validation.find_struct(annotation):  # such as `fleet.tls`, which may be a bool
            own = getattr(value, name)
            below = own if isinstance(own, struct) else struct()
            explained += _explain_fields(key_path, struct(), below, marked)
    return explained


def _explain(
    path: KeyPath, meta: msgspec.Meta, value: Any, default: Any, marked: MarkedData | None
) -> SettingExplanation:
    line = marked.lines.get(path) if marked else None
    return SettingExplanation(
        validation.join_path(path),
        value,
        default,
        (meta.extra_json_schema or {}).get("x-unit", ""),
        f"{marked.file}:{line}" if marked and line else "default",
        meta.description or "",
    )


def require_meanings(path: KeyPath, defaults: msgspec.Struct) -> None:
    """Raise TypeError for the first setting without a `_doc`."""
    _explain_fields(path, defaults, defaults, None)


require_meanings(("runtime",), RuntimeSettings())
require_meanings(("fleet",), FleetSettings())
require_meanings(("agents", NAME), AgentDefaults())
