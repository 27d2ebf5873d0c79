"""Redaction of what a store keeps: texts, bytes, whole events."""

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

# What tells events, sessions, files and hosts apart. Without these nothing could be found again.
_NAMES = frozenset(
    "at sha256 previous path session call harness launch agent host by document added"
    " transcript process boot exit source tool told morning question origin effect".split()
)
_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9._]+")


class Redaction(msgspec.Struct, frozen=True):
    """The rules with a project's own exceptions."""

    allow: tuple[str, ...] = ()

    def text(self, text: str) -> str:
        if len(text) < REDACT_SHORTEST:
            return text
        # The patterns take longer to compile than a status takes to print: only who needs them
        # pays.
        from rekindle.policy.redact.find_secrets import redact_text  # noqa: PLC0415 - see above

        return redact_text(text, self.allow)

    def data(self, data: bytes) -> bytes:
        """Bytes that are mostly text: what is not UTF-8 passes as it is."""
        text = data.decode("utf-8", "surrogateescape")
        cleaned = self.text(text)
        return data if cleaned == text else cleaned.encode("utf-8", "surrogateescape")

    def count(self, before: bytes, after: bytes) -> int:
        """How many placeholders a text has that it did not come with."""
        mark = _PLACEHOLDER.encode()
        return max(0, after.count(mark) - before.count(mark))

    def identity(self, identity: str) -> str:
        """An id without its secret, and still one that a command line takes."""
        cleaned = self.text(identity)
        return identity if cleaned == identity else _NOT_IN_AN_ID.sub("-", cleaned).strip("-.")

    def event(self, event: E) -> E:
        """The event without secrets; what only names something is left alone."""
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
        """A JSON document, text by text: whatever goes, it stays one."""
        raw = msgspec.json.decode(data)
        try:
            cleaned = self._redact_tree(raw)
        except RecursionError as error:
            raise DocumentError("JSON", "is nested too deeply") from error
        return data if cleaned == raw else msgspec.json.encode(cleaned)

    def _redact_as(self, kind: Any, value: Any) -> Any:
        plain = msgspec.to_builtins(value)
        cleaned = self._redact_tree(plain)
        return value if cleaned == plain else msgspec.convert(cleaned, kind)

    def _redact_tree(self, value: Any, name: str = "") -> Any:
        """Every text in it, each beside the name that it goes by: the name may make it a secret."""
        if isinstance(value, dict):
            return {self.text(key): self._redact_tree(one, key) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self._redact_tree(one, name) for one in value]
        if not isinstance(value, str) or not value:
            return value
        named = json.dumps({name: value}, ensure_ascii=False)
        cleaned = self.text(named)
        return value if cleaned == named else next(iter(json.loads(cleaned).values()))


@cache
def _list_text_fields(kind: type[Event]) -> tuple[tuple[str, Any], ...]:
    """The fields of an event that may hold what somebody wrote."""
    return tuple(
        (field.name, field.type)
        for field in msgspec.structs.fields(kind)
        if field.name not in _NAMES
        and field.name not in {"ts", "v", "seq", "gen", "last_active"}
        and field.type not in {int, bool}
    )
