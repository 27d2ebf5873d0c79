"""Run one agent without a manifest."""

import shutil
import sys

import pytest

import rekindle
from rekindle.errors import ManifestError, UsageError
from rekindle.wiring import hook_primer
from rekindle.wiring.access import trust_checks

AGENT = """\
import os, pathlib, sys
folder = pathlib.Path(os.environ["REKINDLE_FOLDER"])
pathlib.Path("given.md").write_text(sys.stdin.read())
number = len(list(pathlib.Path(".").glob("step-*"))) + 1
pathlib.Path(f"step-{number}").touch()
draft = folder.parents[1] / "drafts" / folder.name / "relay.md"
draft.write_text(f"## Next Action\\nDo step {number + 1}\\n")
"""


@pytest.fixture
def start(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    program = tmp_path / "agent.py"
    program.write_text(AGENT)

    def run(name="scout", **more):
        command = (sys.executable, str(program))
        how = {"harness": "command", "task": "Do the steps.", "command": command}
        return rekindle.run(name, folder=folder, **how | more)

    run.folder = folder
    return run


def test_an_agent_runs_without_a_manifest_and_continues(start):
    row = start()
    assert (row.agent, row.outcome, row.cycle) == ("scout", "out-of-cycles", 1)
    assert row.next_action == "Do step 2"
    assert "Do the steps." in (start.folder / "given.md").read_text()
    assert start(cycles=2).cycle == 3
    assert "Do step 2" not in (start.folder / "given.md").read_text()
    assert sorted(path.name for path in start.folder.glob("step-*")) == [
        "step-1",
        "step-2",
        "step-3",
    ]
    assert not (start.folder / "rekindle.yaml").exists()
    assert not trust_checks.is_trusted(start.folder)


def test_a_session_that_reports_its_start_gets_the_relay(start):
    """Its hook finds the settings of the run, although the folder has no manifest."""
    start()
    folder, said = start.folder / ".rekindle/agents/scout", []
    record = b'1 hook claude-code SessionStart:startup - - 1794709671134562890 - {"session_id":"s"}'
    hook_primer.main(folder, record, said.append)
    assert "Do step 2" in "".join(said)


def test_a_session_of_another_agent_gets_nothing(start):
    start()
    shutil.copytree(start.folder / ".rekindle/agents/scout", start.folder / ".rekindle/agents/b")
    said = []
    record = b'1 hook claude-code SessionStart:startup - - 1794709671134562890 - {"session_id":"s"}'
    hook_primer.main(start.folder / ".rekindle/agents/b", record, said.append)
    assert said == []


def test_a_passed_until_ends_the_run(start):
    assert start(cycles=9, until=("test", "-e", "step-2")).state == "done"
    assert not (start.folder / "step-3").exists()


def test_a_folder_with_a_manifest_is_refused(start):
    (start.folder.parent / "rekindle.yaml").write_text("version: 1\nagents: {}\n")
    with pytest.raises(UsageError, match="so its agents are named there") as refused:
        start()
    assert "rekindle.connect" in refused.value.hint


@pytest.mark.parametrize("wrong", [{"name": "../a"}, {"harness": "odd"}, {"task": " "}])
def test_wrong_settings_are_refused(start, wrong):
    with pytest.raises((ManifestError, UsageError)):
        start(**wrong)
    assert not (start.folder / "step-1").exists()
