"""Generate the page of the survival benchmark from its stored measures."""

import textwrap

from survival_figures import OURS, Cell, Stored, average, read

WIDTH = 100
UNLIKE = {"none", "operator-stop", "early-finish", "night"}
"""Cells that do not count in the average cost of a fault."""
CLI_NAMES = {"claude-code": "Claude Code", "codex": "Codex"}

INTRODUCTION = """\
# Survival: the same night for every tool

{better}

The task has {items} items. The model looks at what is done, then writes one item after the other;
each is a file and a line in a ledger. So the ledger shows what was lost, and what was done twice.
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
The measures are of {date}, with Claude Code {claude} and Codex {codex}. Each
cell was played {runs}.
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
            better=_find_better(stored),
            items=stored.items,
            date=stored.date,
            claude=stored.clis["claude-code"],
            codex=stored.clis["codex"],
            runs=stored.describe_runs(),
        )
    ]
    for cli, name in CLI_NAMES.items():
        parts += [f"### With {name}\n", *_verdicts(stored, cli), ""]
    parts += ["## Tokens and time\n", _introduce_costs(stored)]
    for cli, name in CLI_NAMES.items():
        parts += [f"### Cost with {name}\n", *_costs(stored, cli), ""]
    parts += ["## Set-up, and what each tool told\n"]
    for one in stored.contenders:
        version = f"{one.name} ({one.version})"
        parts += [f"### {version}, with {CLI_NAMES[one.cli]}\n", f"```sh\n{one.setup.strip()}\n```"]
        parts += [f"\nThe prompt ends with: {one.ending.strip()}"] if one.ending else []
        parts += ["", *_told(stored, one.name, one.cli), ""]
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
                f"{cell.contender} with {CLI_NAMES[cell.cli]}: {stored.faults[cell.fault]}"
                f" (Rekindle: {', '.join(ours.troubles(stored.items))})"
            )
    better = f"Another tool did better than Rekindle in these cells: {'; '.join(found)}."
    return textwrap.fill(
        "The same task, the same faults, the same real agent CLIs and the same scripted model, for "
        "Rekindle and for what you could use instead. "
        + (better if found else "No tool did better than Rekindle in any cell."),
        WIDTH,
    )


def _verdicts(stored: Stored, cli: str) -> list[str]:
    names = stored.names(cli)
    contenders = {one.name: one for one in stored.contenders if one.cli == cli}
    rows = [f"| fault | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for fault, title in stored.faults.items():
        cells = [stored.verdict(contenders[name], fault) for name in names]
        rows.append(f"| {title} | {' | '.join(cells)} |")
    return rows


def _introduce_costs(stored: Stored) -> str:
    """Return the averages over our cells."""
    shares = []
    for cli, name in CLI_NAMES.items():
        cells = [cell for cell in stored.cells if (cell.contender, cell.cli) == (OURS, cli)]
        alone = stored.cell(OURS, cli, "none")
        full = [cell for cell in cells if cell.fault not in UNLIKE]
        if alone is None:
            continue
        ideal = average(cell.tokens for cell in full) / stored.ideal[cli].tokens
        own = average(cell.tokens for cell in full) / alone.tokens
        shares.append(
            f"{ideal:.2f} times the ideal run with {name} ({own:.2f} times its own run without a "
            "fault)"
        )
    runs = " and ".join(
        f"{one.requests} requests, {one.calls} items and {one.tokens:,} tokens with"
        f" {CLI_NAMES[cli]}"
        for cli, one in stored.ideal.items()
    )
    return (
        textwrap.fill(
            f"The ideal run is the CLI alone, without a fault: {runs}. On average over the single "
            "faults after which all items must be done, Rekindle needs "
            f"{' and '.join(shares)}. A session that is resumed or replaced costs two or three "
            "more requests, because the model looks again at what is done. Each cell shows the "
            "tokens as a multiple of the ideal run, and the seconds from the fault until the next "
            "item was done.",
            WIDTH,
        )
        + "\n"
    )


def _costs(stored: Stored, cli: str) -> list[str]:
    names = stored.names(cli)
    rows = [f"| fault | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for fault, title in stored.faults.items():
        cells = [_cost(stored, stored.cell(name, cli, fault)) for name in names]
        rows.append(f"| {title} | {' | '.join(cells)} |")
    return rows


def _cost(stored: Stored, cell: Cell | None) -> str:
    if cell is None:
        return "-"
    share = f"{cell.tokens / stored.ideal[cell.cli].tokens:.2f}"
    return f"{share}, {cell.resumed_after:.0f} s" if cell.resumed_after is not None else share


def _told(stored: Stored, name: str, cli: str) -> list[str]:
    rows = ["| fault | the last line that it printed |", "|---|---|"]
    for fault, title in stored.faults.items():
        cell = stored.cell(name, cli, fault)
        if cell is not None:
            told = cell.runs[0].told.replace("|", "\\|").replace("`", "'")
            rows.append(f"| {title} | {told or 'nothing'} |")
    return rows
