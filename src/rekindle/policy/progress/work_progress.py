"""Define progress: whether a launch or a cycle moved the work forward.

Restarts, pauses, spending, the verdict on a cycle and the stall ladder all use this definition. The
documentation includes `PROGRESS_TABLE`.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from rekindle.documents.events import WorkSigns
from rekindle.formats.counts import render_count
from rekindle.policy.progress.artefacts import is_artefact, is_journal
from rekindle.policy.settings.runtime_settings import (
    PROGRESS_FREQUENT,
    PROGRESS_FREQUENT_OF,
    PROGRESS_NAMES,
    PROGRESS_NUMBERED,
    PROGRESS_SAME,
)

_NUMBER = re.compile(r"\d+")
_HEX_ID = re.compile(
    r"(?<![0-9a-z])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=[a-f]*\d)[0-9a-f]{7,})(?![0-9a-z])",
    re.IGNORECASE,
)
_STAMPS = re.compile(r"#(?:[-_:.T]#)+Z?|#Z", re.IGNORECASE)
"""Several numbers that form one date or time, after each became "#"."""
_STAMP = re.compile(r"\d{4}|(?<!\d)\d\d([-_.:])\d\d\1\d\d(?!\d)")
"""A number with four or more digits, or a date or time with two digits per part."""


class ProgressRow(msgspec.Struct, frozen=True):
    words: str
    fits: Callable[[WorkSigns, Sequence[WorkSigns]], bool]


def find_constant_artefacts(names: Iterable[str], before: Sequence[WorkSigns]) -> set[str]:
    """Return the artefacts that change in every launch, so they do not count as progress.

    A program's source is never among them: an agent may work on one file for a long time.

    A series of numbered files counts as one artefact only after many launches: each file may be a
    new result, but an agent that writes nothing else must be stopped at some point.

    Launches without changes are skipped. Otherwise, after one failed launch, a file that every
    launch appends to would count as progress.
    """
    same = _find_common_names(
        [earlier.artefacts for earlier in before if earlier.artefacts], PROGRESS_SAME - 1
    )
    frequent, series = _find_frequent_names(before), _find_constant_series(before)
    return {
        name for name in names if name in same or name in frequent or _find_series(name) in series
    }


def name_series(signs: WorkSigns, before: Sequence[WorkSigns]) -> WorkSigns:
    """Return the signs to record, with files in a long series replaced by the series name.

    A snapshot contains only a few launches. Without the series name, the first launch in it would
    count as progress again.
    """
    series = _find_constant_series(before)
    names = {
        series_name if (series_name := _find_series(name)) in series else name
        for name in signs.artefacts
    }
    return msgspec.structs.replace(signs, artefacts=tuple(sorted(names)))


def _find_constant_series(before: Sequence[WorkSigns]) -> set[str]:
    earlier = [map(_find_series, signs.artefacts) for signs in before if signs.artefacts]
    return _find_common_names(earlier, PROGRESS_NUMBERED - 1)


def _find_frequent_names(before: Sequence[WorkSigns]) -> set[str]:
    """Return the names that nearly every recent launch changed, even if some did not."""
    recent = [signs.artefacts for signs in before if signs.artefacts][-PROGRESS_FREQUENT_OF:]
    if len(recent) < PROGRESS_SAME:
        return set()
    counts = Counter(name for names in recent for name in set(names))
    return {name for name, count in counts.items() if count >= PROGRESS_FREQUENT * len(recent)}


def _find_common_names(earlier: Sequence[Iterable[str]], times: int) -> set[str]:
    """Return the names in each of the last `times` entries, or an empty set if there are fewer."""
    return set.intersection(*map(set, earlier[-times:])) if len(earlier) >= times else set()


def _find_series(name: str) -> str:
    """Return the name of the series that a numbered file belongs to."""
    return _NUMBER.sub("#", name)


def _find_new_artefacts(signs: WorkSigns, before: Sequence[WorkSigns]) -> set[str]:
    return set(signs.artefacts) - find_constant_artefacts(signs.artefacts, before)


def _count_commits(signs: WorkSigns, before: Sequence[WorkSigns]) -> int:
    """Return the number of commits, or 0 if they hold only journals that nearly always change."""
    constant = find_constant_artefacts(signs.artefacts, before)
    only_journals = bool(signs.artefacts) and all(
        name in constant and is_journal(name) for name in signs.artefacts
    )
    return 0 if only_journals else signs.commits


PROGRESS_TABLE = (
    ProgressRow(
        "a commit, unless it holds only journals, state files or logs",
        lambda signs, before: _count_commits(signs, before) > 0,
    ),
    ProgressRow("a resolved loop", lambda signs, _: signs.resolved > 0),
    ProgressRow("a new decision", lambda signs, _: signs.decisions > 0),
    ProgressRow("a relay with a different request", lambda signs, _: signs.asks_else),
    ProgressRow(
        "an artefact that does not change in every launch",
        lambda signs, before: bool(_find_new_artefacts(signs, before)),
    ),
)


def find_progress(signs: WorkSigns | None, before: Sequence[WorkSigns] = ()) -> str:
    """Return the kind of progress that the signs show, or "" if they show none.

    `before` contains the signs from the previous launches or cycles, oldest first.
    """
    if signs is None:
        return ""
    return next((row.words for row in PROGRESS_TABLE if row.fits(signs, before)), "")


def describe_work(signs: WorkSigns, before: Sequence[WorkSigns] = (), counted: str = "") -> str:
    """Describe the progress of a cycle apart from its request, or return "" if there was none.

    `counted` describes a counter in the relay that grew.
    """
    counts = {
        "commit": _count_commits(signs, before),
        "changed file": len(_find_new_artefacts(signs, before)),
        "decision": signs.decisions,
        "resolved loop": signs.resolved,
    }
    shown = [render_count(count, what) for what, count in counts.items() if count]
    return ", ".join([*shown, counted] if counted else shown)


def list_artefact_names(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the changed results, up to the maximum for the log.

    The last file of each series is picked first, so that numbered files do not crowd out others.
    """
    series: dict[str, list[str]] = {}
    for name in {make_artefact_name(path) for path in paths if is_artefact(path)}:
        series.setdefault(_find_series(name), []).append(name)
    ranked = [
        (rank, name)
        for names in series.values()
        for rank, name in enumerate(sorted(names, key=_split_numbers, reverse=True))
    ]
    return tuple(sorted(name for _, name in sorted(ranked)[:PROGRESS_NAMES]))


def make_artefact_name(path: str) -> str:
    """Return the name that identifies a changed result in comparisons with earlier results.

    Dates, long numbers and hex ids are ignored: `run-2026-11-17.txt` counts as the same result as
    `run-2026-11-16.txt`, but `chapter-2.md` is a new result after `chapter-1.md`.
    """
    return "/".join(map(_strip_stamps, path.split("/")))


def _strip_stamps(part: str) -> str:
    plain = _HEX_ID.sub("#", part)
    if plain == part and not _STAMP.search(part):
        return part
    return _STAMPS.sub("#", _NUMBER.sub("#", plain))


def _split_numbers(name: str) -> tuple[list[int], str]:
    return [int(number) for number in re.findall(r"[0-9]+", name)], name
