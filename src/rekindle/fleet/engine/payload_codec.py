"""Encrypt payloads so that the engine cannot read the documents that it stores.

The cipher is AES-256-GCM with a random nonce for each payload. The whole payload is encrypted,
including its type. The key id, which is stored next to the payload, and the workflow are
authenticated: the engine cannot pass off a payload as encrypted with another key or as belonging to
another agent.
"""

import copy
import re
import secrets
from collections.abc import Collection, Sequence
from typing import Self

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    ActivitySerializationContext,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
)

from rekindle.errors import CodecKeyError, DocumentError, PlainTextError
from rekindle.fleet.engine.encryption_keys import EncryptionKey

ENCODING = b"binary/encrypted"
REFUSED_ENCODING = b"rekindle/refused"
"""Encoding of the placeholder that `decode` returns for a refused payload."""
_KEY_ID = "rekindle-key"
_NONCE_BYTES = 12
_SCHEDULED = re.compile(r"-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", re.ASCII)
"""Pattern for the time that the engine appends to the id of a scheduled workflow."""


class EncryptingCodec(PayloadCodec, WithSerializationContext):
    """Encrypts with the first key and decrypts with any key, so keys can be rotated."""

    def __init__(self, keys: Sequence[EncryptionKey], *, strict: bool = True) -> None:
        """Create a codec. Without keys, nothing is encrypted.

        With keys and `strict`, plain text is refused.
        """
        self._first = keys[0].id if keys else ""
        self._ciphers = {key.id: AESGCM(key.secret) for key in keys}
        self.is_strict = strict and bool(keys)
        self._workflow = ""

    @property
    def known(self) -> Collection[str]:
        """Return the ids of all keys."""
        return self._ciphers.keys()

    def with_context(self, context: SerializationContext) -> Self:
        """Return a codec for the payloads from one workflow and its activities."""
        bound = copy.copy(self)
        if isinstance(context, WorkflowSerializationContext | ActivitySerializationContext):
            workflow = _SCHEDULED.sub("", context.workflow_id or "")
            bound._workflow = f"{context.namespace} {workflow}"  # noqa: SLF001 - of the same class
        return bound

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return (
            [self._encrypt_payload(payload) for payload in payloads]
            if self._first
            else list(payloads)
        )

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._decrypt_or_refuse(payload) for payload in payloads]

    def _decrypt_or_refuse(self, payload: Payload) -> Payload:
        """Return the decrypted payload, or a refusal that raises an error when it is converted.

        An error here would make the workflow's task fail repeatedly. An error during conversion
        rejects a forged update or drops a forged signal, and the agent continues.
        """
        try:
            return self._decrypt_payload(payload)
        except CodecKeyError as error:
            return _make_refusal("key", error.wanted, *self._ciphers)
        except PlainTextError as error:
            return _make_refusal("plain", error.workflow)
        except DocumentError:
            return _make_refusal("changed")

    def _encrypt_payload(self, payload: Payload) -> Payload:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = self._ciphers[self._first].encrypt(
            nonce, payload.SerializeToString(), self._make_authenticated_data(self._first)
        )
        return Payload(
            metadata={"encoding": ENCODING, _KEY_ID: self._first.encode()}, data=nonce + sealed
        )

    def _decrypt_payload(self, payload: Payload) -> Payload:
        key_id = find_key_id(payload)
        if key_id is None:
            if self.is_strict:
                raise PlainTextError(self._workflow)
            return payload
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise CodecKeyError(key_id, self._ciphers)
        nonce, sealed = payload.data[:_NONCE_BYTES], payload.data[_NONCE_BYTES:]
        try:
            return Payload.FromString(
                cipher.decrypt(nonce, sealed, self._make_authenticated_data(key_id))
            )
        except (InvalidTag, ValueError, DecodeError) as changed:
            raise _make_changed_error() from changed

    def _make_authenticated_data(self, key: str) -> bytes:
        return f"rekindle 2 {key} {self._workflow}".encode()


def require_accepted(payload: Payload) -> None:
    """Raise the error for a payload that the codec has refused."""
    if payload.metadata.get("encoding") != REFUSED_ENCODING:
        return
    why, *facts = msgspec.json.decode(payload.data, type=list[str])
    match why:
        case "key":
            raise CodecKeyError(facts[0], facts[1:])
        case "plain":
            raise PlainTextError(facts[0])
        case _:
            raise _make_changed_error()


def _make_refusal(why: str, *facts: str) -> Payload:
    return Payload(metadata={"encoding": REFUSED_ENCODING}, data=msgspec.json.encode([why, *facts]))


def _make_changed_error() -> DocumentError:
    return DocumentError(
        "a document in the engine",
        "was modified, or belongs to another agent",
        hint="check who can write to the engine's database, and restore it from a backup",
    )


def find_key_id(payload: Payload) -> str | None:
    """Return the id of the key that encrypts a payload, or None for plain text."""
    if payload.metadata.get("encoding") != ENCODING:
        return None
    return payload.metadata.get(_KEY_ID, b"").decode("ascii", "replace")
