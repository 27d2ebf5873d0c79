"""The server of `rekindle ui` with made-up rows instead of agents: `many_rows.py COUNT OPTIONS`.

The file `version` in the current folder tells which version of the first rows it shows.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from rekindle.web import run_server
from rekindle.web.project_rows import WebProjects
from rekindle.web.web_row import WebRow

CHANGING = 100
"""Number of rows that differ between versions."""
VERSION = "version"
PROGRAM = (sys.executable, __file__)


class ManyRows(WebProjects):
    """Rows that need no agents."""

    count = 0

    def __init__(self, start: Path | None) -> None:
        super().__init__(start)
        self._version = -1
        self._rows: dict[str, bytes] = {}

    def read(self) -> Iterator[Mapping[str, bytes]]:
        file = Path(VERSION)
        version = int(file.read_text()) if file.exists() else 0
        if version != self._version:
            for number in range(CHANGING if self._rows else self.count):
                row = make_row(number, version)
                self._rows[f"{row.project}/{row.agent}"] = msgspec.json.encode(row)
            self._version = version
        yield self._rows


def make_row(number: int, version: int) -> WebRow:
    """Return the row of an agent that works on something."""
    return WebRow(
        project="shop",
        agent=f"agent-{number:05}",
        state="running",
        harness="claude-code",
        why=f"version {version}: implements the validation of POST /profile in src/api.py",
        next="Limit the updates of one client.",
        cycle=3,
        done=2,
        of=10,
        window=float(number % 100),
        usd=number / 100,
        cap=10.0,
        tokens=float(number * 1000),
        loops=number % 5,
        seen=1_700_000_000 + number,
    )


def show_version(folder: Path, version: int) -> None:
    """Make a server in this folder show another version."""
    new = folder / f"{VERSION}.new"
    new.write_text(str(version))
    new.rename(folder / VERSION)


if __name__ == "__main__":
    ManyRows.count = int(sys.argv[1])
    run_server.WebProjects = ManyRows  # type: ignore[misc]
    run_server.run_server(
        None, 0, read_only=False, proxy=None, tell=lambda link: print(link, flush=True)
    )
