"""Redact text, bytes and events before a store writes them."""

import json
import re
from functools import cache
from typing import Any, TypeVar

import msgspec

from rekindle.documents.events import Event
from rekindle.errors import DocumentError
from rekindle.policy.settings.runtime_settings import REDACT_SHORTEST

E = TypeVar("E", bound=Event)
_PLACEHOLDER = "[redacted:"

# Fields that identify events, sessions, files and hosts. After redaction, they could not be looked
# up.
_NAMES = frozenset(
    "at sha256 previous path session call harness launch agent host by document added"
    " transcript process boot exit source tool covered morning question origin effect".split()
)
_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9._]+")


class Redaction(msgspec.Struct, frozen=True):
    """The redaction rules, and a project's exceptions to them."""

    allow: tuple[str, ...] = ()

    def text(self, text: str) -> str:
        if len(text) < REDACT_SHORTEST:
            return text
        # Compiling the patterns takes longer than printing a status, so they are imported on first
        # use.
        from rekindle.policy.redact.find_secrets import redact_text  # noqa: PLC0415 - see above

        return redact_text(text, self.allow)

    def data(self, data: bytes) -> bytes:
        """Return the redacted bytes. Parts that are not UTF-8 stay unchanged."""
        text = data.decode("utf-8", "surrogateescape")
        cleaned = self.text(text)
        return data if cleaned == text else cleaned.encode("utf-8", "surrogateescape")

    def count(self, before: bytes, after: bytes) -> int:
        """Count the placeholders that redacting a text adds."""
        mark = _PLACEHOLDER.encode()
        return max(0, after.count(mark) - before.count(mark))

    def identity(self, identity: str) -> str:
        """Redact an id, and return it in a form that is safe on a command line."""
        cleaned = self.text(identity)
        return identity if cleaned == identity else _NOT_IN_AN_ID.sub("-", cleaned).strip("-.")

    def event(self, event: E) -> E:
        """Redact an event, except for fields that only identify something."""
        changed: dict[str, Any] = {}
        for name, kind in _list_text_fields(type(event)):
            value = getattr(event, name)
            if not value:
                continue
            if isinstance(value, str):
                cleaned: Any = self.identity(value) if name == "id" else self.text(value)
            else:
                cleaned = self._redact_as(kind, value)
            if cleaned != value:
                changed[name] = cleaned
        return msgspec.structs.replace(event, **changed) if changed else event

    def json(self, data: bytes) -> bytes:
        """Redact JSON. Each string is redacted separately, so the result is valid JSON."""
        try:
            raw = msgspec.json.decode(data)
            cleaned = self._redact_tree(raw)
        except RecursionError as error:
            raise DocumentError("JSON", "is nested too deeply") from error
        return data if cleaned == raw else msgspec.json.encode(cleaned)

    def _redact_as(self, kind: Any, value: Any) -> Any:
        plain = msgspec.to_builtins(value)
        cleaned = self._redact_tree(plain)
        return value if cleaned == plain else msgspec.convert(cleaned, kind)

    def _redact_tree(self, value: Any, name: str = "") -> Any:
        """Redact every string in a value. A key may show that its value is a secret."""
        if isinstance(value, dict):
            return {self.text(key): self._redact_tree(item, key) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._redact_tree(item, name) for item in value]
        if not isinstance(value, str) or not value:
            return value
        pair = json.dumps({name: value}, ensure_ascii=False)
        cleaned = self.text(pair)
        return value if cleaned == pair else next(iter(json.loads(cleaned).values()))


@cache
def _list_text_fields(kind: type[Event]) -> tuple[tuple[str, Any], ...]:
    """Return the event fields that may contain text from a person or a program."""
    return tuple(
        (field.name, field.type)
        for field in msgspec.structs.fields(kind)
        if field.name not in _NAMES
        and field.name not in {"ts", "v", "seq", "gen", "last_active"}
        and field.type not in {int, bool}
    )
