"""What is wrong with a run of the soak."""

from survival.soak import flatness, schedule
from survival.soak.flatness import Trend
from survival.soak.run import Result


def find_trends(result: Result) -> dict[str, Trend]:
    struck = schedule.find_struck(result.seed, len(result.cycles))
    return flatness.find_trends(result.cycles, struck)


def find_troubles(result: Result) -> list[str]:
    """Return what a run did not show; an empty list if everything held."""
    found = [
        f"{number} {words}"
        for number, words in (
            (result.total - result.done, "items not done"),
            (result.lost, "items lost"),
            (result.twice, "items done twice"),
            (len(result.left), "processes left over"),
            (result.interventions, "interventions of a person"),
            (len(result.missing), "faults did not happen"),
        )
        if number
    ]
    found += [
        f"{name} is not flat: {trend.second:g}, then {trend.last:g}, above {trend.most:g}"
        for name, trend in find_trends(result).items()
        if not trend.is_flat
    ]
    return found
