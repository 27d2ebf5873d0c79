"""ralph-loop from PyPI: rotations of a CLI until three in a row report that the goal is reached."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from survival import task
from survival.contender import About, Contender
from survival.host import Host

VERSION: Final = "0.6.0"
_AGENTS: Final = {"claude-code": "claude", "codex": "codex"}
_SETUP: Final = """\
pip install ralph-loop=={version}
ralph init
cp task.md PROMPT.md
ralph run --agents {agent}
"""


class RalphLoop(Contender):
    def __init__(self, cli: str) -> None:
        super().__init__()
        self.about = About(
            name="ralph-loop",
            cli=cli,
            version=VERSION,
            setup=_SETUP.format(version=VERSION, agent=_AGENTS[cli]),
            finish="echo DONE > .ralph/status",
        )

    def install(self, prefix: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(prefix)], check=True)
        pip = [str(prefix / "bin/pip"), "install", "-q", f"ralph-loop=={VERSION}"]
        subprocess.run(pip, check=True)

    def prepare(self, host: Host) -> None:
        host.run([str(self.prefix / "bin/ralph"), "init"])
        (host.project / "PROMPT.md").write_text(task.prompt(self.about.ending))

    def argv(self, host: Host) -> Sequence[str]:
        agent = _AGENTS[self.about.cli]
        return [str(self.prefix / "bin/ralph"), "run", "--agents", agent]

    def argv_again(self, host: Host) -> Sequence[str]:
        return [str(self.prefix / "bin/ralph"), "run", "--continue"]

    def state_files(self, host: Host) -> list[Path]:
        return [host.project / ".ralph/run.json"]


contender = RalphLoop
