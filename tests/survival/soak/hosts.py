"""A throwaway host for each CLI, with settings under which its errors soon reach Rekindle."""

from pathlib import Path
from typing import Any

from loopback import install
from loopback.anthropic import Anthropic
from loopback.cli import ClaudeSandbox
from loopback.codex_cli import CodexSandbox
from loopback.gemini import OVERLOADED, UNAUTHORIZED, Gemini, out_of_quota, too_long
from loopback.gemini_cli import MODEL, GeminiSandbox
from loopback.model import Model
from loopback.namespace import Namespace
from loopback.openai import OpenAI
from loopback.script import Fail
from survival.cell import SUBSCRIPTION
from survival.host import Host
from survival.refusals import REFUSALS, Refusals

PACKAGES = {"claude-code": install.CLAUDE, "codex": install.CODEX, "gemini": install.GEMINI}


class SoakHost(Host):
    def supervisors(self) -> list[int]:
        return [pid for pid, argv in self.living().items() if {"rekindle", "run"} <= set(argv)]


class GeminiRefusals(Refusals):
    """The errors of Gemini's API for an account with an API key."""

    def overloaded(self) -> Fail:
        return OVERLOADED

    def unauthorized(self) -> Fail:
        return UNAUTHORIZED

    def too_long(self) -> Fail:
        return too_long()

    def limit(self, resets: float) -> Fail:
        # A limit of a minute names seconds, and counts from now.
        return out_of_quota(20, "GenerateRequestsPerMinutePerProject")


def make_refusals(cli: str) -> Refusals:
    return GeminiRefusals("gemini", 1_048_576) if cli == "gemini" else REFUSALS[cli]


def make_dialect(cli: str) -> Any:
    return {"claude-code": Anthropic, "codex": OpenAI, "gemini": Gemini}[cli]()


def make_host(cli: str, model: Model, network: Namespace, disk: Path, folder: Path) -> SoakHost:
    program = install.program(PACKAGES[cli])
    if cli == "claude-code":
        claude = ClaudeSandbox(program, model=model, network=network, root=disk)
        environment, project = claude.environment(), claude.project
        # As a subscriber, who is told about limits; the token is a fake.
        del environment["ANTHROPIC_API_KEY"]
        environment["CLAUDE_CODE_OAUTH_TOKEN"] = SUBSCRIPTION
    elif cli == "codex":
        codex = CodexSandbox(program, model=model, place=None, root=disk)  # type: ignore[arg-type]
        settings = codex.settings / "config.toml"
        # Offline, each of its runs would end three seconds late.
        feature = "\n[features]\nplugin_discovery_prefetch = false\n"
        settings.write_text(settings.read_text() + feature)
        environment, project = codex.environment(), codex.project
    else:
        gemini = GeminiSandbox(program, model=model, place=None, root=disk)  # type: ignore[arg-type]
        gemini.configure(model={"name": MODEL})
        environment, project = gemini.environment(), gemini.project
    environment |= {"LC_ALL": "C.UTF-8", "REKINDLE_TRUST": ""}
    return SoakHost(folder, network, project, environment)
