"""Events as JSON for programs, printed by `events`, `run` and `pipeline logs` with `--json`.

Each printed line is a line from the log, plus the agent's name. Numbers are rounded in the output,
but not in the log.
"""

from typing import Any

import msgspec

_SECONDS_DIGITS = 3
_USD_DIGITS = 4
"""Number of decimal places in dollar amounts. A turn can cost less than a cent."""


def render_output(line: bytes, agent: str) -> bytes:
    """Convert a line from an agent's log to `--json` output."""
    fields = msgspec.json.decode(line)
    return msgspec.json.encode({"v": fields["v"], "agent": agent} | round_numbers(fields))


def render_pipeline_output(
    line: bytes, *, pipeline: str, run: int, step: str, worker: str, agent: str
) -> bytes:
    """Convert a line from a pipeline run's or a worker's log to `--json` output.

    Every line starts with the same keys. A key without a value is null.
    """
    fields = msgspec.json.decode(line)
    places = {"step": step or None, "worker": worker or None, "agent": agent or None}
    return msgspec.json.encode(
        {"v": fields["v"], "pipeline": pipeline, "run": run, **places}
        | {name: value for name, value in round_numbers(fields).items() if name not in places}
    )


def round_numbers(value: Any, key: str = "") -> Any:
    """Round the floats in a JSON value: seconds to 0.001, dollars to 0.0001."""
    match value:
        case float():
            return round(value, _USD_DIGITS if key.endswith("usd") else _SECONDS_DIGITS)
        case dict():
            return {name: round_numbers(item, name) for name, item in value.items()}
        case list():
            return [round_numbers(item, key) for item in value]
        case _:
            return value
