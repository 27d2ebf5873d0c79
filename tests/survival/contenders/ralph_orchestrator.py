"""ralph-orchestrator from PyPI: iterations of Claude Code until the prompt file says it is done."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loopback import install
from survival.contender import About, Contender
from survival.host import Host

CLIS = ("claude-code",)
VERSION: Final = "1.2.3"
_MARKER: Final = "- [x] TASK_COMPLETE"
_SETUP: Final = f"""\
pip install ralph-orchestrator=={VERSION}
cp task.md PROMPT.md
ralph run -a claude -P PROMPT.md
"""


class RalphOrchestrator(Contender):
    def __init__(self, cli: str) -> None:
        super().__init__()
        self.about = About(
            name="ralph-orchestrator",
            cli=cli,
            version=VERSION,
            setup=_SETUP,
            ending=f"When everything is done, add the line `{_MARKER}` to PROMPT.md.",
            finish=f"echo '{_MARKER}' >> PROMPT.md",
        )

    def install(self, prefix: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(prefix)], check=True)
        pip = [str(prefix / "bin/pip"), "install", "-q", f"ralph-orchestrator=={VERSION}"]
        subprocess.run(pip, check=True)
        # Its SDK prefers a CLI of its own to the one on the PATH.
        for bundled in prefix.glob("lib/python3*/site-packages/claude_agent_sdk/_bundled/claude"):
            bundled.unlink()
            bundled.symlink_to(install.program(install.CLAUDE))

    def argv(self, host: Host) -> Sequence[str]:
        return [str(self.prefix / "bin/ralph"), "run", "-a", "claude", "-P", "PROMPT.md"]

    def revive(self, host: Host) -> None:
        """Start it again, without the marker that would end it at once."""
        prompt = host.project / "PROMPT.md"
        prompt.write_text(prompt.read_text().replace(f"\n{_MARKER}\n", "\n"))
        super().revive(host)

    def state_files(self, host: Host) -> list[Path]:
        return sorted(path for path in host.project.glob(".agent/**/*.json") if path.is_file())


contender = RalphOrchestrator
