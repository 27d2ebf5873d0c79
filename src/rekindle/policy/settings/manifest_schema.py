"""Derive the JSON Schema for rekindle.yaml from the types that parse the manifest."""

from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from rekindle.documents import manifest
from rekindle.documents.manifest import AgentEntry, Manifest
from rekindle.documents.manifest_keys import CommandLine
from rekindle.documents.manifest_pipelines import Pipeline
from rekindle.documents.manifest_routes import HarnessEntry
from rekindle.formats import validation
from rekindle.formats.identifiers import AGENT_NAME
from rekindle.formats.validation import Duration
from rekindle.policy.settings.runtime_settings import (
    AgentDefaults,
    FleetSettings,
    RuntimeSettings,
)

Schema = dict[str, Any]

_PLAIN: dict[Any, Schema] = {
    # YAML 1.2, which editors use, has only `true` and `false`; Rekindle also accepts `on` and
    # `off`.
    bool: {"enum": [True, False, "on", "off", "yes", "no"]},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    NoneType: {"type": "null"},
    Duration: {"type": "string", "pattern": validation.DURATION_PATTERN},
    CommandLine: {
        "anyOf": [
            {"type": "array", "items": {"type": "string"}},
            {"type": "string", "pattern": r"\S"},
        ]
    },
    Any: {},
}
_END = r"\Z"
"""End-of-text anchor in Python regular expressions, which JSON Schema does not support."""
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_ABOUT = ("description", "x-unit")
_WORDS = {"pattern": "pattern", "min_length": "minLength", "description": "description"}


def describe_manifest() -> Schema:
    """Return the JSON Schema for a whole manifest."""
    schema = _describe(Manifest)
    sections = schema["properties"]
    sections["version"]["maximum"] = manifest.SCHEMA
    sections["runtime"] = _allow_null(_describe(RuntimeSettings))
    sections["fleet"] = _allow_null(_describe(FleetSettings))
    entry = _describe(AgentEntry)
    for name, described in _describe(AgentDefaults)["properties"].items():
        entry["properties"][name] |= described
    _allow_harness_list(entry["properties"])
    agents = {"type": "object", "additionalProperties": entry}
    names = {"pattern": f"^{AGENT_NAME.pattern.removesuffix(_END)}$"}
    agents["propertyNames"] = names
    sections["agents"] = _allow_null(agents)
    pipelines = {"type": "object", "additionalProperties": _describe(Pipeline)}
    pipelines["propertyNames"] = names
    sections["pipelines"] = _allow_null(pipelines)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": manifest.MANIFEST_FILE,
        **schema,
    }


def _allow_harness_list(properties: Schema) -> None:
    """Describe the list in `harness:`, which the manifest's reader moves to another field."""
    del properties["harnesses"]
    name = properties["harness"]
    words = {key: name.pop(key) for key in _ABOUT if key in name}
    item = {"anyOf": [_PLAIN[str], _describe(HarnessEntry)]}
    listed = {"type": "array", "items": item, "minItems": 1}
    properties["harness"] = words | {"anyOf": [name, listed]}


def render_schema() -> bytes:
    """Render the JSON Schema as the content of a file."""
    return msgspec.json.format(msgspec.json.encode(describe_manifest()), indent=2) + b"\n"


def _describe(annotation: Any) -> Schema:
    if annotation in _PLAIN:
        return dict(_PLAIN[annotation])
    inner = get_args(annotation)
    compose = _COMPOSED.get(get_origin(annotation))
    return compose(inner) if compose else _describe_struct(annotation)


def _describe_union(options: tuple[Any, ...]) -> Schema:
    described = [_describe(option) for option in options]
    words = {
        key: option_schema.pop(key)
        for option_schema in described
        for key in _ABOUT
        if key in option_schema
    }
    return words | {"anyOf": described}


_COMPOSED: dict[Any, Callable[[tuple[Any, ...]], Schema]] = {
    Annotated: lambda inner: _describe(inner[0]) | _describe_meta(inner[1]),
    Literal: lambda inner: {"enum": list(inner)},
    Union: _describe_union,
    UnionType: _describe_union,
    list: lambda inner: {"type": "array", "items": _describe(inner[0])},
    dict: lambda inner: {"type": "object", "additionalProperties": _describe(inner[1])},
}


def _describe_struct(kind: type[msgspec.Struct]) -> Schema:
    properties: Schema = {}
    required = []
    annotations = validation.list_fields(kind)
    for field in msgspec.structs.fields(kind):
        described = _describe(annotations[field.encode_name])
        if field.required:
            required.append(field.encode_name)
        else:
            described = _allow_null(described)
        if isinstance(field.default, bool | int | float | str) and field.default != "":
            is_duration = isinstance(field.default, Duration)
            described["default"] = str(field.default) if is_duration else field.default
        properties[field.encode_name] = described
    least = {"minProperties": 1} if getattr(kind, "NEEDS_KEY", False) else {}
    return least | {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _allow_null(described: Schema) -> Schema:
    """Return the schema with null allowed, because a key without a value counts as missing."""
    words = {key: described.pop(key) for key in _ABOUT if key in described}
    options = [
        option for option in described.get("anyOf", [described]) if option != _PLAIN[NoneType]
    ]
    return words | {"anyOf": [*options, _PLAIN[NoneType]]}


def _describe_meta(meta: msgspec.Meta) -> Schema:
    described = {
        word: value
        for name, word in {**_BOUNDS, **_WORDS}.items()
        if (value := getattr(meta, name)) is not None
    }
    return described | (meta.extra_json_schema or {})
