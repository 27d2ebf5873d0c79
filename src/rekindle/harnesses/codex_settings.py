"""Settings of Codex, as its command line takes them."""

import json

from rekindle.errors import ManifestError
from rekindle.thresholds.running import ARGUMENT_BYTES


def setting(name: str, value: object) -> str:
    """One of them, joined to its value."""
    return f"--config={name}={_toml(value)}"


def _toml(value: object) -> str:
    match value:
        case dict():
            return f"{{{','.join(f'{_toml(key)}={_toml(each)}' for key, each in value.items())}}}"
        case list():
            return f"[{','.join(map(_toml, value))}]"
        case _:
            # A string of JSON is one of TOML, but for this character.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def instructions(words: str) -> str:
    """The setting that tells its model more than the prompt.

    Raises:
        ManifestError: They are longer than an argument can be.
    """
    made = setting("developer_instructions", words)
    if len(made.encode()) > ARGUMENT_BYTES:
        raise ManifestError(
            f"the system prompt is too long for Codex: more than {ARGUMENT_BYTES:,} bytes",
            hint="shorten it, or put the rest into the agent's `rules:`",
        )
    return made
