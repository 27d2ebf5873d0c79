"""The agents that speak the Agent Client Protocol: how each is started and reaches the model."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from loopback import anthropic, chat, codex_cli, install, openai
from loopback.model import Dialect
from loopback.sandbox import KEY
from loopback.script import Fail, ToolCall, Usage

MODEL: Final = "scripted"
WINDOW: Final = 128_000


@dataclass(frozen=True)
class Api:
    """An API, and its words for refusals."""

    dialect: Callable[[], Dialect]
    limit: Fail
    outage: Fail
    login: Fail


CHAT: Final = Api(chat.Chat, chat.RATE_LIMITED, chat.BROKEN, chat.UNAUTHORIZED)
ANTHROPIC: Final = Api(
    anthropic.Anthropic, anthropic.RATE_LIMITED, anthropic.BROKEN, anthropic.UNAUTHORIZED
)
OPENAI: Final = Api(openai.OpenAI, openai.RATE_LIMITED, openai.BROKEN, openai.UNAUTHORIZED)


@dataclass(frozen=True)
class AcpAgent:
    """The facts about one agent."""

    name: str
    """The name of its preset."""
    package: install.Package
    arguments: tuple[str, ...]
    command: str
    """The program that a user types."""
    tool: str
    """The tool that runs a command."""
    files: Callable[[str], Mapping[str, str]] = lambda _: {}
    """Its settings below the home, for the address of the model."""
    environment: Callable[[str], Mapping[str, str]] = lambda _: {}
    """Its variables, for the address of the model."""
    node: bool = False
    """The program is a script for node."""
    extra: Mapping[str, Any] | None = None
    """Further arguments that the tool requires."""
    argument: str = "command"
    """The tool's argument that is the command."""
    api: Api = CHAT
    """The API of its model."""

    def call(self, command: str, usage: Usage = Usage()) -> ToolCall:  # noqa: B008 - it is frozen
        """Return the call by which its model runs a command."""
        return ToolCall(self.tool, {self.argument: command, **(self.extra or {})}, usage)


def _ai_sdk(path: str) -> Callable[[str], Mapping[str, str]]:
    def files(url: str) -> Mapping[str, str]:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
            "models": {MODEL: {"limit": {"context": WINDOW, "output": 4096}}},
        }
        settings = {
            "provider": {"loopback": provider},
            "model": f"loopback/{MODEL}",
            "small_model": f"loopback/{MODEL}",
            "autoupdate": False,
            "share": "disabled",
        }
        return {path: json.dumps(settings)}

    return files


def _kimi(url: str) -> Mapping[str, str]:
    return {
        ".kimi-code/config.toml": f"""\
default_model = "{MODEL}"
telemetry = false

[loop_control]
max_attempts_per_step = 2

[providers.loopback]
type = "openai"
base_url = "{url}/v1"
api_key = "{KEY}"

[models.{MODEL}]
provider = "loopback"
model = "{MODEL}"
max_context_size = {WINDOW}
"""
    }


def _qwen(_: str) -> Mapping[str, str]:
    settings = {
        "privacy": {"usageStatisticsEnabled": False},
        "model": {"generationConfig": {"maxRetries": 1, "retryInitialDelayMs": 100}},
    }
    return {".qwen/settings.json": json.dumps(settings)}


AGENTS: Final = {
    agent.name: agent
    for agent in (
        AcpAgent(
            "opencode",
            install.OPENCODE,
            ("acp",),
            "opencode",
            tool="bash",
            extra={"description": "run it"},
            files=_ai_sdk(".config/opencode/opencode.json"),
            environment=lambda _: {"OPENCODE_DISABLE_MODELS_FETCH": "1"},
        ),
        AcpAgent(
            "kilo",
            install.KILO,
            ("acp",),
            "kilo",
            tool="bash",
            extra={"description": "run it"},
            files=_ai_sdk(".config/kilo/kilo.json"),
            environment=lambda _: {"KILO_SESSION_RETRY_LIMIT": "1"},
        ),
        AcpAgent(
            "qwen",
            install.QWEN,
            ("--acp", "--auth-type", "openai"),
            "qwen",
            tool="run_shell_command",
            extra={"is_background": False},
            files=_qwen,
            environment=lambda url: {
                "OPENAI_BASE_URL": f"{url}/v1",
                "OPENAI_API_KEY": KEY,
                "OPENAI_MODEL": MODEL,
            },
            node=True,
        ),
        AcpAgent("kimi", install.KIMI, ("acp",), "kimi", tool="Bash", files=_kimi, node=True),
        AcpAgent(
            "copilot",
            install.COPILOT,
            ("--acp",),
            "copilot",
            tool="bash",
            extra={"description": "run it"},
            environment=lambda url: {
                "COPILOT_OFFLINE": "true",
                "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
                "COPILOT_PROVIDER_API_KEY": KEY,
                "COPILOT_MODEL": MODEL,
            },
        ),
        AcpAgent(
            "claude-acp",
            install.CLAUDE_ACP,
            (),
            "claude-agent-acp",
            tool="Bash",
            extra={"description": "run it"},
            environment=lambda url: {
                "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_API_KEY": KEY,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CODE_MAX_RETRIES": "1",
            },
            node=True,
            api=ANTHROPIC,
        ),
        AcpAgent(
            "codex-acp",
            install.CODEX_ACP,
            (),
            "codex-acp",
            tool="exec_command",
            argument="cmd",
            extra={"yield_time_ms": 30_000},
            files=lambda url: {
                ".codex/config.toml": codex_cli.CONFIG.format(model=codex_cli.MODEL, url=url)
            },
            environment=lambda _: {"OPENAI_API_KEY": KEY},
            node=True,
            api=OPENAI,
        ),
    )
}
