"""Events as JSON for programs: `rekindle events --json` and `rekindle run --json`.

Each printed line is a line of the log, with the agent's name added and its numbers rounded. The log
keeps measurements in full; the output has only their significant digits.
"""

from typing import Any

import msgspec

_SECONDS_DIGITS = 3
_USD_DIGITS = 4
"""Number of decimal places of dollar amounts: a turn of a small model costs less than a cent."""


def render_output(line: bytes, agent: str) -> bytes:
    """Return a line of an agent's log in the form that programs read."""
    fields = msgspec.json.decode(line)
    return msgspec.json.encode({"v": fields["v"], "agent": agent} | round_numbers(fields))


def round_numbers(value: Any, key: str = "") -> Any:
    """Return a JSON value whose floats are rounded: seconds to 0.001, dollars to 0.0001."""
    match value:
        case float():
            return round(value, _USD_DIGITS if key.endswith("usd") else _SECONDS_DIGITS)
        case dict():
            return {name: round_numbers(item, name) for name, item in value.items()}
        case list():
            return [round_numbers(item, key) for item in value]
        case _:
            return value
