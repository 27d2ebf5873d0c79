"""`relay:`: a loop that expects its own relay file works unchanged."""

import json

import pytest

from unit.cli.running.test_run_command import project
from unit.cli.test_loops_of_cycles import Loop

__all__ = ["project"]

MORE = """\
    relay: memories/consensus.md
personas:
  summarizer: {adapter: command, command: ["false"]}
"""
WRITES = """\
own = pathlib.Path("memories/consensus.md")
pathlib.Path(f"found-{number}").write_text(own.read_text() if own.exists() else "")
directive = "DONE" if number == 3 else f"Do step {number + 1}"
own.parent.mkdir(exist_ok=True)
own.write_text(f"## Current Phase\\nBuild\\n\\n## Next Action\\n{directive}\\n")
"""
LINKS = """\
import shutil
shutil.rmtree("memories", ignore_errors=True)
os.path.lexists("memories") or os.symlink({outside!r}, "memories")
"""


@pytest.fixture
def loop(project):
    found = Loop(project)
    found.has(more=MORE)
    return found


def relays(loop):
    lines = loop.project("events", "--json", "--last", "0").out.splitlines()
    return [one for one in map(json.loads, lines) if one["kind"] == "relay.committed"]


def test_a_loop_that_reads_and_replaces_its_own_file(loop):
    loop.agent(WRITES)
    loop.run(code=20)
    assert [(one["by"], one["headline"]) for one in relays(loop)] == [
        ("agent", "Do step 2"),
        ("agent", "Do step 3"),
        ("agent", "DONE"),
    ]
    assert "Do step 3" in (loop.path / "found-3").read_text()
    assert str(loop.path / "memories/consensus.md") in (loop.path / "prompt-1").read_text()
    assert [one["how"] for one in loop.ended()] == ["draft"] * 3


def test_a_relay_that_was_there_before_the_first_cycle_counts(loop):
    (loop.path / "memories").mkdir()
    (loop.path / "memories/consensus.md").write_text("## Next Action\nBegin with the lexer\n")
    loop.agent("pass")
    loop.run("--cycles", "1")
    assert "Begin with the lexer" in (loop.path / "prompt-1").read_text()
    first = relays(loop)[0]
    assert (first["by"], first["headline"]) == ("person", "Begin with the lexer")


def test_a_command_and_an_edit_count_between_cycles(loop):
    """`relay set` writes the file, and the file's older text does not undo it.

    A process that `keep:` names may have made the edit: once the agent was launched, no edit of the
    file counts as the person's.
    """
    loop.agent(WRITES)
    loop.run("--cycles", "1")
    (loop.path / "new.md").write_text("## Next Action\nAs the command says\n")
    loop.project("relay", "set", "new.md")
    loop.run("--cycles", "1")
    assert "As the command says" in (loop.path / "found-2").read_text()
    own = loop.path / "memories/consensus.md"
    own.write_text("## Next Action\nAs the edit says\n")
    loop.run("--cycles", "1", code=20)
    assert "As the edit says" in (loop.path / "prompt-3").read_text()
    authors = ["agent", "person", "agent", "agent-edit", "agent"]
    assert [one["by"] for one in relays(loop)] == authors


def test_a_file_of_the_agent_in_the_archive_hides_no_edit(loop):
    """Its name must have a whole hash: an empty one would match every hash."""
    loop.agent("pass")
    loop.run("--cycles", "1")
    for name in (".md", "relay-00000001-.md", "relay-00000001"):
        (loop.path / ".rekindle/agents/trades/memories/archive" / name).touch()
    for digit in "0123456789abcdef":
        (loop.path / f".rekindle/agents/trades/memories/archive/x-{digit}.md").touch()
    (loop.path / "memories/consensus.md").write_text("## Next Action\nAs the edit says\n")
    loop.run("--cycles", "1")
    assert "As the edit says" in (loop.path / "prompt-2").read_text()


def test_what_is_not_a_relay_is_kept_and_the_old_one_restored(loop):
    loop.agent(WRITES.replace('f"## Current', 'f"nothing" if number == 2 else f"## Current'))
    loop.run("--cycles", "2")
    assert relays(loop)[0]["by"] == "agent"
    kept = list((loop.path / ".rekindle/drafts/trades").glob("*.rejected"))
    assert [path.read_text() for path in kept] == ["nothing"]
    assert "## Next Action" in (loop.path / "memories/consensus.md").read_text()


def test_a_folder_that_became_a_link_leads_nowhere(loop, tmp_path):
    """The agent replaces the folder with a link out of the project: nothing is written there."""
    outside = tmp_path / "outside"
    outside.mkdir()
    loop.agent(LINKS.format(outside=str(outside)))
    loop.run("--cycles", "2")
    assert list(outside.iterdir()) == []
    ended = loop.run("--cycles", "1", code=5)
    assert "memories/consensus.md" in ended.err


@pytest.mark.parametrize(
    "path", ["/etc/consensus.md", "../consensus.md", ".rekindle/consensus.md", "src/parser.py"]
)
def test_a_path_that_cannot_be_a_relay_is_refused(loop, path):
    loop.has(more=f"    relay: {path}\n")
    loop.agent("pass")
    assert "named consensus.md, relay.md or progress.md" in loop.run(code=3).err
    assert not (loop.path / "count").exists()
