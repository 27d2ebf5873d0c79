"""A repository in which every way of git to run a program is armed.

Each canary leaves a file in the folder of songs when it is run. `sing` runs the ordinary commands
that trigger them, so that a test can know that silence means something.
"""

import os
import pty
import subprocess
from pathlib import Path

from throwaway import Repository

HOOKS = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "sendemail-validate",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-prepare-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "post-index-change",
]
PROGRAMS = [
    "clean",
    "smudge",
    "process",
    "textconv",
    "external-diff",
    "merge-driver",
    "fsmonitor",
    "gpg",
    "editor",
    "pager",
    "ssh",
    "credential",
    "askpass",
    "alias",
    "lazy-fetch",
]
FILES = ("trace2", "trace", "template", "message")
"""Sung by git itself: it writes where its settings or its environment say."""


class Canaries:
    def __init__(self, root: Path, global_settings: Path) -> None:
        self.repository = Repository(root / "project").init()
        self._root = root
        self._songs = root / "songs"
        self._programs = root / "programs"
        for folder in (self._songs, self._programs, root / "template"):
            folder.mkdir()
        self.repository.commit("a.txt", "one\n")
        (root / "template/canary").touch()
        (root / "message").write_text("a canary's template\n")
        self._arm(global_settings)

    def environment(self) -> dict[str, str]:
        """Return variables that a hook or a careless shell may pass to us."""
        programs = {"GIT_EDITOR": "editor", "GIT_PAGER": "pager", "GIT_SSH_COMMAND": "ssh"}
        return {name: self._program(program) for name, program in programs.items()} | {
            "GIT_TRACE": str(self._songs / "trace"),
            "GIT_ASKPASS": self._program("askpass"),
        }

    def sung(self) -> set[str]:
        found = {path.name for path in self._songs.iterdir()}
        found |= {"template" for _ in self._root.glob("**/.git/canary")}
        log = self.repository.git("log", "--all", "--format=%B", check=False)
        return found | ({"message"} if "a canary's template" in log else set())

    def clear(self) -> None:
        for path in self._songs.iterdir():
            path.unlink()

    def sing(self) -> set[str]:
        """Run what a person runs in a day."""
        at, git = self.repository.path, self.repository.git
        with_trace = {"GIT_TRACE": str(self._songs / "trace")}
        git("status", check=False, **with_trace)
        (at / "a.txt").write_text("two\n")
        git("diff", check=False)
        git("diff", "--no-ext-diff", check=False)
        git("add", "a.txt", check=False)
        git("commit", "-m", "signed", check=False)
        git("-c", "commit.gpgSign=false", "commit", check=False)
        git("-c", "commit.gpgSign=false", "-c", "core.editor=true", "commit", check=False)
        edit = ("-c", "core.editor=sh -c 'echo more >>\"$0\"'")
        git("-c", "commit.gpgSign=false", *edit, "commit", check=False)
        (at / "a.txt").unlink()
        git("checkout", "--", "a.txt", check=False)
        self._merge()
        (at / "b.proc").write_text("one\n")
        git("add", "b.proc", check=False)
        git("canary", check=False)
        git("ls-remote", "ssh://nowhere.invalid/x", check=False)
        self._with_input(["git", "credential", "fill"], b"protocol=https\nhost=nowhere.invalid\n\n")
        git("cat-file", "-p", "1" * 40, check=False)
        git("init", "-q", str(self._root / "another"))
        self._on_a_terminal(["git", "log"])
        for hook in HOOKS:
            git("hook", "run", hook, check=False)
        return self.sung()

    def _program(self, name: str, does: str = "exit 1") -> str:
        path = self._programs / name
        if not path.exists():
            path.write_text(f"#!/bin/sh\n: > '{self._songs / name}'\n{does}\n")
            path.chmod(0o755)
        return str(path)

    def _arm(self, global_settings: Path) -> None:
        git = self.repository.git
        program = self._program
        (self.repository.path / ".gitattributes").write_text(
            "*.txt filter=canary diff=canary merge=canary\n*.proc filter=process\n"
            "consensus.md filter=canary diff=canary ident text eol=crlf\n"
        )
        for key, value in {
            "filter.canary.clean": program("clean", "cat"),
            "filter.canary.smudge": program("smudge", "cat"),
            "filter.process.process": program("process"),
            "diff.canary.textconv": program("textconv", 'cat "$1"'),
            "diff.external": program("external-diff"),
            "merge.canary.driver": program("merge-driver"),
            "core.fsmonitor": program("fsmonitor"),
            "core.editor": program("editor"),
            "core.pager": program("pager"),
            "core.sshCommand": program("ssh"),
            "core.askPass": program("askpass"),
            "credential.helper": program("credential"),
            "gpg.program": program("gpg"),
            "commit.gpgSign": "true",
            "tag.gpgSign": "true",
            "log.showSignature": "true",
            "commit.template": str(self._root / "message"),
            "alias.canary": f"!{program('alias')}",
            "core.alternateRefsCommand": program("alias"),
            "remote.origin.url": f"ext::{program('lazy-fetch')}",
            "remote.origin.promisor": "true",
            "extensions.partialClone": "origin",
            "protocol.ext.allow": "always",
            "gc.auto": "1",
            "maintenance.auto": "true",
        }.items():
            git("config", key, value)
        for builtin in ("update-ref", "unpack-objects", "for-each-ref", "config"):
            git("config", f"alias.{builtin}", f"!{program('alias')}")
        git("config", "hook.canary.event", "reference-transaction")
        git("config", "hook.canary.command", program("configured-hook", "exit 0"))
        global_settings.write_text(
            f"[trace2]\n\teventTarget = {self._songs / 'trace2'}\n"
            f"[init]\n\ttemplateDir = {self._root / 'template'}\n"
        )
        for hook in HOOKS:
            path = self.repository.path / ".git/hooks" / hook
            path.unlink(missing_ok=True)
            path.symlink_to(program(hook, "exit 0"))

    def _merge(self) -> None:
        git = self.repository.git
        unsigned = ("-c", "commit.gpgSign=false")
        for branch, text in (("left", "left\n"), ("right", "right\n")):
            git(*unsigned, "checkout", "-q", "-f", "-B", branch, "main", check=False)
            (self.repository.path / "a.txt").write_text(text)
            git(*unsigned, "commit", "-q", "-a", "-m", branch, check=False)
        git(*unsigned, "merge", "-q", "left", check=False)
        git("merge", "--abort", check=False)
        git(*unsigned, "checkout", "-q", "-f", "main", check=False)

    def _with_input(self, arguments: list[str], data: bytes) -> None:
        subprocess.run(
            arguments, cwd=self.repository.path, input=data, capture_output=True, check=False
        )

    def _on_a_terminal(self, arguments: list[str]) -> None:
        """Run a pager, which needs a terminal."""
        outer, inner = pty.openpty()
        try:
            subprocess.run(
                arguments,
                cwd=self.repository.path,
                env={**os.environ, "TERM": "xterm"},
                stdin=subprocess.DEVNULL,
                stdout=inner,
                stderr=subprocess.DEVNULL,
                check=False,
            )
        finally:
            os.close(outer)
            os.close(inner)
