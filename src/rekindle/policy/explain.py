"""Every setting and threshold with its value, unit, origin and meaning."""

from difflib import get_close_matches
from typing import Any, get_args

import msgspec

from rekindle.documents import shape
from rekindle.documents.manifest import Manifest
from rekindle.documents.yamltext import Marked, Path
from rekindle.errors import NotFoundError
from rekindle.policy.settings import AgentDefaults, Fleet, Runtime, resolve
from rekindle.thresholds import FIXED


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
        tails = {one.key.rsplit(".", 1)[1] for one in every} | {one.key for one in every}
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
    path = ("agents", name or "NAME")
    return _walk(path, defaults, msgspec.structs.replace(defaults, **own), marked)


def _walk(path: Path, default: Any, value: Any, marked: Marked | None) -> list[Explanation]:
    explained: list[Explanation] = []
    for name, annotation in shape.fields_of(type(default)).items():
        here = (*path, name)
        if isinstance(getattr(default, name), msgspec.Struct):
            explained += _walk(here, getattr(default, name), getattr(value, name), marked)
            continue
        line = marked.lines.get(here) if marked else None
        meta = next(one for one in get_args(annotation) if isinstance(one, msgspec.Meta))
        explained.append(
            Explanation(
                shape.dotted(here),
                getattr(value, name),
                getattr(default, name),
                (meta.extra_json_schema or {}).get("x-unit", ""),
                f"{marked.file}:{line}" if marked and line else "default",
                meta.description or "",
            )
        )
    return explained
