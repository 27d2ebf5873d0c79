"""The installation, with an npm that only pretends."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loopback.acp_agents import AGENTS
from loopback.install import CLAUDE, CODEX, GEMINI, NODE, InstallError, UnavailableError, install

INSTALLS = """
from pathlib import Path
import os, sys
with open(os.environ["NPM_CONFIG_DIARY"], "a") as diary:
    print(" ".join(sys.argv[1:]), *sorted(os.environ), file=diary)
program = Path("node_modules/@anthropic-ai/claude-code-some-platform/claude")
program.parent.mkdir(parents=True)
program.touch()
"""
FAILS = "import sys; sys.exit('npm error code {}')"


@pytest.fixture
def environ(tmp_path) -> dict[str, str]:
    (tmp_path / "bin").mkdir()
    return {"PATH": f"{tmp_path / 'bin'}", "NPM_CONFIG_DIARY": str(tmp_path / "diary")}


def pretend(environ: dict[str, str], code: str) -> None:
    npm = Path(environ["PATH"]) / "npm"
    npm.write_text(f"#!{sys.executable} -I\n{code}")
    npm.chmod(0o755)


def diary(environ: dict[str, str]) -> list[str]:
    return Path(environ["NPM_CONFIG_DIARY"]).read_text().splitlines()


def test_one_installs_and_all_wait(tmp_path, environ):
    """However many ask at the same time, and later, npm is asked once."""
    pretend(environ, INSTALLS)
    with ThreadPoolExecutor(8) as workers:
        asked = [workers.submit(install, tmp_path / "cache", environ) for _ in range(8)]
        programs = {each.result() for each in asked}
    assert len(diary(environ)) == 1
    assert programs == {install(tmp_path / "cache", environ)}
    assert programs.pop().is_file()


def test_npm_sees_no_keys(tmp_path, environ):
    """The installer is told how to reach a registry, and nothing else of the environment."""
    pretend(environ, INSTALLS)
    install(tmp_path / "cache", {**environ, "HTTPS_PROXY": "p", "SOME_API_KEY": "k"})
    (line,) = diary(environ)
    assert line.startswith("ci ")
    assert "HTTPS_PROXY" in line
    assert "SOME_API_KEY" not in line


def test_a_killed_installation_is_done_again(tmp_path, environ):
    """The leftovers of a killed installation are not taken for a program."""
    pretend(environ, FAILS.format("EINTEGRITY"))
    with pytest.raises(InstallError, match="EINTEGRITY") as caught:
        install(tmp_path / "cache", environ)
    assert not isinstance(caught.value, UnavailableError)
    (left,) = (tmp_path / "cache").glob("*.partial")
    (left / "node_modules").mkdir()
    pretend(environ, INSTALLS)
    assert install(tmp_path / "cache", environ).is_file()
    assert not left.exists()


@pytest.mark.parametrize("code", ["ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "E503", "EBADPLATFORM"])
def test_no_registry(tmp_path, environ, code):
    """A registry out of reach, or a missing build, is this machine's lack, not a test's error."""
    pretend(environ, FAILS.format(code))
    with pytest.raises(UnavailableError, match=code):
        install(tmp_path / "cache", environ)


def test_no_npm(tmp_path, environ):
    """A machine without npm is told what it lacks."""
    with pytest.raises(UnavailableError, match="npm is not installed"):
        install(tmp_path / "cache", environ)


PACKAGES = (CLAUDE, CODEX, GEMINI, NODE, *(agent.package for agent in AGENTS.values()))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_the_lock_names_no_registry(package):
    """The lock file pins every package by its hash, and tells nothing of where it came from."""
    lock = (package.pinned / "package-lock.json").read_text()
    assert '"resolved"' not in lock
    assert "://" not in lock
    assert lock.count('"integrity": "sha512-') == lock.count('"node_modules/')
