"""Documents are encrypted before the engine sees them: it keeps and shows what it cannot read.

AES-256-GCM, with a random nonce for each payload. What is encrypted is the whole payload, so that
not even its kind can be seen. The key's id stands beside it, and is part of what is authenticated:
nobody can pass off one key's payload as another's.
"""

import secrets
from collections.abc import Collection, Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec

from rekindle.errors import CodecKeyError, DocumentError
from rekindle.fleet.keys import Key

ENCODING = b"binary/encrypted"
_KEY_ID = "rekindle-key"
_NONCE_BYTES = 12


class Codec(PayloadCodec):
    """The first key encrypts, all of them decrypt: so one follows another without a pause.

    What is not encrypted passes, so that a fleet can begin with it while its agents go on.
    """

    def __init__(self, keys: Sequence[Key]) -> None:
        self._first = keys[0].id
        self._ciphers = {key.id: AESGCM(key.secret) for key in keys}

    @property
    def known(self) -> Collection[str]:
        """The ids of the keys."""
        return self._ciphers.keys()

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._encrypted(one) for one in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._decrypted(one) for one in payloads]

    def _encrypted(self, payload: Payload) -> Payload:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = self._ciphers[self._first].encrypt(
            nonce, payload.SerializeToString(), _authenticated(self._first)
        )
        return Payload(
            metadata={"encoding": ENCODING, _KEY_ID: self._first.encode()}, data=nonce + sealed
        )

    def _decrypted(self, payload: Payload) -> Payload:
        wanted = key_of(payload)
        if wanted is None:
            return payload
        cipher = self._ciphers.get(wanted)
        if cipher is None:
            raise CodecKeyError(wanted, self._ciphers)
        nonce, sealed = payload.data[:_NONCE_BYTES], payload.data[_NONCE_BYTES:]
        try:
            return Payload.FromString(cipher.decrypt(nonce, sealed, _authenticated(wanted)))
        except (InvalidTag, ValueError, DecodeError) as changed:
            raise DocumentError(
                "what the engine keeps",
                "was changed since it was encrypted",
                hint="look at who can write to the engine's database; a backup has it as it was",
            ) from changed


def key_of(payload: Payload) -> str | None:
    """The id of the key that it is encrypted with; None if it can be read as it is."""
    if payload.metadata.get("encoding") != ENCODING:
        return None
    return payload.metadata.get(_KEY_ID, b"").decode("ascii", "replace")


def _authenticated(key: str) -> bytes:
    return b"rekindle 1 " + key.encode()
