"""Generate the page of the survival benchmark from its stored measures."""

import textwrap

from soak_page import render_soak
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
way. Each single fault happens at a request or at an item, mostly the seventh, never at a point in
time, and a run counts only if the fault really happened.

To measure all cells again, or one of them, use a checkout of the repository:

```sh
bash .ci/setup && export PATH="$PWD/.venv/bin:$PATH"   # some minutes, once
just survival                       # every cell that has no result yet
just survival rekindle cli-killed   # one row of one tool, with both CLIs, or with --cli codex
just survival --repeat 5 --store    # five runs of each cell, then `just docs` for this page
just survival --help                # the names of all tools and faults
```

You need Linux, root, npm and the network, from which each tool and CLI is installed once. Without
`--again`, a cell that has a result is not played again. What was kept of a run is in
`build/survival/TOOL-CLI/FAULT/NUMBER`: all measures in `result.json`, one line per request to the
model in `requests.jsonl`, the output of each program in `boot-1`, and the project and the home
after the run in `kept`.

![A chart: items done during a night with six faults, one line per tool](../images/survival.svg)

## Results

✓ means that all items were done once (those until the stop, or until the early end), that no
process was left, and that a person did not have to do anything. Where a person had to start or
restart something, the benchmark did so and counted it.
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
SOONER = """\
## Who continued sooner

In these cells, another tool did all items without help, and its next item was done at least
10 seconds sooner than Rekindle's. A loop keeps starting the CLI; Rekindle waits longer after each
failure, because a failed start can cost money or be counted by the provider. If only the tool
itself is killed, the CLI of a loop continues without it. Rekindle ends that CLI, so that no two of
them ever work in one folder.
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
- After a login is repaired, Rekindle may wait as long as it was expired, at most an hour.
- A model that repeats its plan stops as soon as its prompt says that it is stuck. Rekindle's prompt
  says so; whether a real model would listen is not measured.
- Of Rekindle's files, `state.json` is truncated. `crash-safety.md` describes what protects its log.
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
            better=_wrap(_COMPARED + _find_better(stored) + _refer_to_sooner(stored)),
            items=stored.items,
            date=stored.date,
            claude=stored.clis["claude-code"],
            codex=stored.clis["codex"],
            runs=_wrap(_describe_runs(stored)),
        )
    ]
    for cli, name in CLI_NAMES.items():
        parts += [f"### With {name}\n", *_verdicts(stored, cli), ""]
    parts += [*_list_sooner(stored), "## Tokens and time\n", *render_costs(stored)]
    parts += ["## Set-up, and what each tool told\n", ABOUT_MESSAGES, *render_tools(stored)]
    return "\n".join([*parts, render_soak(), LIMITS])


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


def _refer_to_sooner(stored: Stored) -> str:
    """Return the sentence about tools that did all items as well, and continued sooner."""
    count = len(_find_sooner(stored))
    if not count:
        return ""
    cells = "one cell" if count == 1 else f"{count} cells"
    return f" In {cells}, another tool [continued sooner](#who-continued-sooner)."


def _find_sooner(stored: Stored) -> list[tuple[Cell, Cell]]:
    """Return such cells of other tools, each with the cell of ours."""
    found = []
    for cell in stored.cells:
        ours = stored.cell(OURS, cell.cli, cell.fault)
        if ours is None or not cell.is_whole(stored.items):
            continue
        if None in (cell.resumed_after, ours.resumed_after):
            continue
        if ours.resumed_after - cell.resumed_after >= SOONER_SECONDS:
            found.append((cell, ours))
    return found


def _list_sooner(stored: Stored) -> list[str]:
    rows = [
        f"| {_title(stored, cell)} | {CLI_NAMES[cell.cli]} | {cell.contender} "
        f"| {cell.resumed_after:.0f} s | {ours.resumed_after:.0f} s |"
        for cell, ours in sorted(_find_sooner(stored), key=lambda pair: _order(stored, pair[0]))
    ]
    if not rows:
        return []
    return [
        SOONER,
        "| fault | CLI | tool | its time | Rekindle |",
        "|---|---|---|---:|---:|",
        *rows,
        "",
    ]


def _order(stored: Stored, cell: Cell) -> tuple[int, str, str]:
    return list(stored.faults).index(cell.fault), cell.cli, cell.contender


def _describe_runs(stored: Stored) -> str:
    """Return how often the cells were played, and whether the runs of each agree."""
    often: dict[str, list[str]] = {}
    for name in dict.fromkeys(cell.contender for cell in stored.cells):
        counts = [len(cell.runs) for cell in stored.cells if cell.contender == name]
        often.setdefault(describe_range(counts), []).append(name)
    played = ", ".join(
        f"{'once' if count == '1' else f'{count} times'} ({', '.join(names)})"
        for count, names in often.items()
    )
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
        rows.append(f"| {title} (`{fault}`) | {' | '.join(cells)} |")
    return rows
