"""Validate plain data against a type, and report the line of each mistake.

msgspec does not report where in the file a mistake is. This module walks through the type and the
data together to find the path of the mistake, which has a line number.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from rekindle.errors import ManifestError
from rekindle.formats.yaml_lines import (
    KeyPath,
    MarkedData,
)
from rekindle.thresholds import Unit

T = TypeVar("T")


class Duration(float):
    """A duration in seconds, written as 10s, 15m, 2h or none."""

    __slots__ = ()

    def __str__(self) -> str:
        if self == float("inf"):
            return "none"
        for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
            if self >= size and self % size == 0:
                return f"{int(self // size)}{unit}"
        return f"{int(self)}s" if self.is_integer() else f"{float(self)!r}s"


DURATION_PATTERN = r"^(none|\d+(\.\d+)?[smhd])$"
"""Regular expression for a duration in rekindle.yaml."""
_TYPES = re.compile(r"`((?:\w+ \| )*\w+)`")
_BOUND = re.compile(r"(?<!length) (>|>=|<|<=) (\d+(?:\.\d*[1-9])?)(?:\.0)?$")
_BOUND_WORDS = {">": "above", ">=": "of at least", "<": "below", "<=": "of at most"}
_NOT_A_CHOICE = "Invalid enum value"
_TYPE_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "nothing",
    "object": "a mapping",
    "str": "text",
}
_CORRECT_HINT = "correct the value; `rekindle config explain` lists every key"
_QUOTE_HINT = "put quotes around a time of day, or any other value with a colon"
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def describe_key(meaning: str, unit: Unit | None = None, **bounds: Any) -> msgspec.Meta:
    """Return the metadata for a key in rekindle.yaml: its meaning, unit and bounds."""
    extra = {"x-unit": unit} if unit else None
    return msgspec.Meta(description=meaning, extra_json_schema=extra, **bounds)


def encode_json(value: object) -> bytes:
    """Encode a value as JSON. It may contain durations."""
    return msgspec.json.encode(value, enc_hook=encode_custom)


def decode_json(data: bytes, kind: type[T]) -> T:
    return msgspec.json.decode(data, type=kind, dec_hook=decode_custom)


def parse_duration(text: object) -> Duration:
    if text == "none":
        return Duration("inf")
    if isinstance(text, str) and text[-1:] in _UNITS:
        try:
            amount = float(text[:-1])
        except ValueError:
            amount = -1.0
        if 0 <= amount < float("inf"):
            return Duration(amount * _UNITS[text[-1]])
    raise ValueError(f"expected a duration such as 10s, 15m or 2h, got {text!r}")


def validate_data(marked: MarkedData, kind: type[T], path: KeyPath = ()) -> T:
    """Convert the data at `path` to `kind`. If it is invalid, raise ManifestError with the line."""
    data = marked.data
    for step in path:
        data = data.get(step) if isinstance(data, dict) else None
    if data is None:
        data = {}
    checked = _check_data(marked, data, kind, path)
    return msgspec.convert(checked, kind, dec_hook=decode_custom)


def list_fields(kind: type[msgspec.Struct]) -> Mapping[str, Any]:
    """Return the annotations of a struct's fields, by the names that files use."""
    return _inspect_fields(kind)[0]


@cache
def _inspect_fields(kind: type[msgspec.Struct]) -> tuple[Mapping[str, Any], frozenset[str]]:
    """Return the annotations of a struct's fields by name, and the names of its required fields."""
    hints, fields = get_type_hints(kind, include_extras=True), msgspec.structs.fields(kind)
    required = frozenset(field.encode_name for field in fields if field.required)
    return {field.encode_name: hints[field.name] for field in fields}, required


def find_struct(annotation: Any) -> type[msgspec.Struct] | None:
    """Return the struct in an annotation, or None. Annotated and unions are searched too."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation
    if get_origin(annotation) not in {Union, UnionType, Annotated}:
        return None
    return next(filter(None, map(find_struct, get_args(annotation))), None)


def decode_custom(kind: type, value: object) -> object:
    """Decode a Duration, which msgspec itself does not support."""
    if kind is Duration:
        return parse_duration(value)
    raise NotImplementedError(kind)


def encode_custom(value: object) -> str:
    """Encode a Duration, which msgspec itself does not support."""
    if isinstance(value, Duration):
        return str(value)
    raise NotImplementedError(type(value))


def _check_data(marked: MarkedData, data: Any, annotation: Any, path: KeyPath) -> Any:
    """Validate data for conversion, and drop optional keys without a value."""
    fitting = _choose_option(annotation, data)
    origin = get_origin(fitting)
    if origin is dict and isinstance(data, dict):
        kind = get_args(fitting)[1]
        data = {key: _check_data(marked, value, kind, (*path, key)) for key, value in data.items()}
    elif origin in {list, tuple} and isinstance(data, list):
        kind = get_args(fitting)[0]
        data = [_check_data(marked, data[i], kind, (*path, i)) for i in range(len(data))]
    elif isinstance(data, dict) and (struct := find_struct(annotation)):
        return _check_struct(marked, data, struct, path)
    _check_leaf(marked, data, annotation, path)
    return data


def _choose_option(annotation: Any, data: Any) -> Any:
    """Return the option of a union that matches a list or an object, or else the annotation."""
    if get_origin(annotation) in {Union, UnionType, Annotated}:
        for option in get_args(annotation):
            inner = _choose_option(option, data)
            if get_origin(inner) is type(data):
                return inner
    return annotation


def _check_struct(
    marked: MarkedData, data: dict[str, Any], kind: type[msgspec.Struct], path: KeyPath
) -> dict[str, Any]:
    fields, required = _inspect_fields(kind)
    checked = {}
    for key, value in data.items():
        if key not in fields:
            like = get_close_matches(key, fields, n=1)
            raise ManifestError(
                f"unknown key {join_path((*path, key))!r}",
                file=marked.file,
                line=marked.line((*path, key)),
                hint=f"did you mean `{like[0]}`?" if like else f"known here: {', '.join(fields)}",
            )
        if value is not None or key in required:
            checked[key] = _check_data(marked, value, fields[key], (*path, key))
    for name in fields:
        if name in required and name not in data:
            raise ManifestError(
                f"{join_path(path) or 'the file'} has no {name!r}",
                file=marked.file,
                line=marked.line(path),
                hint=f"add `{name}: …` there",
            )
    if not data and getattr(kind, "NEEDS_KEY", False):
        raise ManifestError(
            f"{join_path(path)} has no value",
            file=marked.file,
            line=marked.line(path),
            hint=_suggest_mapping(kind, None, path),
        )
    return checked


def advise_program(hint: str) -> str:
    """Return the hint of a ManifestError for a program, which has no YAML and no command line."""
    if hint in {_CORRECT_HINT, _QUOTE_HINT}:
        return "use a value that is valid for this key in rekindle.yaml"
    return hint


def _check_leaf(marked: MarkedData, data: Any, annotation: Any, path: KeyPath) -> None:
    try:
        msgspec.convert(data, annotation, dec_hook=decode_custom)
    except ValueError as error:  # includes msgspec.ValidationError
        hint = _CORRECT_HINT
        message, meta = _explain_message(str(error), annotation), _find_pattern(annotation)
        if choices := list(_list_choices(annotation)):
            message = f"expected one of {', '.join(choices)}, got {_render_value(data)}"
        elif isinstance(data, int) and "str" in str(error) and ":" in (meta.pattern or ":"):
            hint = _QUOTE_HINT
        elif meta.pattern and meta.description:
            message = f"{_render_value(data)} is not a valid value"
            hint = f"`{path[-1]}:` means: {meta.description}"
        elif path and not isinstance(data, dict) and (struct := find_struct(annotation)):
            hint = _suggest_mapping(struct, data, path)
        raise ManifestError(
            f"{join_path(path)}: {message}", file=marked.file, line=marked.line(path), hint=hint
        ) from error


def _suggest_mapping(kind: type[msgspec.Struct], data: Any, path: KeyPath) -> str:
    """Return a hint that shows a mapping with its first key, and with the value if that fits."""
    fields = list_fields(kind)
    first, annotation = next(iter(fields.items()))
    try:
        msgspec.convert(data, annotation, dec_hook=decode_custom)
        value = "…" if data is None else _render_value(data)
    except ValueError:
        value = "…"
    key = f"{path[-1]}: " if isinstance(path[-1], str) else ""
    return f"write `{key}{{{first}: {value}}}`; known there: {', '.join(fields)}"


def _render_value(data: Any) -> str:
    return msgspec.json.encode(data).decode() if isinstance(data, int) else repr(data)


def _find_pattern(annotation: Any) -> msgspec.Meta:
    """Return the metadata of a key whose text must match a pattern, or empty metadata."""
    for part in get_args(annotation):
        found = part if isinstance(part, msgspec.Meta) else _find_pattern(part)
        if found.pattern:
            return found
    return msgspec.Meta()


def _explain_message(message: str, annotation: Any) -> str:
    """Return msgspec's message about a value, with types named as in YAML."""
    if message.startswith(_NOT_A_CHOICE) and (choices := list(_list_choices(annotation))):
        value = message.removeprefix(_NOT_A_CHOICE).strip()
        return f"expected one of {', '.join(choices)}, got {value}"
    plain = _TYPES.sub(lambda match: _render_types(match[1]), message)
    plain = _BOUND.sub(lambda match: f" {_BOUND_WORDS[match[1]]} {match[2]}", plain)
    return f"{plain[:1].lower()}{plain[1:]}"


def _list_choices(annotation: Any) -> Iterator[str]:
    """Yield the literal values that an annotation allows, and a switch's values beside them."""
    if get_origin(annotation) is Literal:
        yield from map(str, get_args(annotation))
    elif get_origin(annotation) in {Union, UnionType, Annotated}:
        options = get_args(annotation)
        choices = [choice for option in options for choice in _list_choices(option)]
        yield from (*(("on", "off") if choices and bool in options else ()), *choices)


def _render_types(names: str) -> str:
    """Describe the types in a union without null, which only makes a key optional."""
    types = names.split(" | ")
    named = [_TYPE_WORDS.get(name, name) for name in types if name != "null" or len(types) == 1]
    return " or ".join(named)


def join_path(path: KeyPath) -> str:
    return ".".join(str(step) for step in path)
