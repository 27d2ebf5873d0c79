"""Rekindle, set up as its guide says: an agent in the background, and the daemon as a service."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import rekindle
from survival import task
from survival.contender import About, Contender
from survival.host import Host

_PROGRAM: Final = (sys.executable, "-I", "-m", "rekindle")
AGENT: Final = "writer"
_SETUP: Final = """\
git init
rekindle init {agent} --harness {cli} --tools run --until "{check}" --yes
cp task.md PROMPT.md
rekindle service install       # the host's service manager keeps `rekindle daemon` running
rekindle up
"""


class Rekindle(Contender):
    def __init__(self, cli: str) -> None:
        super().__init__()
        self.about = About(
            name="rekindle",
            cli=cli,
            version=rekindle.__version__,
            setup=_SETUP.format(agent=AGENT, cli=cli, check=task.CHECK),
        )

    def _run(self, host: Host, *words: str) -> str:
        started = host.run([*_PROGRAM, *words])
        return started.out + started.err

    def prepare(self, host: Host) -> None:
        host.run(["git", "init", "-q"])
        tools = ("--tools", "run", "--until", task.CHECK, "--yes")
        said = self._run(host, "init", AGENT, "--harness", self.about.cli, *tools)
        assert (host.project / "rekindle.yaml").exists(), said
        (host.project / "PROMPT.md").write_text(task.prompt(self.about.ending))

    def start(self, host: Host) -> None:
        said = self._run(host, "up")
        assert "started" in said, said

    def is_running(self, host: Host) -> bool:
        return any({"rekindle", "run"} <= set(argv) for argv in host.living().values())

    def service(self, host: Host) -> Sequence[str]:
        return [*_PROGRAM, "daemon"]

    def stop_as_operator(self, host: Host) -> None:
        self._run(host, "stop")

    def revive(self, host: Host) -> None:
        """Answer what it asks: that it may continue; or start it again."""
        shown = json.loads(self._run(host, "status", "--json"))
        state = str(shown["agents"][0])
        self._run(host, "restart" if "safe_mode" in state or "needs" in state else "up", AGENT)

    def shut_down(self, host: Host) -> None:
        self._run(host, "down")

    def state_files(self, host: Host) -> list[Path]:
        folder = host.project / ".rekindle/agents" / AGENT
        return [folder / "state.json"]

    def messages(self, host: Host) -> str:
        lines = self._run(host, "logs", "--last", "0", AGENT).splitlines(keepends=True)
        told = "".join(line for line in lines if "  · " not in line)  # without its tool calls
        status = self._run(host, "status", AGENT).splitlines()
        return told + "".join(line for line in status if line.startswith("  state:"))


contender = Rekindle
