"""Throwaway repositories for tests: real git, without this machine's configuration."""

import os
import subprocess
from pathlib import Path

import pytest


def isolate(monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    """Set an empty home and no system settings; return the path of the global settings."""
    home.mkdir(exist_ok=True)
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    settings = home / ".gitconfig"
    settings.touch()
    return settings


class Repository:
    """A folder with a repository, with git as a person would call it there."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def git(self, *arguments: str, check: bool = True, **more: str) -> str:
        """Run git with an author's name; return its output without the last newline."""
        who = {
            f"GIT_{role}_{what}": f"someone{'@localhost' if what == 'EMAIL' else ''}"
            for role in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        ended = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env={**os.environ, **who, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or ended.returncode == 0, f"git {arguments}: {ended.stderr}"
        return ended.stdout.rstrip("\n")

    def init(self, *options: str) -> "Repository":
        self.path.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", *options)
        return self

    def commit(self, name: str = "file.txt", text: str = "text\n") -> str:
        (self.path / name).write_text(text)
        self.git("add", name)
        self.git("commit", "-q", "-m", f"Write {name}")
        return self.git("rev-parse", "HEAD")

    def users_own(self) -> dict[str, object]:
        """Return the content that only the user may change."""
        folder = self.path / self.git("rev-parse", "--git-dir")
        common = self.path / self.git("rev-parse", "--git-common-dir")
        index = folder / "index"
        # A read must not write: status would refresh the index.
        looking = {"check": False, "GIT_OPTIONAL_LOCKS": "0"}
        refs = self.git("for-each-ref", "--format=%(refname) %(objectname)")
        return {
            "HEAD": (folder / "HEAD").read_bytes(),
            "config": (common / "config").read_bytes(),
            "index": index.read_bytes() if index.exists() else None,
            "refs": [ref for ref in refs.splitlines() if "refs/heads/rekindle/" not in ref],
            "status": self.git("status", "--porcelain", "--untracked-files=all", **looking),
            "stash": (common / "refs/stash").exists(),
        }

    def trail(self, agent: str = "trades") -> list[tuple[int, str]]:
        """Return the numbers and subjects of an agent's trail, oldest first."""
        ref = f"refs/heads/rekindle/{agent}/relay"
        if not self.git("for-each-ref", ref):
            return []
        form = "%(trailers:key=Rekindle-Seq,valueonly,separator=%x20) %s"
        lines = self.git("log", "--reverse", f"--format={form}", ref, "--").splitlines()
        return [(int(line.split()[0]), line.split(maxsplit=1)[1]) for line in lines]
