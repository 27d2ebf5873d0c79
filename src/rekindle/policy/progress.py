"""Progress: whether the work of a launch, or a cycle, moved forward.

Restarts, pauses and spending are measured by it. `ROWS` is the table; the documentation prints it.
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


def _changes_another_artefact(signs: WorkSigns, before: Sequence[WorkSigns]) -> bool:
    """Return whether a file was changed that the launches before did not all change as well.

    A launch that changed nothing is left out: else one failure in between would make progress of a
    file that is appended to every time.
    """
    others = [set(one.artefacts) for one in before if one.artefacts][1 - PROGRESS_SAME :]
    always = set.intersection(*others) if len(others) == PROGRESS_SAME - 1 else set()
    return not always.issuperset(signs.artefacts)


ROWS = (
    Row("a commit", lambda signs, _: signs.commits > 0),
    Row("a resolved loop", lambda signs, _: signs.resolved > 0),
    Row("a new decision", lambda signs, _: signs.decisions > 0),
    Row("a relay that asks for something else", lambda signs, _: signs.asks_else),
    Row("an artefact that does not change every time", _changes_another_artefact),
)


def progress(signs: WorkSigns | None, before: Sequence[WorkSigns] = ()) -> str:
    """Return which progress the signs show, or an empty string if there is none.

    `before` are the signs of the launches, or of the cycles, before it, oldest first.
    """
    if signs is None:
        return ""
    return next((row.words for row in ROWS if row.fits(signs, before)), "")


def artefact_names(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the names by which changed results are compared.

    A number in a name makes no difference: `run-17.txt` after `run-16.txt` is the same result.
    """
    found = {_NUMBER.sub("#", path) for path in paths if is_artefact(path)}
    return tuple(sorted(found)[:PROGRESS_NAMES])
