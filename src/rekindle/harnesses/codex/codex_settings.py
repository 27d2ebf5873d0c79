"""Render Codex settings as command-line options."""

import json

from rekindle.errors import ManifestError
from rekindle.thresholds.supervision import ARGUMENT_BYTES


def render_setting(name: str, value: object) -> str:
    """Return the option for a setting, as one argument."""
    return f"--config={name}={_render_toml(value)}"


def _render_toml(value: object) -> str:
    match value:
        case dict():
            pairs = (f"{_render_toml(key)}={_render_toml(each)}" for key, each in value.items())
            return f"{{{','.join(pairs)}}}"
        case list():
            return f"[{','.join(map(_render_toml, value))}]"
        case _:
            # A JSON string is also a valid TOML string, except for DEL.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def render_instructions(words: str) -> str:
    """Return the option that adds instructions to the model's own.

    Raises:
        ManifestError: The instructions are too long for an argument.
    """
    setting = render_setting("developer_instructions", words)
    if len(setting.encode()) > ARGUMENT_BYTES:
        raise ManifestError(
            f"the system prompt is too long for Codex, which accepts {ARGUMENT_BYTES:,} bytes",
            hint="shorten it, or move a part into the agent's `rules:`",
        )
    return setting
