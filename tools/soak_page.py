"""Generate the section about the soak from its stored measures."""

import textwrap

from soak_figures import CLI_NAMES, Run, Stored, read

WIDTH = 100
INTRODUCTION = """\
## The soak: a day of faults

{verdict}

Rekindle works for {hours} simulated hours with each of the three CLIs, and with several random
seeds:

- A cycle has {each} items and stands for half an hour, or for an hour in a run of half as many
  cycles. It takes some seconds here, so pauses after a crash are shorter too. A usage limit lasts
  one or two real minutes.
- In every second cycle on average, a random fault strikes at a random item. A run counts only if
  each fault really happened. The CLIs are set to retry a request only once, so that Rekindle sees
  the errors.
- In the middle half of a run, no fault ends the supervisor. So one supervisor lives for at least
  half of the cycles, which shows a leak that grows with each cycle, but not one that grows with
  time.
- A measure is flat if its median in the last quarter of the cycles is at most {memory:.0f} percent
  (memory), {descriptors:g} (open files) or {cost:.0f} percent (processor time, disk) above that of
  the second quarter. Processor time and disk are those of cycles without a fault, because a fault
  has a cost of its own, which the chart shows.
- Memory, open files and processor time are those of the supervisor and the daemon, without hooks
  and commands. Processor time is adjusted by that of a fixed piece of work in the same cycle,
  because other programs on the machine slow down both.
- Snapshots in git are not counted. Git stores the list of a folder again when it changes, so they
  grow with the number of files.

{measured}

```sh
just soak                              # every run that has no result yet: {spent:.1f} hours here
just soak --cli codex --seed 1 --cycles 12
just soak --store                      # then `just docs` for this section
```

![A chart: memory and processor time of each cycle, one line per CLI](../images/soak.svg)
"""
MEASURES = {
    "supervisor_memory": ("memory of the supervisor", 1 / 1024, "MB"),
    "one_supervisor": ("of the one that lived longest", 1 / 1024, "MB"),
    "daemon_memory": ("memory of the daemon", 1 / 1024, "MB"),
    "supervisor_descriptors": ("open files of the supervisor", 1, ""),
    "daemon_descriptors": ("of the daemon", 1, ""),
    "processor": ("processor time of a cycle", 1, "s"),
    "disk": ("growth of the disk in a cycle", 1 / 1000, "kB"),
}
"""The name, the factor and the unit of each measure."""


def render_soak() -> str:
    stored = read()
    introduction = INTRODUCTION.format(
        verdict=textwrap.fill(_judge(stored), WIDTH),
        hours=stored.hours,
        each=stored.items_each,
        memory=(stored.bars["supervisor_memory"].share - 1) * 100,
        descriptors=stored.bars["supervisor_descriptors"].slack,
        cost=(stored.bars["processor"].share - 1) * 100,
        measured=textwrap.fill(_describe_measures(stored), WIDTH),
        spent=sum(run.seconds for run in stored.runs) / 3600,
    )
    parts = [
        introduction,
        *_list_runs(stored),
        "",
        *_list_trends(stored),
        "",
        *_list_faults(stored),
    ]
    return "\n".join([*parts, ""])


def _describe_measures(stored: Stored) -> str:
    clis = _join([f"{CLI_NAMES[cli]} {version}" for cli, version in stored.clis.items()])
    return (
        f"The measures are of {stored.date}, with {clis}. The machine did other work too, so times "
        "are only rough, and a quarter has only a few cycles without a fault."
    )


def _judge(stored: Stored) -> str:
    """Return what all runs together show."""
    items, faults = sum(run.total for run in stored.runs), _count_faults(stored.runs)
    wrong = [_name(run) for run in stored.runs if not run.is_complete]
    found = f"Rekindle did {items:,} items in {len(stored.runs)} runs, through {faults} faults"
    found += (
        f", with trouble in {_join(wrong)} (see the table)."
        if wrong
        else ": none was lost, none was done twice, no process was left over, and no person acted."
    )
    growing = [f"{_name(run)} ({', '.join(run.growing)})" for run in stored.runs if run.growing]
    return found + (
        f" Not all measures were flat: {_join(growing)}."
        if growing
        else " Memory, open files, disk and processor time of a cycle stayed flat in each run."
    )


def _list_runs(stored: Stored) -> list[str]:
    rows = [
        "| CLI, seed | cycles | faults | items | lost | twice | left over | by a person | time |",
        f"|---{'|---:' * 8}|",
    ]
    for run in stored.runs:
        cells = [
            *(run.cycles, _count_faults([run]), run.done, run.lost, run.twice, run.left),
            *(run.interventions, f"{run.seconds / 60:.0f} min"),
        ]
        rows.append(f"| {_name(run)} | {' | '.join(map(str, cells))} |")
    return rows


def _list_trends(stored: Stored) -> list[str]:
    titles = [f"{title} ({unit})" if unit else title for title, _, unit in MEASURES.values()]
    rows = [
        "The median of the second quarter, then that of the last one:\n",
        f"| CLI, seed | {' | '.join(titles)} |",
        f"|---{'|---:' * len(titles)}|",
    ]
    for run in stored.runs:
        cells = [_show(run, name) for name in MEASURES]
        rows.append(f"| {_name(run)} | {' | '.join(cells)} |")
    return rows


def _show(run: Run, name: str) -> str:
    trend, (_, factor, unit) = run.trends.get(name), MEASURES[name]
    if trend is None:
        return "-"
    digits = {"MB": ".1f", "s": ".2f", "kB": ".1f"}.get(unit, "g")
    shown = f"{trend.second * factor:{digits}} → {trend.last * factor:{digits}}"
    return shown if trend.is_flat else f"**{shown}**"


def _list_faults(stored: Stored) -> list[str]:
    names = [name for cli, name in CLI_NAMES.items() if _select(stored, cli)]
    rows = [f"| fault | {' | '.join(names)} |", f"|---{'|---:' * len(names)}|"]
    for kind, title in stored.kinds.items():
        counts = [
            sum(run.faults[kind] for run in runs)
            for cli in CLI_NAMES
            if (runs := _select(stored, cli))
        ]
        rows.append(f"| {title} | {' | '.join(map(str, counts))} |")
    return rows


def _select(stored: Stored, cli: str) -> list[Run]:
    return [run for run in stored.runs if run.cli == cli]


def _count_faults(runs: list[Run]) -> int:
    return sum(sum(run.faults.values()) for run in runs)


def _name(run: Run) -> str:
    return f"{CLI_NAMES[run.cli]}, {run.seed}"


def _join(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
