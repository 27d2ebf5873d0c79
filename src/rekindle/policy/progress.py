"""Progress: whether the work of a launch, or a cycle, moved forward.

Restarts, pauses, spending, the verdict on a cycle and the stall ladder are measured by it. `ROWS`
is the table; the documentation prints it.
"""

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from rekindle.documents.event import WorkSigns
from rekindle.policy.artefacts import is_artefact
from rekindle.policy.settings import PROGRESS_NAMES, PROGRESS_NUMBERED, PROGRESS_SAME

_NUMBER = re.compile(r"\d+")
_HEX_ID = re.compile(
    r"(?<![0-9a-z])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=[a-f]*\d)[0-9a-f]{7,})(?![0-9a-z])",
    re.IGNORECASE,
)
_STAMP = re.compile(r"\d{4}|(?<!\d)\d\d([-_.:])\d\d\1\d\d(?!\d)")
"""A year, a long number, or a date or time of two digits each."""


class Row(msgspec.Struct, frozen=True):
    words: str
    fits: Callable[[WorkSigns, Sequence[WorkSigns]], bool]


def constant_artefacts(names: Iterable[str], before: Sequence[WorkSigns]) -> set[str]:
    """Return those of the changed artefacts that change every time: they are not progress.

    Numbered files count as the same one only after many times: each may be a new result, but an
    agent that writes nothing else must be bounded. A launch that changed nothing is left out: else
    one failure in between would make progress of a file that is appended to every time.
    """
    same = _common([one.artefacts for one in before if one.artefacts], PROGRESS_SAME - 1)
    series = _constant_series(before)
    return {name for name in names if name in same or _series_of(name) in series}


def name_series(signs: WorkSigns, before: Sequence[WorkSigns]) -> WorkSigns:
    """Return the signs to record: with the name of a series in place of its files, once it is long.

    A snapshot keeps few launches: without it the first ones of them would be progress again.
    """
    series = _constant_series(before)
    names = {found if (found := _series_of(name)) in series else name for name in signs.artefacts}
    return msgspec.structs.replace(signs, artefacts=tuple(sorted(names)))


def _constant_series(before: Sequence[WorkSigns]) -> set[str]:
    earlier = [map(_series_of, one.artefacts) for one in before if one.artefacts]
    return _common(earlier, PROGRESS_NUMBERED - 1)


def _common(earlier: Sequence[Iterable[str]], times: int) -> set[str]:
    """Return the names that each of the last so many times has; none if there were fewer."""
    return set.intersection(*map(set, earlier[-times:])) if len(earlier) >= times else set()


def _series_of(name: str) -> str:
    """Return the name that numbered files have in common."""
    return _NUMBER.sub("#", name)


def _new_artefacts(signs: WorkSigns, before: Sequence[WorkSigns]) -> set[str]:
    return set(signs.artefacts) - constant_artefacts(signs.artefacts, before)


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
    """Return the names by which changed results are compared, as many as the log keeps.

    Numbered files must not displace others: the last one of each series comes first.
    """
    series: dict[str, list[str]] = {}
    for name in {artefact_name(path) for path in paths if is_artefact(path)}:
        series.setdefault(_series_of(name), []).append(name)
    ranked = [
        (place, name)
        for names in series.values()
        for place, name in enumerate(sorted(names, key=_numbers_in, reverse=True))
    ]
    return tuple(sorted(name for _, name in sorted(ranked)[:PROGRESS_NAMES]))


def artefact_name(path: str) -> str:
    """Return the name by which one changed result is compared.

    A date, a long number or a hex id makes no difference: `run-2026-11-17.txt` after
    `run-2026-11-16.txt` is the same result, `chapter-2.md` after `chapter-1.md` is another one.
    """
    return "/".join(map(_without_stamps, path.split("/")))


def _without_stamps(part: str) -> str:
    plain = _HEX_ID.sub("#", part)
    return _NUMBER.sub("#", plain) if plain != part or _STAMP.search(part) else part


def _numbers_in(name: str) -> tuple[list[int], str]:
    return [int(number) for number in re.findall(r"[0-9]+", name)], name
