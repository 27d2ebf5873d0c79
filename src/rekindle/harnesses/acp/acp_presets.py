"""The agents that Rekindle knows over the Agent Client Protocol, one preset for each.

Each preset is checked with recordings of the real program.
"""

from collections.abc import Mapping

import msgspec

_ASK_ALWAYS = (
    '{"*":"ask","bash":"ask","edit":"ask","webfetch":"ask","websearch":"ask","task":"ask",'
    '"external_directory":"ask","read":"allow","grep":"allow","glob":"allow","list":"allow",'
    '"todowrite":"allow","todoread":"allow"}'
)
"""Rules that make opencode ask about every call that does more than read."""


class AcpPreset(msgspec.Struct, frozen=True, kw_only=True):
    """How to start an agent, and what it does."""

    name: str
    """Name in `harness:`."""
    title: str
    command: tuple[str, ...] = ()
    """Program and arguments; empty if the manifest names them."""
    install: str = "create it, or correct `command:` in rekindle.yaml"
    asks: bool = False
    """Whether the agent can be made to ask before every call that does more than read. Only then
    can a persona's rules be enforced.
    """
    ask_mode: str = ""
    """Mode in which the agent asks; empty if the mode does not matter."""
    ask_environment: Mapping[str, str] = {}
    """Variables that make the agent ask."""
    reports_money: bool = False
    reports_tokens: bool = False
    """Whether the answer to a prompt has the tokens of all requests, and not only of the last."""
    settings: tuple[str, ...] = ()
    """Names of files and folders in the workspace that can permit calls or start programs."""
    prefixes: tuple[str, ...] = ()
    """Prefixes of the variables that configure the agent."""
    blocked: tuple[str, ...] = ()
    """Variables with these prefixes that the agent sets in its sessions."""
    hosts: tuple[str, ...] = ()
    """Hosts that the agent needs in a sandbox."""
    instead: str = ""
    """Native harness for the same agent, which enforces personas; empty if there is none."""


ANY = AcpPreset(name="acp", title="an agent in `command:`")
PRESETS = {
    preset.name: preset
    for preset in (
        AcpPreset(
            name="opencode",
            title="opencode",
            command=("opencode", "acp"),
            install="install it: npm install -g opencode-ai",
            asks=True,
            ask_environment={"OPENCODE_PERMISSION": _ASK_ALWAYS},
            settings=("opencode.json", "opencode.jsonc", ".opencode"),
            reports_money=True,
            prefixes=("OPENCODE_",),
        ),
        AcpPreset(
            name="kilo",
            title="Kilo",
            command=("kilo", "acp"),
            install="install it: npm install -g @kilocode/cli",
            asks=True,
            ask_environment={"KILO_PERMISSION": _ASK_ALWAYS},
            settings=(
                *("kilo.json", "kilo.jsonc", ".kilo", ".kilocode"),
                *("opencode.json", "opencode.jsonc", ".opencode"),
            ),
            reports_money=True,
            prefixes=("KILO_",),
        ),
        AcpPreset(
            name="qwen",
            title="Qwen Code",
            command=("qwen", "--acp"),
            install="install it, with node 22 or later: npm install -g @qwen-code/qwen-code",
            settings=(".qwen",),
            prefixes=("QWEN_", "OPENAI_", "DASHSCOPE_"),
        ),
        AcpPreset(
            name="kimi",
            title="Kimi Code",
            command=("kimi", "acp"),
            install="install it: npm install -g @moonshot-ai/kimi-code",
            asks=True,
            ask_mode="default",
            settings=(".kimi-code", ".kimi"),
            prefixes=("KIMI_", "MOONSHOT_"),
        ),
        AcpPreset(
            name="copilot",
            title="Copilot CLI",
            command=("copilot", "--acp"),
            install="install it: npm install -g @github/copilot",
            settings=(
                *(".github/copilot", ".github/hooks", ".github/extensions", ".github/agents"),
                *(".github/mcp.json", ".github/lsp.json"),
            ),
            reports_tokens=True,
            prefixes=("COPILOT_",),
        ),
        AcpPreset(
            name="claude-acp",
            title="Claude Code over ACP",
            command=("claude-agent-acp",),
            install="install it, with node 22 or later: "
            "npm install -g @agentclientprotocol/claude-agent-acp",
            reports_money=True,
            reports_tokens=True,
            prefixes=("ANTHROPIC_", "CLAUDE_"),
            blocked=("CLAUDE_CODE_SESSION_ID", "CLAUDE_PID", "CLAUDE_PROJECT_DIR"),
            hosts=("api.anthropic.com", "platform.claude.com", "console.anthropic.com"),
            instead="claude-code",
        ),
        AcpPreset(
            name="codex-acp",
            title="Codex over ACP",
            command=("codex-acp",),
            install="install it: npm install -g @agentclientprotocol/codex-acp",
            reports_tokens=True,
            prefixes=("OPENAI_", "CODEX_"),
            blocked=(
                *("CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID", "CODEX_CI"),
                *("CODEX_VERSION", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED"),
                "CODEX_PERMISSION_PROFILE",
            ),
            hosts=("api.openai.com", "chatgpt.com", "auth.openai.com"),
            instead="codex",
        ),
    )
}
