"""Every setting and threshold with its value, unit, origin and meaning."""

from collections.abc import Mapping
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from rekindle.documents import shape
from rekindle.documents.manifest import Agent, Manifest, Persona, Price
from rekindle.documents.yamltext import Marked, Path
from rekindle.errors import NotFoundError
from rekindle.policy.settings import AgentDefaults, Fleet, Runtime, resolve
from rekindle.thresholds import FIXED

NAME = "NAME"
"""Stands for the name of an agent, a persona or a model in a key."""


class Explanation(msgspec.Struct, frozen=True):
    key: str
    value: Any
    default: Any
    unit: str
    """What a number counts; empty if the value is not a number."""
    origin: str
    """`default`, `fixed`, or the file and line that set it."""
    meaning: str


def explain_all(manifest: Manifest | None, marked: Marked | None) -> list[Explanation]:
    """Return every setting in the order of the reference manifest, then every threshold."""
    resolved = resolve(marked)
    explained = _walk(("runtime",), Runtime(), resolved.runtime, marked)
    agents: list[str | None] = [*manifest.agents] if manifest else []
    for name in agents or [None]:
        explained += _explain_agent(name, manifest, marked)
    explained += _explain_named("personas", Persona, manifest.personas if manifest else {}, marked)
    explained += _explain_named("prices", Price, manifest.prices if manifest else {}, marked)
    for key, kind in shape.fields_of(Manifest).items():
        if key in {"notify", "redact"}:
            explained += _explain_key((key,), kind, getattr(manifest, key, None), marked)
    explained += _walk(("fleet",), Fleet(), resolved.fleet or Fleet(), marked)
    return explained + [
        Explanation(key, default, default, unit, "fixed", meaning)
        for key, (default, unit, meaning) in sorted(FIXED.items())  # not in the order of imports
    ]


def explain(key: str, manifest: Manifest | None, marked: Marked | None) -> list[Explanation]:
    """Return the settings that a key names; the last part of a key is enough."""
    every = explain_all(manifest, marked)
    named = [one for one in every if one.key == key or one.key.endswith(f".{key}")]
    named = named or [one for one in every if f".{key}." in f".{one.key}"]
    if not named:
        tails = {one.key.rsplit(".", 1)[-1] for one in every} | {one.key for one in every}
        like = get_close_matches(key, tails, n=1)
        raise NotFoundError(
            f"no setting named {key!r}",
            hint=f"did you mean `{like[0]}`?" if like else "`rekindle config explain` lists all",
        )
    return named


def _explain_agent(
    name: str | None, manifest: Manifest | None, marked: Marked | None
) -> list[Explanation]:
    defaults = AgentDefaults()
    entry = manifest.agents[name] if manifest and name is not None else None
    own = {
        key: value
        for key in msgspec.structs.asdict(defaults)
        if entry is not None and (value := getattr(entry, key)) is not None
    }
    path = ("agents", name or NAME)
    known = _walk(path, defaults, msgspec.structs.replace(defaults, **own), marked)
    by_key = {one.key: [one] for one in known}
    explained: list[Explanation] = []
    for key, kind in shape.fields_of(Agent).items():
        here = (*path, key)
        value = getattr(entry, key, None)
        explained += by_key.get(shape.dotted(here)) or _explain_key(here, kind, value, marked)
    return explained


def _explain_named(
    section: str,
    kind: type[msgspec.Struct],
    entries: Mapping[str, msgspec.Struct],
    marked: Marked | None,
) -> list[Explanation]:
    """Explain the keys of every entry of a section; if there is none, of an entry called NAME."""
    explained: list[Explanation] = []
    for name in entries or [NAME]:
        for key, annotation in shape.fields_of(kind).items():
            value = getattr(entries.get(name), key, None)
            explained += _explain_key((section, name, key), annotation, value, marked)
    return explained


def _explain_key(
    path: Path, annotation: Any, value: Any, marked: Marked | None
) -> list[Explanation]:
    """Explain a key without a default, and every key below it."""
    explained = []
    if meta := find_meta(annotation):
        explained.append(_explain(path, meta, value, None, marked))
    if struct := shape.struct_in(annotation):
        for key, kind in shape.fields_of(struct).items():
            explained += _explain_key((*path, key), kind, getattr(value, key, None), marked)
    return explained


def find_meta(annotation: Any) -> msgspec.Meta | None:
    """Return the description of a key, through unions; None: it has none."""
    inner = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return next((one for one in inner if isinstance(one, msgspec.Meta)), None)
    if get_origin(annotation) in {Union, UnionType}:
        return next(filter(None, map(find_meta, inner)), None)
    return None


def _walk(path: Path, default: Any, value: Any, marked: Marked | None) -> list[Explanation]:
    explained: list[Explanation] = []
    for name, annotation in shape.fields_of(type(default)).items():
        here = (*path, name)
        if isinstance(getattr(default, name), msgspec.Struct):
            explained += _walk(here, getattr(default, name), getattr(value, name), marked)
            continue
        meta = next(one for one in get_args(annotation) if isinstance(one, msgspec.Meta))
        explained.append(_explain(here, meta, getattr(value, name), getattr(default, name), marked))
    return explained


def _explain(
    path: Path, meta: msgspec.Meta, value: Any, default: Any, marked: Marked | None
) -> Explanation:
    line = marked.lines.get(path) if marked else None
    return Explanation(
        shape.dotted(path),
        value,
        default,
        (meta.extra_json_schema or {}).get("x-unit", ""),
        f"{marked.file}:{line}" if marked and line else "default",
        meta.description or "",
    )
