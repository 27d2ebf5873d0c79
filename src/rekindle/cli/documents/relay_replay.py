"""Print the `rekindle relay replay` report: where a relay history got stuck, and for how long."""

from collections import Counter
from collections.abc import Sequence

from rekindle.cli.output import (
    StyledText,
    echo,
    print_bare_json,
    print_styled,
    style_text,
)
from rekindle.formats.counts import render_count
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.settings.runtime_settings import STALL_ALARM
from rekindle.policy.stall.replayed_cycles import (
    RelayRevision,
    ReplayAction,
    ReplayedCycle,
    replay_cycles,
)
from rekindle.policy.stall.stretches import (
    StuckStretch,
    find_stretches,
)
from rekindle.policy.stall.verdict import (
    StallKind,
    StallVerdict,
)
from rekindle.stores import relay_history
from rekindle.stores.relay_history import PastRelay
from rekindle.thresholds.screens import REPLAY_ABOUT_CHARACTERS, REPLAY_PLACES

_DAY_CHARACTERS = len("2026-01-01")
_COLOURS = {
    StallKind.WAITING: "yellow",
    StallKind.TREADMILL: "magenta",
    StallKind.STALLED: "red",
    StallKind.FINISHED: "green",
}
_MEANINGS = {
    StallKind.PROGRESS: "the agent made progress",
    StallKind.WAITING: "the agent waits for a person or an event",
    StallKind.TREADMILL: "the agent keeps adding more of the same",
    StallKind.STALLED: "the relay repeats the same request",
    StallKind.FINISHED: "the agent reports that its work is finished",
    StallKind.UNUSABLE: "there is no next action to compare",
}
_REACTIONS = {
    ReplayAction.NOTICE: "Rekindle would have sent a notice to the agent",
    ReplayAction.PAUSE: "Rekindle would have paused the agent",
    ReplayAction.FINISH: "Rekindle would have ended the run",
}


def print_replay(source: str, *, as_json: bool) -> None:
    past = relay_history.read_history(source)
    cycles = replay_cycles([RelayRevision(relay.text, relay.changed, relay.path) for relay in past])
    stuck = find_stretches([cycle.verdict for cycle in cycles])
    if as_json:
        _print_lines(cycles, stuck)
    else:
        _print_page(past, cycles, stuck)


def _print_lines(cycles: Sequence[ReplayedCycle], stuck: Sequence[StuckStretch]) -> None:
    for place, cycle in enumerate(cycles):
        print_bare_json(
            {
                "prev": place,
                "curr": place + 1,
                "verdict": cycle.verdict.verdict,
                "action": cycle.action,
                "why": cycle.verdict.why,
                "worked": None if cycle.work is None else bool(cycle.work),
            }
        )
    for stretch in stuck:
        print_bare_json(
            {
                "stretch": [stretch.first, stretch.last],
                "verdicts": stretch.verdicts,
                "cycles": stretch.cycles,
                "about": stretch.about,
            }
        )


def _print_page(
    past: Sequence[PastRelay], cycles: Sequence[ReplayedCycle], stuck: Sequence[StuckStretch]
) -> None:
    verdicts = [cycle.verdict for cycle in cycles]
    kinds = Counter(verdict.verdict for verdict in verdicts)
    relays = render_count(len(past), "relay")
    echo(f"{relays}, {render_count(len(verdicts), 'cycle')} between them{_render_days(past)}")
    for kind, count in kinds.most_common():
        name = style_text(f"{kind:<9}", fg=_COLOURS.get(kind))
        echo("  ", name, f" {count:>6,}  {count / len(verdicts):>4.0%}  {_MEANINGS[kind]}")
    if not kinds.keys() - {StallKind.UNUSABLE}:
        echo("\nNothing to compare: no two consecutive relays have a next action.")
    elif stuck:
        _print_stuck(past, verdicts, stuck)
    else:
        echo(f"\n✓ not stuck: never {STALL_ALARM} cycles in a row without progress")
    _print_actions(cycles)


def _print_actions(cycles: Sequence[ReplayedCycle]) -> None:
    """Print how Rekindle would have reacted, with the cycles of each reaction."""
    if any(cycle.action in _REACTIONS for cycle in cycles):
        echo()
    for action, meaning in _REACTIONS.items():
        places = [str(place + 1) for place, cycle in enumerate(cycles) if cycle.action == action]
        if places:
            more = f" and {len(places) - REPLAY_PLACES} more" if len(places) > REPLAY_PLACES else ""
            echo(f"{meaning} after relay {', '.join(places[:REPLAY_PLACES])}{more}")


def _print_stuck(
    past: Sequence[PastRelay], verdicts: Sequence[StallVerdict], stuck: Sequence[StuckStretch]
) -> None:
    lost = sum(stretch.cycles for stretch in stuck)
    times = "once" if len(stuck) == 1 else f"{len(stuck)} times"
    cycles = render_count(len(verdicts), "cycle")
    print_styled(
        f"\nStuck {times}, for {lost:,} of {cycles} ({lost / len(verdicts):.0%}):",
        bold=True,
    )
    for stretch in stuck:
        _print_stretch(past, stretch)
    if len(stuck) > 1:
        longest = max(stuck, key=lambda stretch: stretch.cycles)
        where = f"relays {longest.first} to {longest.last}"
        echo(f"\nThe longest stretch cost {render_count(longest.cycles, 'cycle')}: {where}.")


def _print_stretch(past: Sequence[PastRelay], stretch: StuckStretch) -> None:
    kinds: list[str | StyledText] = []
    for kind, count in stretch.verdicts.items():
        text = kind if len(stretch.verdicts) == 1 else f"{kind} {count}"
        kinds += [", ", style_text(text, fg=_COLOURS[kind])]
    days = _render_days(past[stretch.first : stretch.last + 1])
    echo(
        f"\n  relays {stretch.first}–{stretch.last}{days}: {render_count(stretch.cycles, 'cycle')}",
        *kinds,
    )
    echo(f"    {to_one_line(stretch.about, REPLAY_ABOUT_CHARACTERS)}")


def _render_days(past: Sequence[PastRelay]) -> str:
    days = [relay.when[:_DAY_CHARACTERS] for relay in (*past[:1], *past[-1:])]
    if not all(days) or not days:
        return ""
    return f" ({days[0]})" if days[0] == days[1] else f" ({days[0]} to {days[1]})"
