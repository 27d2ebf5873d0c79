"""An agent that speaks the Agent Client Protocol in a sandbox, behind the bridge."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from loopback import install
from loopback.acp_agents import AcpAgent
from loopback.model import Model
from loopback.place import Place
from loopback.sandbox import Run, Sandbox


class AcpRun(Run):
    @property
    def session(self) -> str:
        """Return the id of the opened session, or an empty text."""
        return next((str(event["session"]) for event in self.of("opened")), "")

    @property
    def said(self) -> str:
        return "\n".join(event["text"] for event in self.of("said"))


class AcpSandbox(Sandbox[AcpRun]):
    """The common part: a subclass names its agent."""

    kind = AcpRun
    agent: ClassVar[AcpAgent]

    def __init__(self, program: Path, *, model: Model, place: Place, root: Path) -> None:
        super().__init__(program, model=model, place=place, root=root)
        for name, text in self.agent.files(model.url).items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        command = self.bin / self.agent.command
        if self.agent.node:
            node = install.program(install.NODE)
            command.write_text(f'#!/bin/sh\nexec {shlex.join([str(node), str(program)])} "$@"\n')
            command.chmod(0o755)
        else:
            command.symlink_to(program)

    @property
    def argv(self) -> tuple[str, ...]:
        """Return the command that starts the agent itself."""
        return (str(self.bin / self.agent.command), *self.agent.arguments)

    @property
    def headless(self) -> tuple[str, ...]:
        raise NotImplementedError("the bridge starts the agent")

    def environment(self, **more: str) -> dict[str, str]:
        return super().environment(**{**self.agent.environment(self.model.url), **more})

    def hooks(self, hooks: Mapping[str, Sequence[str]]) -> Path:
        raise NotImplementedError("these agents have no hooks of ours")

    def resuming(self, session: str) -> tuple[str, ...]:
        return (f"--session={session}",)

    def transcript(self, session: str) -> Path:
        raise ValueError("Rekindle saves the output as the transcript")

    def beside(self, session: str) -> list[Path]:
        return []


def sandbox_of(agent: AcpAgent) -> type[AcpSandbox]:
    """Return the sandbox of an agent."""
    return type(f"{agent.name.title()}Sandbox", (AcpSandbox,), {"agent": agent})
