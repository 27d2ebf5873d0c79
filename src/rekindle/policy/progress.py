"""Progress: whether the work of a launch, or a cycle, moved forward.

Restarts, pauses, spending, the verdict on a cycle and the stall ladder are measured by it. `ROWS`
is the table; the documentation prints it.
"""

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from rekindle.documents.event import WorkSigns
from rekindle.policy.artefacts import is_artefact
from rekindle.policy.settings import PROGRESS_NAMES, PROGRESS_SAME

_NUMBER = re.compile(r"\d+")


class Row(msgspec.Struct, frozen=True):
    words: str
    fits: Callable[[WorkSigns, Sequence[WorkSigns]], bool]


def constant_artefacts(before: Sequence[WorkSigns]) -> set[str]:
    """Return the names of artefacts that change every time: another change is not progress.

    A launch that changed nothing is left out: else one failure in between would make progress of a
    file that is appended to every time.
    """
    others = [set(one.artefacts) for one in before if one.artefacts][1 - PROGRESS_SAME :]
    return set.intersection(*others) if len(others) == PROGRESS_SAME - 1 else set()


def _new_artefacts(signs: WorkSigns, before: Sequence[WorkSigns]) -> set[str]:
    return set(signs.artefacts) - constant_artefacts(before)


ROWS = (
    Row("a commit", lambda signs, _: signs.commits > 0),
    Row("a resolved loop", lambda signs, _: signs.resolved > 0),
    Row("a new decision", lambda signs, _: signs.decisions > 0),
    Row("a relay that asks for something else", lambda signs, _: signs.asks_else),
    Row(
        "an artefact that does not change every time",
        lambda signs, before: bool(_new_artefacts(signs, before)),
    ),
)


def progress(signs: WorkSigns | None, before: Sequence[WorkSigns] = ()) -> str:
    """Return which progress the signs show, or an empty string if there is none.

    `before` are the signs of the launches, or of the cycles, before it, oldest first.
    """
    if signs is None:
        return ""
    return next((row.words for row in ROWS if row.fits(signs, before)), "")


def describe_work(signs: WorkSigns, before: Sequence[WorkSigns] = ()) -> str:
    """Return the progress beside the relay in words, or an empty string if there is none.

    It is empty exactly if `progress` finds none, or only that the relay asks for something else.
    """
    counts = {
        "commit": signs.commits,
        "changed file": len(_new_artefacts(signs, before)),
        "decision": signs.decisions,
        "resolved loop": signs.resolved,
    }
    return ", ".join(
        f"{count} {what}{'' if count == 1 else 's'}" for what, count in counts.items() if count
    )


def artefact_names(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the names by which changed results are compared.

    A number in a name makes no difference: `run-17.txt` after `run-16.txt` is the same result.
    """
    found = {artefact_name(path) for path in paths if is_artefact(path)}
    return tuple(sorted(found)[:PROGRESS_NAMES])


def artefact_name(path: str) -> str:
    """Return the name by which one changed result is compared."""
    return _NUMBER.sub("#", path)
