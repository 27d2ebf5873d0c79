"""The keys that documents are encrypted with: where they are, and what they look like."""

import base64
import binascii
import hashlib
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

import msgspec

from rekindle.errors import EngineError
from rekindle.policy import connection
from rekindle.policy.settings import TEXT_BYTES, Codec
from rekindle.system import disk

BYTES = 32
"""AES-256."""
_HEX = re.compile(rf"[0-9A-Fa-f]{{{2 * BYTES}}}", re.ASCII)


class Key(msgspec.Struct, frozen=True):
    secret: bytes

    @property
    def id(self) -> str:
        """Tells keys apart and tells nothing of them; it stands beside what they encrypt."""
        return hashlib.sha256(b"rekindle key\0" + self.secret).hexdigest()[:12]

    def __repr__(self) -> str:
        return f"Key({self.id})"


def new() -> str:
    return base64.b64encode(secrets.token_bytes(BYTES)).decode()


def load(codec: Codec, folder: Path, environ: Mapping[str, str]) -> list[Key]:
    """The keys that the manifest names, in its order: the first one encrypts."""
    texts = {word: secret_of(word, environ) for word in codec.keys}
    for name in codec.key_files:
        texts[name] = disk.read_named(folder / name, TEXT_BYTES).decode("ascii", "replace")
    return [_parsed(text, where) for where, text in texts.items()]


def secret_of(word: str, environ: Mapping[str, str]) -> str:
    """What the variable `$NAME` holds."""
    found = environ.get(connection.variable(word), "").strip()
    if not found:
        raise EngineError(
            "credentials",
            f"the variable {word} is empty or not set here",
            hint="set it where the command is started; rekindle.yaml names it under `fleet:`",
        )
    return found


def _parsed(text: str, where: str) -> Key:
    text = text.strip()
    try:
        if _HEX.fullmatch(text):
            return Key(bytes.fromhex(text))
        found = base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if len(found) != BYTES:
        raise EngineError(
            "keys",
            f"{where} does not hold a key of {BYTES} bytes in base64 or hex",
            hint="make one with `rekindle fleet key`",
        )
    return Key(found)
