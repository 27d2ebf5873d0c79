"""The loop that people write themselves: it starts the CLI until the check passes."""

import contextlib
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loopback import install
from loopback.place import Started
from survival import task
from survival.contender import About
from survival.host import Host

_COMMANDS: Final = {
    "claude-code": 'claude -p "$(cat PROMPT.md)" --dangerously-skip-permissions',
    "codex": (
        "codex exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox"
        ' "$(cat PROMPT.md)"'
    ),
}
_SCRIPT: Final = """\
#!/bin/bash
until {check} >/dev/null 2>&1; do
  {command}
done
"""
_PACKAGES: Final = {"claude-code": install.CLAUDE, "codex": install.CODEX}


class PlainLoop:
    def __init__(self, cli: str) -> None:
        self._script = _SCRIPT.format(check=task.CHECK, command=_COMMANDS[cli])
        self.about = About(
            name="plain-loop",
            cli=cli,
            version=f"bash, {_PACKAGES[cli].name} {_PACKAGES[cli].version}",
            setup=self._script,
        )
        self._running: list[Started] = []

    def prepare(self, host: Host) -> None:
        (host.project / "PROMPT.md").write_text(task.prompt(self.about.ending))
        (host.project / "loop.sh").write_text(self._script)

    def start(self, host: Host) -> None:
        # A process group of its own, as a shell with job control gives it.
        self._running.append(host.start(["setsid", "bash", "loop.sh"]))

    def service(self, host: Host) -> Sequence[str]:
        return ()

    def stop_as_operator(self, host: Host) -> None:
        """Press Ctrl-C, which the terminal sends to the whole foreground group."""
        with contextlib.suppress(AssertionError):
            host.place.signal(-self._running[-1].pid, signal.SIGINT)

    def revive(self, host: Host) -> None:
        self.start(host)

    def shut_down(self, host: Host) -> None:
        pass

    def state_files(self, host: Host) -> list[Path]:
        return []

    def messages(self, host: Host) -> str:
        return "\n".join(started.out + started.err for started in self._running)


contender = PlainLoop
"""The class that `survival.contenders` finds."""
