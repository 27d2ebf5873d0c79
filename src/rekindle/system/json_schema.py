"""Validate JSON documents with jsonschema, an optional dependency.

An agent writes the document, and checking it may take forever: a pattern in the schema can take
exponential time on some strings. The check therefore runs in a separate process with a time limit.
It never fetches a schema from the network.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import islice
from typing import Any

import msgspec

from rekindle.errors import ContractError, DocumentError
from rekindle.formats import json_codec
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.pipelines.contract_checks import SchemaProblem
from rekindle.thresholds.pipeline_limits import (
    CONTRACT_BYTES,
    SCHEMA_PROBLEMS,
    SCHEMA_SECONDS,
    SCHEMA_VALUE_CHARACTERS,
)

INSTALL_HINT = "pip install 'rekindle-agents[schema]'"
_SELF_EXPLAINING = frozenset({"required", "additionalProperties", "unevaluatedProperties"})
"""Keywords for which jsonschema's own message does not start with the whole value."""


def require_validator() -> None:
    """Raise ContractError if jsonschema is not installed."""
    try:
        is_installed = find_spec("jsonschema") is not None
    except ValueError:  # `sys.modules` contains None for jsonschema
        is_installed = False
    if not is_installed:
        raise ContractError(
            "the contract `json_schema` needs the package jsonschema, which is not installed",
            hint=INSTALL_HINT,
        )


def require_usable_schema(schema: str, file: str) -> None:
    """Refuse text that is not a JSON Schema, or a schema that needs another file.

    Raises:
        ContractError: jsonschema is not installed, or the schema in `file` cannot be used.
    """
    require_validator()
    reason = _explain_schema(schema)
    if reason:
        raise ContractError(
            f"the schema {reason}",
            file=file,
            hint="write a JSON Schema; copy other schemas that it refers to into `$defs`",
        )


def find_schema_problems(document: bytes, schema: str) -> list[SchemaProblem]:
    """Return how a document differs from a schema.

    At most `SCHEMA_PROBLEMS` + 1 problems are returned. If the document cannot be checked, that is
    the only problem.

    Raises:
        ContractError: jsonschema is not installed.
    """
    require_validator()
    message = {"document": document.decode("utf-8", "replace"), "schema": schema}
    try:
        answer = subprocess.run(  # noqa: S603 - fixed arguments
            [sys.executable, "-P", "-m", __name__],
            input=json.dumps(message).encode(),
            capture_output=True,
            timeout=SCHEMA_SECONDS,
            check=True,
        )
        return msgspec.json.decode(answer.stdout, type=list[SchemaProblem])
    except subprocess.TimeoutExpired:
        return [SchemaProblem((), f"could not be checked in {SCHEMA_SECONDS:g} seconds")]
    except (OSError, subprocess.CalledProcessError, msgspec.MsgspecError) as error:
        return [SchemaProblem((), f"could not be checked: {type(error).__name__}")]


def _explain_schema(schema: str) -> str:
    """Return why a schema cannot be used, or ""."""
    import jsonschema  # type: ignore[import-untyped] # noqa: PLC0415 - an extra, and slow to load

    if len(schema.encode("utf-8", "replace")) > CONTRACT_BYTES:
        return f"is larger than {CONTRACT_BYTES:,} bytes"
    try:
        parsed = json_codec.decode(schema.encode("utf-8", "replace"), "schema")
        jsonschema.validators.validator_for(parsed, _find_default()).check_schema(parsed)
    except DocumentError as error:
        return error.reason
    except (jsonschema.SchemaError, RecursionError) as error:
        return f"is not valid: {_shorten(getattr(error, 'message', 'it is nested too deeply'))}"
    known = {value for key, value in _walk_texts(parsed) if key in {"$id", "id"}}
    for key, value in _walk_texts(parsed):
        address = value.partition("#")[0]
        if key == "$ref" and "://" in address and not _is_known(address, known):
            return f"refers to {_shorten(value)!r}, which Rekindle does not fetch"
    return ""


def _find_default() -> Any:
    import jsonschema  # noqa: PLC0415 - an extra, and slow to load

    return jsonschema.Draft202012Validator


def _is_known(address: str, known: set[str]) -> bool:
    """Return whether an address is defined in the schema itself or by the JSON Schema standard."""
    from jsonschema_specifications import (  # type: ignore[import-untyped] # noqa: PLC0415 - extra
        REGISTRY,
    )

    return address in {name.partition("#")[0] for name in known} or address in REGISTRY


def _walk_texts(value: Any) -> Iterator[tuple[str, str]]:
    """Yield every key that has a string value, at any depth."""
    open_values = [value]
    while open_values:
        inner = open_values.pop()
        if isinstance(inner, dict):
            yield from ((key, text) for key, text in inner.items() if isinstance(text, str))
            open_values.extend(inner.values())
        elif isinstance(inner, list):
            open_values.extend(inner)


def main() -> None:
    """Check a document in a separate process: read it and the schema, and print the problems."""
    message = json.load(sys.stdin)
    problems = _compare(message["document"].encode(), message["schema"].encode())
    sys.stdout.buffer.write(msgspec.json.encode(problems))


def _compare(document: bytes, schema: bytes) -> list[SchemaProblem]:
    import jsonschema  # noqa: PLC0415 - an extra, and slow to load
    from referencing import Registry  # noqa: PLC0415 - comes with jsonschema
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - as above

    parsed = json_codec.decode(schema, "schema")
    kind = jsonschema.validators.validator_for(parsed, _find_default())
    # The default registry fetches unknown schemas from the network; an empty one does not.
    validator = kind(parsed, registry=Registry())
    try:
        errors = validator.iter_errors(json_codec.decode(document, "document"))
        return [
            SchemaProblem(tuple(error.absolute_path), _explain_error(error))
            for error in islice(errors, SCHEMA_PROBLEMS + 1)
        ]
    except Unresolvable as error:
        return [SchemaProblem((), f"could not be checked: the schema refers to {_shorten(error)}")]
    except RecursionError:
        return [SchemaProblem((), "could not be checked, because it is nested too deeply")]


def _explain_error(error: Any) -> str:
    """Describe in one line what is wrong with a value and what the schema expects."""
    if error.validator in _SELF_EXPLAINING:
        return _shorten(error.message)
    shown = _shorten(json.dumps(error.instance, ensure_ascii=False))
    if error.validator is None:
        # The schema is `false`, and jsonschema returns the path of the surrounding object.
        return f"has {shown}, but this value is not allowed"
    expected = _shorten(json.dumps(error.validator_value, ensure_ascii=False))
    return f"is {shown}, expected {error.validator}: {expected}"


def _shorten(value: object) -> str:
    return to_one_line(str(value), SCHEMA_VALUE_CHARACTERS)


if __name__ == "__main__":
    main()
