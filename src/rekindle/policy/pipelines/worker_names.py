"""Derive the name of the agent that works on a pipeline step.

The name is derived from the run, the step and the item, and is never random. If a coordinator is
killed while it creates an agent, the next one finds the same agent.
"""

import hashlib
import re
from collections.abc import Collection, Iterable

_NAME_CHARACTERS = 63
_RUN_DIGITS = 6
_HASH_CHARACTERS = 6
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
NAME_ROOM = _NAME_CHARACTERS - _RUN_DIGITS - _HASH_CHARACTERS - 3
"""Maximum length of a pipeline's name and a step's id together. The rest of an agent's name
contains the run's number and a hash, each after a hyphen.
"""


def name_worker(
    pipeline: str, run: int, step: str, key: str = "", steps: Collection[str] = ()
) -> str:
    """Return the name of a worker's agent: `PIPELINE-RUN-STEP`, and `-KEY` for an item.

    `steps` are the ids of all steps in the pipeline. The name ends with a hash if it is too long,
    or if it could also be the name of another step's worker.
    """
    start = f"{pipeline}-{run}"
    plain = f"{step}-{key}" if key else step
    is_ambiguous = key and any(
        other != step and f"{plain}-".startswith(f"{other}-") for other in steps
    )
    name = f"{start}-{plain}"
    if len(name) <= _NAME_CHARACTERS and not is_ambiguous:
        return name
    kept = name[: _NAME_CHARACTERS - _HASH_CHARACTERS - 1].rstrip("-_")
    return f"{kept}-{hash_words(pipeline, str(run), step, key)}"


def hash_words(*words: str) -> str:
    """Return a short hash that differs for different lists of words."""
    digest = hashlib.sha256("\0".join(words).encode("utf-8", "replace")).digest()
    number = int.from_bytes(digest, "big")
    characters = []
    for _ in range(_HASH_CHARACTERS):
        number, digit = divmod(number, len(_DIGITS))
        characters.append(_DIGITS[digit])
    return "".join(characters)


def is_worker_name(name: str, pipeline: str) -> bool:
    """Return whether a worker of this pipeline could have this name."""
    return re.match(rf"{re.escape(pipeline)}-\d+-[a-z]", name, re.ASCII) is not None


def find_last_run(names: Iterable[str], pipeline: str) -> int:
    """Return the highest run number in these worker and branch names, or 0.

    A project that was moved has a new run folder, but the names of its logs and branches still
    contain the numbers of earlier runs.
    """
    pattern = re.compile(rf"{re.escape(pipeline)}[-/](\d{{1,{_RUN_DIGITS}}})(?:[-/]|\Z)", re.ASCII)
    return max((int(match[1]) for match in map(pattern.match, names) if match), default=0)
