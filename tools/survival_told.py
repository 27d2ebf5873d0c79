"""How each tool of the survival benchmark was set up, and what it told the person."""

from survival_figures import CLI_NAMES, Contender, Stored


def render_tools(stored: Stored) -> list[str]:
    """Return the set-up of each tool, and its messages with the faults after which they came."""
    parts = []
    for one in stored.contenders:
        version = f"{one.name} ({one.version})"
        parts += [f"### {version}, with {CLI_NAMES[one.cli]}\n", f"```sh\n{one.setup.strip()}\n```"]
        parts += [f"\nThe prompt ends with: {one.ending.strip()}"] if one.ending else []
        parts += ["", *_told(stored, one), ""]
    return parts


def _told(stored: Stored, one: Contender) -> list[str]:
    """Return a row for each message, in the order of the faults."""
    faults: dict[str, list[str]] = {}
    for fault, title in stored.faults.items():
        cell = stored.cell(one.name, one.cli, fault)
        if cell is not None:
            faults.setdefault(_escape(cell.runs[0].told), []).append(title)
    rows = ["| what it printed last | after |", "|---|---|"]
    return rows + [f"| {told} | {' · '.join(titles)} |" for told, titles in faults.items()]


def _escape(lines: list[str]) -> str:
    """Return lines as code in a table's cell."""
    texts = [" ".join(line.replace("`", "'").split()).replace("|", "\\|") for line in lines]
    return " … ".join(f"`{text}`" for text in texts) or "nothing"
