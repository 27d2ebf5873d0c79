"""What `rekindle relay replay` shows: where a history got stuck, on what, and what that cost."""

from collections import Counter
from collections.abc import Sequence

from rekindle.cli.output import Styled, echo, print_json, secho, styled
from rekindle.documents.identity import one_line
from rekindle.policy.settings import STALL_ALARM
from rekindle.policy.stall.stretches import Stretch, stretches, verdicts
from rekindle.policy.stall.verdict import Kind, Verdict
from rekindle.stores import history
from rekindle.stores.history import Past
from rekindle.thresholds.screens import REPLAY_ABOUT_CHARACTERS

_DAY_CHARACTERS = len("2026-01-01")
_COLOURS = {Kind.WAITING: "yellow", Kind.TREADMILL: "magenta", Kind.STALLED: "red"}
_MEANINGS = {
    Kind.PROGRESS: "a step was taken",
    Kind.WAITING: "for a person or an event",
    Kind.TREADMILL: "more of the same, without end",
    Kind.STALLED: "the same ask again",
    Kind.UNUSABLE: "no directive to compare",
}


def show(source: str, *, as_json: bool) -> None:
    past = history.read(source)
    found = verdicts(one.text for one in past)
    stuck = stretches(found)
    if as_json:
        _print_lines(found, stuck)
    else:
        _print_page(past, found, stuck)


def _print_lines(found: Sequence[Verdict], stuck: Sequence[Stretch]) -> None:
    for place, one in enumerate(found):
        print_json({"prev": place, "curr": place + 1, "verdict": one.verdict, "why": one.why})
    for stretch in stuck:
        print_json(
            {
                "stretch": [stretch.first, stretch.last],
                "verdicts": stretch.verdicts,
                "cycles": stretch.cycles,
                "about": stretch.about,
            }
        )


def _print_page(past: Sequence[Past], found: Sequence[Verdict], stuck: Sequence[Stretch]) -> None:
    kinds = Counter(one.verdict for one in found)
    relays = "1 relay" if len(past) == 1 else f"{len(past):,} relays"
    echo(f"{relays}, {len(found):,} cycles between them{_days(past)}")
    for kind, count in kinds.most_common():
        name = styled(f"{kind:<9}", fg=_COLOURS.get(kind))
        echo("  ", name, f" {count:>6,}  {count / len(found):>4.0%}  {_MEANINGS[kind]}")
    if not kinds.keys() - {Kind.UNUSABLE}:
        echo("\nNothing to compare: it takes two relays in a row with a `## Next Action`.")
    elif stuck:
        _print_stuck(past, found, stuck)
    else:
        echo(f"\n✓ nowhere stuck: never {STALL_ALARM} cycles in a row without a step")


def _print_stuck(past: Sequence[Past], found: Sequence[Verdict], stuck: Sequence[Stretch]) -> None:
    lost = sum(stretch.cycles for stretch in stuck)
    times = "once" if len(stuck) == 1 else f"{len(stuck)} times"
    secho(
        f"\nStuck {times}, for {lost:,} of {len(found):,} cycles ({lost / len(found):.0%}):",
        bold=True,
    )
    for stretch in stuck:
        _print_stretch(past, stretch)
    if len(stuck) > 1:
        longest = max(stuck, key=lambda stretch: stretch.cycles)
        where = f"relays {longest.first} to {longest.last}"
        echo(f"\nThe longest cost {longest.cycles:,} cycles: {where}.")


def _print_stretch(past: Sequence[Past], stretch: Stretch) -> None:
    kinds: list[str | Styled] = []
    for kind, count in stretch.verdicts.items():
        text = kind if len(stretch.verdicts) == 1 else f"{kind} {count}"
        kinds += [", ", styled(text, fg=_COLOURS[kind])]
    days = _days(past[stretch.first : stretch.last + 1])
    echo(f"\n  relays {stretch.first}–{stretch.last}{days}: {stretch.cycles:,} cycles", *kinds)
    echo(f"    {one_line(stretch.about, REPLAY_ABOUT_CHARACTERS)}")


def _days(past: Sequence[Past]) -> str:
    days = [one.when[:_DAY_CHARACTERS] for one in (*past[:1], *past[-1:])]
    if not all(days) or not days:
        return ""
    return f" ({days[0]})" if days[0] == days[1] else f" ({days[0]} to {days[1]})"
