"""A remote and the hosts that push an agent's work to it: real git."""

import pytest

from rekindle.documents.commits.work_commit import make_work_ref
from rekindle.fleet.hosts.work_branch import WorkBranch
from throwaway import Repository, isolate


class Fleet:
    """A bare remote, and a folder for the agent on each host."""

    def __init__(self, root):
        self.root = root
        self.remote = Repository(root / "remote.git").init("--bare")
        self.url = f"file://{self.remote.path}"

    def at(self, host, generation):
        return WorkBranch(
            self.root / host / "trades",
            remote=self.url,
            agent="trades",
            generation=generation,
            host=host,
        )

    def repository(self, host):
        return Repository(self.root / host / "trades")

    def work(self):
        return self.remote.git("for-each-ref", "--format=%(objectname)", make_work_ref("trades"))

    def is_in(self, ancestor, commit):
        asked = ("merge-base", "--is-ancestor", ancestor, commit)
        self.remote.git(*asked)
        return True


@pytest.fixture
def fleet(tmp_path, monkeypatch):
    isolate(monkeypatch, tmp_path / "home")
    made = Fleet(tmp_path)
    person = Repository(tmp_path / "person").init()
    person.commit("kept.txt", "kept\n")
    person.commit("gone.txt", "gone\n")
    (person.path / "run.sh").write_text("#!/bin/sh\n")
    (person.path / ".gitignore").write_text("build/\n*.log\n")
    person.git("add", "-A")
    person.git("commit", "-q", "-m", "More")
    person.git("push", "-q", made.url, "main")
    return made
