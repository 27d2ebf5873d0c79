"""Generate the page of the survival benchmark from its stored measures."""

import textwrap

from survival_costs import render_costs
from survival_figures import CLI_NAMES, OURS, WIDTH, Cell, Stored, describe_range, read
from survival_told import render_tools

SOONER_SECONDS = 10.0
"""How much sooner another tool must continue than ours to be named."""

INTRODUCTION = """\
# Survival: the same night for every tool

{better}

The task has {items} items, in an empty git repository. The model looks at what is done, then writes
one item after the other; each is a file and a line in a ledger. So the ledger shows what was lost,
and what was done twice.
The model decides only from the conversation that the CLI sends, and answers every tool in the same
way. Each fault happens at the seventh item, never at a point in time, and a run counts only if the
fault really happened.

To measure all cells again, or one of them, use:

```sh
just survival                       # every cell that has no result yet; the logs are kept
just survival rekindle cli-killed   # one row of one tool, with both CLIs
just survival --repeat 5 --store    # five runs of each cell, then `just docs` for this page
```

The logs of a run are in `build/survival/TOOL-CLI/FAULT/NUMBER`: each request to the model, the
output of each program, and the project and the home in the end. You need Linux, root and npm.

![A chart: items done during a night with six faults, one line per tool](../images/survival.svg)

## Results

✓ means that all items were done once, that no process was left, and that a person did not have to
do anything. Where a person had to start or restart something, the benchmark did so and counted it.
The measures are of {date}, with Claude Code {claude} and Codex {codex}.

{runs}
"""

_COMPARED = (
    "The same task, the same faults, the same real agent CLIs and the same scripted model, for "
    "Rekindle and for what you could use instead. "
)
ABOUT_MESSAGES = """\
Each tool is set up as its own documentation recommends for work without a person. The tables show
its last line about a problem, and its last line of all, in the first run of each cell. For
Rekindle, these are lines of `rekindle logs` and `rekindle status`.
"""
LIMITS = """\
## Limits of the method

- The model is scripted, and needs no time. A real model may react differently to an interruption.
- Tokens are counted from the size of requests and answers: four characters are one token.
- The ideal run is the CLI alone, without a fault. Rekindle allows its agent six tools by default,
  so Claude Code describes fewer tools in each request than in the loop, which allows all of them.
- The person of the benchmark logs in again after an expired login, and frees the full disk. This is
  not counted, because every tool needs it. The person looks at a running tool after two minutes
  without a request (a usage limit: five minutes, a hang: fifteen, a login: one and a half).
- A hang is one of the CLI's process: all of its threads stop for good. If only a connection hangs,
  Claude Code notices it by itself after about five minutes.
- A usage limit resets at a full minute, because the CLIs print no seconds.
- The window is full after ten tool results, by the usage that the model reports.
- The tools ran one or two at a time on a machine with two cores that did other work too, so times
  are only rough.
"""


def page() -> str:
    stored = read()
    parts = [
        INTRODUCTION.format(
            better=_wrap(_COMPARED + _find_better(stored) + _find_sooner(stored)),
            items=stored.items,
            date=stored.date,
            claude=stored.clis["claude-code"],
            codex=stored.clis["codex"],
            runs=_wrap(_describe_runs(stored)),
        )
    ]
    for cli, name in CLI_NAMES.items():
        parts += [f"### With {name}\n", *_verdicts(stored, cli), ""]
    parts += ["## Tokens and time\n", *render_costs(stored)]
    parts += ["## Set-up, and what each tool told\n", ABOUT_MESSAGES, *render_tools(stored)]
    return "\n".join([*parts, LIMITS])


def _find_better(stored: Stored) -> str:
    """Return the sentence about cells in which another tool did better than ours."""
    found = []
    for cell in stored.cells:
        ours = stored.cell(OURS, cell.cli, cell.fault)
        if cell.contender == OURS or ours is None or not cell.is_whole(stored.items):
            continue
        if not ours.is_whole(stored.items):
            found.append(
                f"{cell.contender} with {CLI_NAMES[cell.cli]}: {_title(stored, cell)}"
                f" (Rekindle: {', '.join(ours.troubles(stored.items))})"
            )
    if not found:
        return "No tool did better than Rekindle in any cell."
    return f"Another tool did better than Rekindle in these cells: {'; '.join(found)}."


def _find_sooner(stored: Stored) -> str:
    """Return the sentence about tools that did all items as well, and continued sooner."""
    found = []
    for cell in stored.cells:
        ours = stored.cell(OURS, cell.cli, cell.fault)
        if ours is None or not cell.is_whole(stored.items):
            continue
        if None in (cell.resumed_after, ours.resumed_after):
            continue
        if ours.resumed_after - cell.resumed_after >= SOONER_SECONDS:
            times = f"{cell.resumed_after:.0f} s instead of {ours.resumed_after:.0f} s"
            found.append(
                f"{cell.contender} with {CLI_NAMES[cell.cli]}, {_title(stored, cell)} ({times})"
            )
    if not found:
        return ""
    return f" Another tool did as well, and continued sooner, in these cells: {'; '.join(found)}."


def _describe_runs(stored: Stored) -> str:
    """Return how often the cells were played, and whether the runs of each agree."""
    often: dict[str, list[str]] = {}
    for name in dict.fromkeys(cell.contender for cell in stored.cells):
        counts = [len(cell.runs) for cell in stored.cells if cell.contender == name]
        often.setdefault(describe_range(counts), []).append(name)
    played = ", ".join(f"{count} times ({', '.join(names)})" for count, names in often.items())
    differ = [
        f"{cell.contender} with {CLI_NAMES[cell.cli]}, {_title(stored, cell)}"
        for cell in stored.cells
        if len({run.counts for run in cell.runs}) > 1
    ]
    agree = "In each cell, the counts of all runs agree" + (", except in: " if differ else "")
    return f"Each cell was played {played}. {agree}{'; '.join(differ)}."


def _title(stored: Stored, cell: Cell) -> str:
    return stored.faults[cell.fault]


def _wrap(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_on_hyphens=False)


def _verdicts(stored: Stored, cli: str) -> list[str]:
    names = stored.names(cli)
    contenders = {one.name: one for one in stored.contenders if one.cli == cli}
    rows = [f"| fault | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for fault, title in stored.faults.items():
        cells = [stored.verdict(contenders[name], fault) for name in names]
        rows.append(f"| {title} | {' | '.join(cells)} |")
    return rows
