"""Read and generate the keys that encrypt documents in the engine."""

import base64
import binascii
import hashlib
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

import msgspec

from rekindle.errors import EngineError
from rekindle.policy.settings.runtime_settings import TEXT_BYTES, CodecSettings
from rekindle.system.files import durable_files

KEY_BYTES = 32
"""Length of an AES-256 key, in bytes."""
_HEX = re.compile(rf"[0-9A-Fa-f]{{{2 * KEY_BYTES}}}", re.ASCII)


class EncryptionKey(msgspec.Struct, frozen=True):
    secret: bytes

    @property
    def id(self) -> str:
        """Return the key's public id, stored with each payload. It does not reveal the key."""
        return hashlib.sha256(b"rekindle key\0" + self.secret).hexdigest()[:12]

    def __repr__(self) -> str:
        return f"Key({self.id})"


def generate_key() -> str:
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def load_keys(
    codec: CodecSettings, folder: Path, environ: Mapping[str, str]
) -> list[EncryptionKey]:
    """Return the keys that the manifest names, in the same order. The first key encrypts."""
    texts = {word: read_secret(word, environ) for word in codec.keys}
    for name in codec.key_files:
        texts[name] = durable_files.read_user_file(folder / name, TEXT_BYTES).decode(
            "ascii", "replace"
        )
    return [_parse_key(text, where) for where, text in texts.items()]


def read_secret(word: str, environ: Mapping[str, str]) -> str:
    """Return the value of an environment variable. `word` is its name, with a leading `$`."""
    secret = environ.get(word.removeprefix("$"), "").strip()
    if not secret:
        raise EngineError(
            "credentials",
            f"the variable {word} is empty or not set",
            hint="set it in the environment of this command; `fleet:` in rekindle.yaml names it",
        )
    return secret


def _parse_key(text: str, where: str) -> EncryptionKey:
    text = text.strip()
    try:
        if _HEX.fullmatch(text):
            return EncryptionKey(bytes.fromhex(text))
        secret = base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) != KEY_BYTES:
        raise EngineError(
            "keys",
            f"{where} does not contain a key of {KEY_BYTES} bytes in base64 or hex",
            hint="create one with `rekindle fleet key`",
        )
    return EncryptionKey(secret)
