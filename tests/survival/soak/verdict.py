"""What is wrong with a run of the soak."""

from survival.soak import flatness
from survival.soak.run import Result


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
        for name, trend in flatness.find_trends(result.cycles).items()
        if not trend.is_flat
    ]
    return found
