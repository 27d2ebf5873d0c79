"""The loop that people write themselves: it starts the CLI until the check passes."""

from collections.abc import Sequence
from typing import Final

from survival import task
from survival.contender import About, Contender
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


class PlainLoop(Contender):
    def __init__(self, cli: str) -> None:
        super().__init__()
        self._script = _SCRIPT.format(check=task.CHECK, command=_COMMANDS[cli])
        self.about = About(name="plain-loop", cli=cli, version="bash", setup=self._script)

    def prepare(self, host: Host) -> None:
        super().prepare(host)
        (host.project / "loop.sh").write_text(self._script)

    def argv(self, host: Host) -> Sequence[str]:
        return ["bash", "loop.sh"]


contender = PlainLoop
