"""An agent in Codex's sandbox makes its folder a repository whose configuration names programs."""

import shlex
import subprocess
import tempfile
from pathlib import Path

import pytest

from e2e.sandbox import RELAY, TASK, Rekindle
from e2e.test_escape import MANIFEST, CodexAgent
from loopback.fixtures import require_namespaces
from loopback.model import Model
from loopback.namespace import Namespace
from loopback.place import Place
from loopback.script import Text, ToolCall

pytestmark = pytest.mark.timeout(300)

SCRIPT = r"""
set -e
git init -q --bare .
printf '[core]\n\trepositoryformatversion=0\n\tbare=false\n\tworktree=%s\n' "$PWD" > config
printf '#!/bin/sh\ntouch "$1"\ncat\n' > evil.sh
chmod +x evil.sh
printf 'a.txt filter=\377\n' > .gitattributes
GIT_DIR=$PWD GIT_WORK_TREE=$PWD git add a.txt
printf '[filter "\377"]\n\tclean = %s/evil.sh %s\n' "$PWD" "$1" >> config
mv refs r; mv objects o; ln -s "$2" refs; ln -s "$2" objects
printf two > a.txt
touch planted
"""


def test_a_planted_bare_repository_has_no_effect(codex_program):
    """Its filter is not run outside the sandbox, and no relay is written through its links."""
    require_namespaces()
    with (
        # Not in /tmp, where Codex lets its agent write.
        tempfile.TemporaryDirectory(prefix="rk-", dir="/var/tmp") as folder,
        Namespace() as network,
        Model(CodexAgent.dialect(), network.listener) as model,
        Place(network, Path(folder, "place")) as place,
    ):
        agent = CodexAgent(codex_program, model, network, place, Path(folder, "cli"))
        project, home = agent.cli.project, agent.cli.home
        (project / "rekindle.yaml").write_text(MANIFEST.format(harness="codex", tools="[Bash]"))
        (project / "PROMPT.md").write_text(TASK)
        (project / "a.txt").write_text("one")
        subprocess.run(["git", "init", "-q", str(project.parent)], check=True)
        canary, elsewhere = home / "escaped", home / "elsewhere"
        (elsewhere / "heads").mkdir(parents=True)
        command = shlex.join(["sh", "-c", SCRIPT, "sh", str(canary), str(elsewhere)])
        draft = agent.write({project / ".rekindle/drafts/trades/relay.md": RELAY.encode()})
        plant = ToolCall("exec_command", {"cmd": command, "yield_time_ms": 30_000})
        model.play(plant, *draft, Text("done."), Text("done."))
        Rekindle(agent.cli, place)("run", code=24)
        assert (project / "planted").exists()
        assert not canary.exists()
        assert [path for path in elsewhere.rglob("*") if path.is_file()] == []
        branches = ["git", "-C", str(project.parent), "for-each-ref", "--format=%(refname)"]
        listed = subprocess.run(branches, check=True, capture_output=True, text=True).stdout
        snapshots = ["refs/rekindle/trades/1", "refs/rekindle/trades/2"]
    assert listed.split() == ["refs/heads/rekindle/trades/relay", *snapshots]
