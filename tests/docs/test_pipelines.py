"""The guide to pipelines, run from top to bottom: from eight modules to a merged branch."""

import json
import shlex
import sys
from pathlib import Path

import pytest

import prerequisites
import worktrees
from documented import blocks, is_shown, steps
from rekindle.system.sandbox import probe
from rekindle.wiring.access.trust_checks import accept_folder

pytestmark = pytest.mark.timeout(600)

GUIDE = Path(__file__).parents[2] / "docs/guides/pipelines.md"
MODULES = ("basket", "billing", "catalog", "invoice", "orders", "reviews", "search", "stock")


@pytest.fixture
def project(tmp_path):
    obstacle = probe.find_obstacle()
    prerequisites.require(obstacle.words if obstacle else None)
    folder = tmp_path / "project"
    folder.mkdir()
    for kind, words, body in blocks(GUIDE.read_text()):
        if kind in {"yaml", "python"} and words:
            (folder / words[0]).write_text(body)
    settings = "[user]\nname = The User\nemail = user@example.org\n"
    (tmp_path / ".gitconfig").write_text(settings)
    accept_folder(folder)
    return folder


def start(place, project, line):
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(project.parent),
        "LC_ALL": "C.UTF-8",
        "GIT_PAGER": "cat",
    }
    words = shlex.split(line)
    program = [sys.executable, "-I", "-m"] if words[0] == "rekindle" else []
    return place.start([*program, *words], env=environment, cwd=project)


def test_eight_modules_are_migrated_and_merged(place, project):
    before = b""
    for kind, _, body in blocks(GUIDE.read_text()):
        for line, shown in steps(body) if kind == "console" else ():
            if line.startswith("rekindle pipeline run"):
                before = worktrees.git(project, "rev-parse", "HEAD")
            if line.startswith("rekindle pipeline merge"):
                assert worktrees.git(project, "rev-parse", "HEAD") == before, "changed too early"
                assert_all_events(place, project)
            started = start(place, project, line)
            code = started.wait(300)
            printed = (started.out + started.err).splitlines()
            assert code == 0, f"{line}\n{started.out}{started.err}"
            assert is_shown(shown, printed), f"{line}\n{started.out}{started.err}"
    for name in MODULES:
        text = (project / "shop" / f"{name}.py").read_text()
        assert text == f"import client\n\n\ndef load():\n    return client.get({name!r})\n"
    assert worktrees.git(project, "status", "--porcelain") == b""
    assert not (project / "modules.json").exists(), "an output is not on the branch"


def assert_all_events(place, project):
    """Each event names the pipeline and run, and each of a worker the step and worker too."""
    started = start(place, project, "rekindle pipeline logs migrate --json --last 0")
    assert started.wait() == 0, started.err
    events = [json.loads(line) for line in started.out.splitlines()]
    assert {(event["pipeline"], event["run"]) for event in events} == {("migrate", 1)}
    ends = {event["worker"] for event in events if event["kind"] == "worker.ended"}
    assert ends == {None, *MODULES}
    launched = {event["worker"] for event in events if event["kind"] == "launch.started"}
    assert launched == ends
