"""The tokens and the time that each tool of the survival benchmark needs."""

import textwrap

from survival_figures import CLI_NAMES, OURS, WIDTH, Cell, Stored, average

UNLIKE = {"none", "operator-stop", "early-finish", "night"}
"""Cells that do not count in the average cost of a fault."""
MOST = 1.15
"""Tokens of a run beside the ideal one; a cell above it is listed with its cause."""
AGAIN = "the resumed model looks at what is done, and makes the killed call again"
OWN = "Rekindle's prompt and the report at the end are part of each run, also without a fault"
CAUSES = {
    "overload": OWN,
    "hang": "the resumed model looks at what is done",
    "background": OWN,
    "limit": "the resumed model looks at what is done",
    "login": "the resumed model looks at what is done",
    "cli-killed": AGAIN,
    "tool-killed": AGAIN,
    "both-killed": AGAIN,
    "reboot": AGAIN,
    "state-cut": AGAIN,
    "window": "each new session begins with a checkpoint, and looks at what is done",
    "false-done": "another cycle reads the relay and looks at what is done",
    "same-plan": "the cycles in which the model only repeats its plan",
    "disk-full": "the model tries six times to write, and looks again after each failure",
}


def render_costs(stored: Stored) -> list[str]:
    """Return the averages, the expensive cells, and a table for each CLI."""
    parts = [_introduce(stored), _explain(stored)]
    for cli, name in CLI_NAMES.items():
        parts += [f"### Cost with {name}\n", *_table(stored, cli), ""]
    return parts


def _full(stored: Stored, tool: str, cli: str) -> list[Cell]:
    """Return a tool's cells with one fault after which all items must be done."""
    return [
        cell
        for cell in stored.cells
        if (cell.contender, cell.cli) == (tool, cli) and cell.fault not in UNLIKE
    ]


def _introduce(stored: Stored) -> str:
    shares = []
    for cli, name in CLI_NAMES.items():
        cells, alone = _full(stored, OURS, cli), stored.cell(OURS, cli, "none")
        if alone is None or not cells:
            continue
        tokens = average(cell.tokens for cell in cells)
        shares.append(
            f"{tokens / stored.ideal[cli].tokens:.2f} times the ideal run with {name}"
            f" ({tokens / alone.tokens:.2f} times its own run without a fault)"
        )
    runs = " and ".join(
        f"{one.requests} requests, {one.calls} items and {one.tokens:,} tokens with"
        f" {CLI_NAMES[cli]}"
        for cli, one in stored.ideal.items()
    )
    return _wrap(
        f"The ideal run is the CLI alone, without a fault: {runs}. On average over the single "
        f"faults after which all items must be done, Rekindle needs {' and '.join(shares)}. The "
        f"target is {MOST}. Refused requests cost no tokens here. A "
        "session that is resumed or replaced costs two or three more requests, because the model "
        "looks again at what is done. Each cell shows the tokens as a multiple of the ideal run, "
        "and the seconds until the next item was done: from the fault, or from its end if nothing "
        "could continue before (a limit, a login, a full disk)."
    )


def _explain(stored: Stored) -> str:
    """Return the cells of ours that need more than the bar, with the cause."""
    found = []
    for cli, name in CLI_NAMES.items():
        ideal = stored.ideal[cli].tokens
        for cell in _full(stored, OURS, cli):
            if round(cell.tokens / ideal, 2) > MOST:
                title, cause = stored.faults[cell.fault], CAUSES[cell.fault]
                found.append(f"- {name}, {title}: {cell.tokens / ideal:.2f}, because {cause}")
    if not found:
        return f"In no cell does Rekindle need more than {MOST} times the ideal run.\n"
    lines = [
        textwrap.fill(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False) for line in found
    ]
    return "\n".join(
        [f"Rekindle needs more than {MOST} times the ideal run in these cells:\n", *lines, ""]
    )


def _table(stored: Stored, cli: str) -> list[str]:
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


def _wrap(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_on_hyphens=False) + "\n"
