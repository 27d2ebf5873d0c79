"""The commands as a person runs them: their output, their files, their exit codes."""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from conftest import RELAY, put_clis_on_path
from rekindle import config
from rekindle.cli import main
from rekindle.documents import events, manifest
from rekindle.errors import RekindleError
from rekindle.policy.projection import open_loops
from rekindle.policy.setup.propose_until import render_until_lines
from rekindle.stores.folders.private_files import find_private_project
from rekindle.system import clock as real_clock
from rekindle.system import notifications
from rekindle.system.files import durable_files
from rekindle.wiring.open_store import open_store
from throwaway import Repository, isolate


@pytest.fixture
def here(tmp_path, tmp_path_factory, monkeypatch):
    """Use an empty folder as the current one; the agent CLIs are on the PATH."""
    monkeypatch.chdir(tmp_path)
    put_clis_on_path(tmp_path_factory.mktemp("clis"), monkeypatch)
    monkeypatch.delenv("REKINDLE_AGENT", raising=False)
    return tmp_path


@pytest.fixture
def rekindle(here, rekindle):
    """Return a function that runs commands in the empty folder."""
    return rekindle


@pytest.fixture
def project(rekindle, here):
    """Create a project with one agent that has a task."""
    assert rekindle("init", "--yes", "--agent", "trades")[0] == 0
    (here / "PROMPT.md").write_text("Ship it.\n")
    return here


def folder(here, name="trades"):
    return here / ".rekindle/agents" / name


def append(path, text):
    path.write_text(path.read_text() + text)


def shown(result):
    code, out, err = result
    assert code == 0, err
    return msgspec.json.decode(out)


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_command_has_help_that_agrees_with_the_list(rekindle, name):
    """The help of each command begins with its line in the list."""
    code, out, _ = rekindle(name, "--help")
    assert code == 0
    assert out.startswith(f"Usage: rekindle {name}")


def test_init_writes_a_few_lines(rekindle, here):
    """With --yes it never asks; without a way to verify the work, `until:` is a comment."""
    code, out, _ = rekindle("init", "--yes", "--agent", "trades", "--harness", "claude")
    assert code == 0
    text = (here / "rekindle.yaml").read_text()
    assert len([line for line in text.splitlines() if not line.strip().startswith("#")]) == 10
    assert "# until: ./check.sh" in text
    found = manifest.parse(text)
    assert found.agents["trades"] == manifest.AgentEntry(
        harness="claude-code", prompt="PROMPT.md", persona="edit-and-run"
    )
    assert "Bash" in found.personas["edit-and-run"].permissions.allowed_tools
    assert "it may edit and run commands" in out
    assert "wrote rekindle.yaml" in out
    assert (here / "PROMPT.md").exists()
    assert (here / ".rekindle/.gitignore").read_text() == "*\n"


def test_init_asks_for_a_task_only_if_there_is_none(rekindle, here):
    (here / "PROMPT.md").write_text("Ship it.\n")
    _, out, _ = rekindle("init", "--yes", "--agent", "trades", "--harness", "command")
    assert out.endswith("Next: `rekindle run trades`.\n")
    assert "REKINDLE_RELAY" in out
    (here / "PROMPT.md").unlink()
    _, out, _ = rekindle("init")
    assert out.endswith(
        "Next: write the agent's task into PROMPT.md, then `rekindle run trades`.\n"
    )


def test_init_refuses_tools_that_would_have_no_effect(rekindle, here):
    """An existing agent keeps its persona, and a `command` agent has none."""
    code, _, err = rekindle(
        "init", "--yes", "--agent", "own", "--harness", "command", "--tools=read"
    )
    assert (code, "--tools has no effect with command" in err) == (2, True)
    assert rekindle("init", "--yes", "--agent", "trades")[0] == 0
    before = (here / "rekindle.yaml").read_text()
    for arguments in (["--agent", "trades"], []):
        code, _, err = rekindle("init", "--yes", "--tools", "read", *arguments)
        assert (code, "change its persona" in err) == (2, True)
    assert (here / "rekindle.yaml").read_text() == before


def test_init_proposes_the_tests_of_the_project(rekindle, here):
    (here / "justfile").write_text("test:\n    true\n")
    (here / "package.json").mkdir()
    assert rekindle("init", "--yes", "--agent", "trades", "--harness", "claude")[0] == 0
    agent = manifest.parse((here / "rekindle.yaml").read_text()).agents["trades"]
    assert (agent.until, agent.until_claimed) == (["just", "test"], True)


def test_init_takes_task_check_and_program_so_that_no_file_is_edited(rekindle, here):
    (here / "justfile").write_text("test:\n    true\n")
    (here / "PROMPT.md").write_text(manifest.DEFAULT_PROMPT)
    options = ("--task", " Write it: now. ", "--until", 'test -s "a b"', "--command", "./own: x")
    code, out, _ = rekindle("init", "--yes", "trades", *options)
    assert (code, out.endswith("Next: `rekindle run trades`.\n")) == (0, True), out
    assert (here / "PROMPT.md").read_text() == "Write it: now.\n"
    agent = manifest.parse((here / "rekindle.yaml").read_text()).agents["trades"]
    assert (agent.until, agent.until_claimed) == (["test", "-s", "a b"], True)
    assert (agent.harness, agent.command) == ("command", ["./own:", "x"])


@pytest.mark.parametrize("option", ["--task", "--until", "--command"])
def test_init_refuses_options_that_would_have_no_effect(rekindle, here, option):
    """An empty value, or a value for an agent that exists, changes nothing."""
    code, _, err = rekindle("init", "--yes", "trades", option, " ")
    assert (code, f"{option} is empty" in err) == (2, True)
    assert not (here / "rekindle.yaml").exists()
    assert rekindle("init", "--yes", "trades")[0] == 0
    before = (here / "rekindle.yaml").read_text()
    code, _, err = rekindle("init", "--yes", "trades", option, "true")
    assert (code, f"{option} is for a new agent" in err) == (2, True)
    assert (here / "rekindle.yaml").read_text() == before


def test_init_keeps_a_task_that_is_already_written(rekindle, here):
    (here / "PROMPT.md").write_text("Ship it.\n")
    code, _, err = rekindle("init", "--yes", "trades", "--task", "Write it.")
    assert (code, "PROMPT.md has a task already" in err) == (2, True)
    assert not (here / "rekindle.yaml").exists()
    assert (here / "PROMPT.md").read_text() == "Ship it.\n"


def test_init_takes_the_folder_s_name(tmp_path, monkeypatch, capfd):
    """Without --agent the agent gets the name of its folder, made harmless."""
    place = tmp_path / "My Trading Bot!"
    place.mkdir()
    monkeypatch.chdir(place)
    assert main.run(["init", "--yes"]) == 0
    assert list(manifest.parse((place / "rekindle.yaml").read_text()).agents) == ["my-trading-bot"]


def test_init_adds_a_second_agent_and_keeps_every_other_byte(rekindle, project):
    """Running it again adds to the manifest; comments and order stay."""
    path = project / "rekindle.yaml"
    path.write_text(path.read_text().replace("agents:\n", "agents:  # mine\n") + "\n# the end\n")
    before = path.read_text()
    assert rekindle("init", "--yes", "--agent", "second", "--harness", "codex")[0] == 0
    after = path.read_text()
    entry = "  second:\n    harness: codex\n    prompt: PROMPT.md\n    persona: codex-run\n"
    more = "".join(f"    {line}\n" for line in render_until_lines([]))
    persona = after[after.index("  # What the agent may do: edit and run commands, in Codex") :]
    persona = persona[: persona.index("  # What", 3)]
    assert after.replace(entry + more, "").replace(persona, "") == before
    assert set(manifest.parse(after).agents) == {"trades", "second"}


def test_init_says_that_a_second_agent_has_the_task_of_the_first(rekindle, project):
    shared = (
        "· PROMPT.md is also the task of trades: `prompt:` in rekindle.yaml gives docs its own\n"
    )
    assert shared in rekindle("init", "--yes", "--agent", "docs")[1]
    manifest = project / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace("prompt: PROMPT.md", "prompt: docs.md", 1))
    (project / "docs.md").write_text("Write the docs.\n")
    assert "is also the task of" not in rekindle("init", "--yes", "--agent", "docs")[1]


def test_init_twice_changes_nothing(rekindle, project):
    """It says that the agent exists, and leaves everything as it is."""
    before = (project / "rekindle.yaml").read_text()
    code, out, _ = rekindle("init", "--yes", "--agent", "trades")
    assert code == 0
    assert "already" in out
    assert (project / "rekindle.yaml").read_text() == before


def test_init_without_a_terminal_says_what_to_do(here):
    """Without an answer it exits with a usage error that names --yes."""
    ended = subprocess.run(
        [sys.executable, "-m", "rekindle", "init"],
        cwd=here,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert "--yes" in ended.stderr
    assert not (here / "rekindle.yaml").exists()


def test_without_a_manifest_every_command_says_so(rekindle):
    """Outside of a project the message names `rekindle init`."""
    for arguments in (["status"], ["loops"], ["relay", "show"], ["events"], ["resolve", "a", "b"]):
        code, _, err = rekindle(*arguments)
        assert code == 3, arguments
        assert "rekindle init" in err


def test_commands_work_from_a_folder_below(rekindle, project, monkeypatch):
    """The manifest is looked for in the folders above."""
    below = project / "src/deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert shown(rekindle("status", "--json"))["agents"][0]["agent"] == "trades"


def test_a_loop_is_opened_reworded_resolved_and_reopened(rekindle, project):
    """Each step in the life of a loop is printed and kept."""
    assert "opened" in rekindle("loops", "add", "oauth", "Set OAuth up")[1]
    assert "Nothing to do" in rekindle("loops", "add", "oauth", "Set OAuth up")[1]
    assert "reworded" in rekindle("loops", "add", "oauth", "Set OAuth up", "for Schwab")[1]
    (loop,) = shown(rekindle("loops", "--json"))["open"]
    assert loop["id"] == "oauth"
    assert loop["text"] == "Set OAuth up for Schwab"
    assert "resolved" in rekindle("resolve", "oauth", "it", "works")[1]
    assert "Nothing to do" in rekindle("resolve", "oauth", "again")[1]
    both = shown(rekindle("loops", "--json"))
    assert both["open"] == []
    assert both["resolved"][0]["reason"] == "it works"
    assert "reopened" in rekindle("loops", "add", "oauth", "Broken again")[1]
    assert shown(rekindle("loops", "--json"))["open"][0]["reopened"] == 1


def test_resolving_an_unknown_loop_suggests_the_near_one(rekindle, project):
    """A typo exits with 7 and the id that was probably meant."""
    rekindle("loops", "add", "schwab-oauth", "text")
    code, _, err = rekindle("resolve", "schwab-oath", "done")
    assert code == 7
    assert "did you mean `schwab-oauth`" in err


@pytest.mark.parametrize(
    "identity", ["", " ", "../x", "a b", "a" * 65, "-x-", "ü", "a\nb", "a\x00b", "\udcff"]
)
def test_a_hostile_loop_id_is_refused(rekindle, project, identity):
    """A confusing id is a usage error, never a traceback."""
    code, _, err = rekindle("loops", "add", "--", identity, "text")
    assert code == 2
    assert "Traceback" not in err
    assert shown(rekindle("loops", "--json"))["open"] == []


@pytest.mark.parametrize(
    "text", ["a\nb\x1b[31mred", "\udcff bytes", "x" * 10_000, "'; rm -rf / #", "===STATE_JSON==="]
)
def test_any_text_is_kept_on_one_line(rekindle, project, text):
    """Control characters, broken bytes and endless text are kept harmlessly."""
    assert rekindle("loops", "add", "a", text)[0] == 0
    (loop,) = shown(rekindle("loops", "--json"))["open"]
    assert "\n" not in loop["text"]
    assert "\x1b" not in loop["text"]
    assert len(loop["text"]) <= 2_000
    code, out, _ = rekindle("loops")
    assert (code, "\x1b[31mred" in out) == (0, False)


def test_stale_loops_are_marked(rekindle, project, monkeypatch):
    """A loop older than fourteen days is marked in loops and in status."""
    rekindle("loops", "add", "old", "text")
    later = real_clock.read_clock() + timedelta(days=15)
    monkeypatch.setattr("rekindle.system.clock.read_clock", lambda: later)
    assert "stale" in rekindle("loops")[1]
    assert "1 stale" in rekindle("status")[1]


def test_a_relay_is_set_shown_checked_and_compared(rekindle, project):
    """Each command on a relay prints and keeps its result."""
    (project / "relay.md").write_text(RELAY)
    code, out, _ = rekindle("relay", "set", "relay.md")
    assert (code, "Write the parser" in out) == (0, True)
    assert rekindle("relay", "show")[1] == RELAY
    assert shown(rekindle("relay", "show", "--json"))["fields"]["Next Action"].strip() == (
        "Write the parser"
    )
    assert rekindle("relay", "check")[0] == 0
    (project / "relay.md").write_text(RELAY.replace("parser", "printer"))
    rekindle("relay", "set", "relay.md")
    code, out, _ = rekindle("relay", "diff")
    assert "-Write the parser" in out
    assert "+Write the printer" in out
    newest, oldest = shown(rekindle("relay", "history", "--json"))["relays"]
    assert (newest["next_action"], oldest["next_action"]) == (
        "Write the printer",
        "Write the parser",
    )
    compared = shown(rekindle("relay", "diff", str(oldest["seq"]), "--json"))
    assert (compared["older"], compared["newer"]) == (oldest["seq"], newest["seq"])


def test_a_relay_that_replaces_another_than_its_base_is_refused(rekindle, project):
    (project / "relay.md").write_text(RELAY)
    rekindle("relay", "set", "relay.md")
    [first] = shown(rekindle("relay", "history", "--json"))["relays"]
    (project / "relay.md").write_text(RELAY.replace("parser", "printer"))
    assert rekindle("relay", "set", "relay.md", "--base", first["sha256"])[0] == 0
    code, _, err = rekindle("relay", "set", "relay.md", "--base", first["sha256"])
    assert (code, "another relay was committed" in err) == (8, True)


def test_an_unusable_relay_is_refused_with_eight(rekindle, project):
    """`relay set` without a directive changes nothing and names what is missing."""
    (project / "bad.md").write_text("## Current Phase\nlost\n")
    code, _, err = rekindle("relay", "set", "bad.md")
    assert code == 8
    assert "Next Action" in err
    assert rekindle("relay", "show")[0] == 7


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        (RELAY, "ok", 0),
        ("", "empty", 8),
        ("# nothing here\n", "no-directive", 8),
        ("## Next Action\n\n## Metrics\n1\n", "blank-directive", 8),
        ("## Next Action\nTBD\n", "placeholder-directive", 8),
        ("## Next Action\na\n## Next Action\nb\n", "several-directives", 0),
        ("## Next Action\nGo on\n" + "## Log\n" + "word " * 5_000, "over-cap", 0),
    ],
)
def test_relay_check_classifies_a_file(rekindle, here, text, kind, code):
    """`relay check FILE` works without a project, and its exit code shows whether it is usable."""
    (here / "relay.md").write_text(text)
    ended, out, _ = rekindle("relay", "check", "relay.md", "--json")
    assert (ended, msgspec.json.decode(out)["kind"]) == (code, kind)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\x00" * 100, b"## Next Action\n\xc3("])
def test_relay_check_of_bytes_that_are_not_text(rekindle, here, content):
    """Any content gives a clear answer."""
    (here / "relay.md").write_bytes(content)
    code, _, err = rekindle("relay", "check", "relay.md")
    assert code in {4, 8}
    assert "Traceback" not in err


def test_a_missing_file_is_named(rekindle, project):
    """`relay set` of a missing file names it."""
    code, _, err = rekindle("relay", "set", "nowhere.md")
    assert code == 2
    assert "nowhere.md" in err


def test_status_of_an_empty_agent_names_the_next_step(rekindle, project):
    """Right after init, status names the next command."""
    shown = rekindle("status")[1]
    assert "→ rekindle run trades" in shown
    assert "its task: there is no relay yet" in shown


def test_status_says_what_comes_next_and_what_is_wrong(rekindle, project):
    """A table has one line per agent; the details have headline, loops and an edit by hand."""
    (project / "relay.md").write_text(RELAY)
    rekindle("relay", "set", "relay.md")
    rekindle("loops", "add", "a", "text")
    rekindle("init", "--yes", "--agent", "broken")
    (folder(project, "broken") / "ops.jsonl").write_bytes(b'{"v":9,"kind":"x"}\n')
    (folder(project) / "memories/consensus.md").write_text(RELAY.replace("parser", "manual"))
    code, out, _ = rekindle("status")
    assert code == 0
    assert out.splitlines()[2].startswith("broken  broken")
    assert out.splitlines()[3].startswith("trades  stopped")
    assert out.splitlines()[4].startswith("→ upgrade it with `uv tool")
    code, out, _ = rekindle("status", "trades")
    for words in ("Write the manual", "1 open", "by person"):
        assert words in out
    rows = {row["agent"]: row for row in shown(rekindle("status", "--json"))["agents"]}
    assert rows["broken"]["state"] == "broken"
    assert rows["trades"]["relay"]["file"] == "clean"


@pytest.mark.parametrize("command", [("status",), ("relay", "history"), ("relay", "diff")])
def test_a_reading_command_adopts_an_edit_by_hand(rekindle, project, command):
    """The README promises this of the next command, whichever it is."""
    (project / "relay.md").write_text(RELAY)
    rekindle("relay", "set", "relay.md")
    (folder(project) / "memories/consensus.md").write_text(RELAY.replace("parser", "manual"))
    code, out, _ = rekindle(*command)
    assert code == 0
    assert "Write the manual" in out
    assert "was edited" not in out
    (newest, _) = shown(rekindle("relay", "history", "--json"))["relays"]
    assert (newest["by"], newest["next_action"]) == ("person", "Write the manual")


def test_an_edit_while_a_supervisor_runs_is_left_to_it(rekindle, project):
    """The edit may be the agent's own."""
    (project / "relay.md").write_text(RELAY)
    rekindle("relay", "set", "relay.md")
    (folder(project) / "memories/consensus.md").write_text(RELAY.replace("parser", "manual"))
    with open_store(config.load_project(project)).supervising("trades"):
        assert "was edited: the next command adopts the edit" in rekindle("status")[1]
        assert len(shown(rekindle("relay", "history", "--json"))["relays"]) == 1


def test_status_reads_each_agent_once(rekindle, project, monkeypatch):
    """Row and details come from one read: they show one moment, at half the cost."""
    rekindle("init", "--yes", "--agent", "other")
    opened = Counter()
    read = durable_files.read_bytes
    monkeypatch.setattr(
        durable_files, "read_bytes", lambda path: (opened.update([path]), read(path))[1]
    )
    code, out, _ = rekindle("status", "--json")
    assert (code, len(msgspec.json.decode(out)["agents"])) == (0, 2)
    twice = {path for path, times in opened.items() if times > 1}
    assert {path for path in opened if path.name == "owner.json"}
    assert twice == set()


def test_a_damaged_owner_record_is_broken_on_every_screen(rekindle, project):
    (folder(project) / "owner.json").write_text("{")
    _, out, _ = rekindle("status", "--json")
    (row,) = msgspec.json.decode(out)["agents"]
    assert row["state"] == "broken"
    _, page, _ = rekindle("brief", "--all")
    assert f"trades: broken ({row['reason']})" in page


def test_status_of_an_unknown_agent_names_the_known_ones(rekindle, project):
    """A wrong name exits with 7."""
    code, _, err = rekindle("status", "stranger")
    assert code == 7
    assert "trades" in err


def test_an_agent_added_by_hand_works_at_once(rekindle, project):
    """An agent that is in the manifest but has no folder yet gets one when it is needed."""
    path = project / "rekindle.yaml"
    path.write_text(path.read_text() + "  second:\n    harness: codex\n")
    rows = {row["agent"]: row for row in shown(rekindle("status", "--json"))["agents"]}
    assert rows["second"]["reason"] == "not started yet"
    assert rekindle("loops", "-a", "second", "add", "x", "text")[0] == 0
    assert rekindle("loops", "add", "-a", "second", "y", "text")[0] == 0
    assert len(shown(rekindle("loops", "-a", "second", "--json"))["open"]) == 2


def test_with_two_agents_the_command_asks_which(rekindle, project, monkeypatch):
    """An ambiguous command says so; an environment variable may decide."""
    rekindle("init", "--yes", "--agent", "second")
    code, _, err = rekindle("loops", "add", "a", "text")
    assert code == 2
    assert "--agent" in err
    monkeypatch.setenv("REKINDLE_AGENT", "second")
    assert rekindle("loops", "add", "a", "text")[0] == 0


def test_events_are_shown_newest_last(rekindle, project):
    """The last ones are printed in order; with --json as in the log, with their agent."""
    for number in range(5):
        rekindle("loops", "add", f"l{number}", "text")
    code, out, _ = rekindle("events", "-n", "2", "--json")
    found = [msgspec.json.decode(line) for line in out.splitlines()]
    assert code == 0
    assert [one["id"] for one in found] == ["l3", "l4"]
    assert list(found[0])[:6] == ["v", "agent", "seq", "gen", "ts", "kind"]
    everything = rekindle("events", "-n", "0", "--json")[1].splitlines()
    logged = (folder(project) / "ops.jsonl").read_text().splitlines()
    assert [msgspec.json.decode(line) for line in everything] == [
        {**msgspec.json.decode(line), "agent": "trades"} for line in logged
    ]
    assert "loop.added" in rekindle("events")[1]


@pytest.fixture
def in_tokyo(monkeypatch):
    """Set the local zone to nine hours before UTC, all year."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_times_are_local_for_people_and_utc_for_programs(rekindle, project, in_tokyo):
    store = open_store(config.load_project(project))
    moment = datetime(2026, 4, 9, 20, 30, 15, tzinfo=UTC)
    with store.writer("trades") as writer:
        writer.append(events.WaitStarted(ts=moment, why="limit", until=moment))
    line = rekindle("events", "-n", "1")[1]
    assert "  2026-04-10 05:30:15  " in line
    assert "until=2026-04-10 05:30:15" in line
    printed = msgspec.json.decode(rekindle("events", "-n", "1", "--json")[1])
    assert printed["ts"] == "2026-04-09T20:30:15Z"


def test_values_of_events_are_json_for_people_too(rekindle, project):
    store = open_store(config.load_project(project))
    signs = events.WorkSigns(artefacts=("it's.py",), asks_else=True)
    with store.writer("trades") as writer:
        writer.append(
            events.CycleEnded(ts=real_clock.read_clock(), cycle=1, is_equal=True, signs=signs)
        )
    line = rekindle("events", "-n", "1")[1]
    assert "is_equal=true" in line
    assert """signs={"artefacts":["it's.py"],"asks_else":true}""" in line


def test_events_of_several_agents_are_in_the_order_of_time(rekindle, project, monkeypatch):
    """They are named, in either way, or all agents of the manifest; each line names its agent."""
    for name in ("second", "third"):
        rekindle("init", "--yes", "--agent", name)
    for number, name in enumerate(("second", "trades", "third", "second")):
        rekindle("loops", "add", "-a", name, f"l{number}", "text")

    def found(*words):
        code, out, err = rekindle("events", *words, "--json")
        assert code == 0, err
        return [(one["agent"], one.get("id")) for one in map(msgspec.json.decode, out.splitlines())]

    everything = [("second", "l0"), ("trades", "l1"), ("third", "l2"), ("second", "l3")]
    assert found()[3:] == found("-n", "0")[3:] == found("-n", "4") == everything
    assert found("trades", "second", "-n", "3") == [everything[0], everything[1], everything[3]]
    assert found("-a", "third", "-a", "trades", "-n", "2") == everything[1:3]
    assert found("third", "-a", "trades", "-n", "2") == everything[1:3]
    assert rekindle("events", "third", "fourth")[0] == 7
    lines = rekindle("events", "-n", "2")[1].splitlines()
    assert ["third " in lines[0], "second " in lines[1]] == [True, True]
    monkeypatch.setenv("REKINDLE_AGENT", "third")
    assert {name for name, _ in found()} == {"third"}


def test_events_follow_what_happens(project):
    """--follow prints events of other processes, and Ctrl-C ends it without a traceback."""
    command = [sys.executable, "-m", "rekindle"]
    following = subprocess.Popen(
        [*command, "events", "--follow", "--json", "-n", "1"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert '"agent.created"' in following.stdout.readline()
        subprocess.run([*command, "loops", "add", "new", "text"], cwd=project, check=True)
        assert '"loop.added"' in following.stdout.readline()
        following.send_signal(2)
        _, complaints = following.communicate(timeout=30)
    finally:
        following.kill()
    assert following.returncode == 130
    assert complaints.strip() == "Stopped."


def test_doctor_accepts_a_project_with_a_task(rekindle, project):
    """Nothing is broken; a missing optional program is not a problem."""
    found = shown(rekindle("doctor", "--json"))
    assert found["ok"] is True
    assert set(found["programs"]) == {"git", "claude", "codex", "gemini", "tmux", "bwrap"}


def test_doctor_names_a_notification_address_that_cannot_work(rekindle, project, monkeypatch):
    """It names the place and the fix; the address itself may contain a secret."""
    monkeypatch.setattr("rekindle.system.notifications.NOTIFY_SECONDS", 60.0)
    manifest = project / "rekindle.yaml"
    before = manifest.read_text()
    manifest.write_text(before + "notify: ['json://127.0.0.1', 'nonsense://hunter2']\n")
    code, out, err = rekindle("doctor")
    assert code == 8
    assert "address 2 of `notify:` (nonsense)" in out
    assert "pip install 'rekindle-agents[notify]'" in out
    assert "hunter2" not in out + err
    manifest.write_text(before + "notify: ['json://127.0.0.1']\n")
    assert rekindle("doctor")[0] == 0


def enter_safe_mode(here):
    store = open_store(config.load_project(here))
    now = datetime.now(UTC)
    with store.writer("trades") as writer:
        writer.append(
            events.RunStarted(ts=now, cycle=0),
            events.SafeModeEntered(ts=now, why="auth", words="not logged in"),
        )


def change_manifest(old, new):
    def change(here):
        path = here / "rekindle.yaml"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    return change


@pytest.mark.parametrize(
    ("change", "problem", "hint"),
    [
        (
            change_manifest("harness: claude-code", "harness: command"),
            "no `command:` to start",
            "add `command: ./your-program` to trades",
        ),
        (
            change_manifest("persona: edit-and-run", "persona: nurse"),
            "no persona named 'nurse'",
            "use one of: edit-and-run",
        ),
        (
            change_manifest("prompt: PROMPT.md", "prompt: task.md"),
            "task.md: cannot be read",
            "correct `prompt:`",
        ),
        (
            lambda here: (here / "PROMPT.md").write_text(manifest.DEFAULT_PROMPT),
            "PROMPT.md: has no task yet",
            "describe in PROMPT.md what the agent is to do",
        ),
        (
            change_manifest("    prompt:", "    command: ./absent\n    prompt:"),
            "./absent could not be started: the file does not exist",
            "correct `command:`",
        ),
        (
            change_manifest("    prompt:", "    command: ./PROMPT.md\n    prompt:"),
            "./PROMPT.md could not be started: it is not executable",
            "chmod +x ./PROMPT.md",
        ),
        (
            change_manifest("    prompt:", "    until: [nosuchtest]\n    prompt:"),
            "the program of `until:` was not found: nosuchtest",
            "install it, or correct `until:`",
        ),
        (
            change_manifest("    prompt:", "    until: [test -e agent.py]\n    prompt:"),
            "the program of `until:` was not found: test -e agent.py",
            '`until: ["test", "-e", "agent.py"]`',
        ),
        (
            change_manifest("    prompt:", "    until: [./PROMPT.md]\n    prompt:"),
            "the program of `until:` cannot be run: ./PROMPT.md",
            "chmod +x ./PROMPT.md",
        ),
        (
            change_manifest("    prompt:", "    dir: absent\n    prompt:"),
            "absent does not exist",
            "correct `dir:`",
        ),
        (
            change_manifest("    persona: edit-and-run\n", ""),
            "no persona permits the agent any tool: without a terminal, claude-code refuses",
            "allowed_tools: [Read, Grep, Glob, Edit, Write, Bash]",
        ),
        (
            change_manifest("agents:", "notify: [json://$NOT_SET_HERE]\nagents:"),
            "names the variable $NOT_SET_HERE",
            "set NOT_SET_HERE in the environment that starts Rekindle",
        ),
        (enter_safe_mode, "is in safe mode: not logged in", "rekindle restart trades"),
    ],
    ids=[
        "no command",
        "unknown persona",
        "no prompt",
        "prompt of init",
        "program missing",
        "program not executable",
        "until missing",
        "until in one word",
        "until not executable",
        "folder missing",
        "no permission",
        "notify",
        "safe mode",
    ],
)
def test_doctor_fails_if_run_would_start_nothing(rekindle, project, change, problem, hint):
    assert rekindle("doctor")[0] == 0
    change(project)
    code, out, _ = rekindle("doctor")
    assert code == 8
    assert problem in out
    assert hint in out


def test_doctor_asks_no_persona_of_a_program_of_your_own(rekindle, project):
    """The program itself decides what it may do, so a persona would be refused."""
    change_manifest("    persona: edit-and-run\n", "")(project)
    change_manifest("harness: claude-code", "harness: command")(project)
    code, out, _ = rekindle("doctor")
    assert code == 8
    assert "there is no `command:` to start" in out
    assert "no persona permits" not in out


def test_doctor_accepts_an_until_that_the_agent_is_to_write(rekindle, project):
    """It is only a note: a cycle cannot end the run before the file exists."""
    change_manifest("    prompt:", "    until: [./check.sh]\n    prompt:")(project)
    code, out, _ = rekindle("doctor")
    assert code == 0
    assert "· trades: the program of `until:` does not exist: ./check.sh\n    → correct" in out
    assert "· trades: changed since your last command: agents.trades.until: added" in out
    (project / "check.sh").touch(0o755)
    assert "does not exist" not in rekindle("doctor")[1]


def test_shell_syntax_without_a_shell_is_noted(rekindle, project):
    """`doctor` and `run` print one line; a quoted word is meant as text."""
    change_manifest("    persona: edit-and-run\n", "")(project)
    change_manifest(
        "harness: claude-code",
        "harness: command\n    command: /bin/true '$HOME'\n    until: test -e *.txt",
    )(project)
    note = "`until:` is not run by a shell, so its program gets `*.txt` literally"
    hint = """write `until: [sh, -c, "test -e *.txt"]`, or quote the word: '*.txt'"""
    code, out, _ = rekindle("doctor")
    assert (code, f"· trades: {note}\n    → {hint}\n" in out, "`$HOME`" in out) == (
        0,
        True,
        False,
    )
    _, _, err = rekindle("run", "trades", "--once", "--trust")
    assert f"Note: {note} (→ {hint})\n" in err


def test_doctor_prints_a_note_about_several_agents_once(rekindle, project):
    lines = "".join(f"  {name}: {{harness: claude-code}}\n" for name in ("books", "mail"))
    append(project / "rekindle.yaml", lines)
    _, out, _ = rekindle("doctor")
    assert out.count("nothing is stored yet") == 1
    assert "· books, mail: nothing is stored yet\n    → the first command" in out


def test_doctor_says_that_the_operator_stopped_an_agent_in_safe_mode(rekindle, project):
    enter_safe_mode(project)
    assert rekindle("stop", "trades")[0] == 0
    _, out, _ = rekindle("doctor")
    assert "trades: is in safe mode: not logged in, and you have stopped it\n" in out
    assert "    → rekindle restart trades && rekindle run trades\n" in out


def test_restart_of_a_stopped_agent_is_recorded_only_if_it_changes_something(rekindle, project):
    """It ends safe mode, and it can ask for a fresh session."""
    enter_safe_mode(project)
    assert rekindle("stop", "trades")[0] == 0
    assert "✓ trades: nothing is running; a watchdog" in rekindle("restart", "trades")[1]
    assert "safe mode" not in rekindle("status", "trades")[1]
    assert rekindle("stop", "trades")[0] == 0
    assert "· trades: nothing is running: you stopped it" in rekindle("restart", "trades")[1]
    assert "✓ trades: nothing is running; a watchdog" in rekindle("restart", "trades", "--fresh")[1]


def test_doctor_names_a_missing_cli_and_how_to_install_it(rekindle, project, monkeypatch):
    monkeypatch.setenv("PATH", str(project))
    code, out, _ = rekindle("doctor")
    assert code == 8
    assert "✗ trades: claude could not be started: it is not installed" in out
    assert "npm install" in out


def test_doctor_names_the_missing_extra_of_notify(rekindle, project, monkeypatch):
    monkeypatch.setattr("rekindle.system.notifications.find_spec", lambda _: None)
    append(project / "rekindle.yaml", "notify: ['json://127.0.0.1']\n")
    code, out, _ = rekindle("doctor")
    assert code == 8
    assert "`notify:` needs the package apprise" in out
    assert notifications.INSTALL_HINT in out


def test_a_persona_that_only_reads_is_a_choice(rekindle, project):
    change_manifest("Glob, Edit, Write, Bash]", "Glob]")(project)
    code, out, _ = rekindle("doctor")
    assert code == 0
    assert "· trades: persona edit-and-run permits only reading" in out


def test_doctor_without_a_project_says_how_to_begin(rekindle):
    """In an empty folder the doctor names `rekindle init`, and exits with 8."""
    code, out, _ = rekindle("doctor")
    assert code == 8
    assert "✗ rekindle.yaml: not found in " in out
    assert "rekindle init" in out


@pytest.mark.parametrize("damage", ["mode", "temp", "state", "relay", "archive", "pending"])
def test_doctor_finds_damage_and_its_command_fixes_it(rekindle, project, damage):
    """Each kind of damage is named with a command, and gone after that command."""
    (project / "relay.md").write_text(RELAY)
    rekindle("relay", "set", "relay.md")
    place = folder(project)
    if damage == "mode":
        (place / "ops.jsonl").chmod(0o644)
    elif damage == "temp":
        (place / ".tmp-1-state.json").write_text("{")
    elif damage == "state":
        (place / "state.json").unlink()
    elif damage == "relay":
        (place / "memories/consensus.md").unlink()
    elif damage == "archive":
        next((place / "memories/archive").glob("relay-*")).unlink()
    elif damage == "pending":
        event = open_loops.propose_loop({}, "late", "text", real_clock.read_clock())
        record = b"\n1 event " + msgspec.json.encode(msgspec.to_builtins(event)) + b"\n"
        (place / "run/inbox/1.seg").write_bytes(record)
    code, out, _ = rekindle("doctor", "--json")
    assert code == 8
    (problem,) = (one for one in msgspec.json.decode(out)["agents"]["trades"] if one["broken"])
    if damage == "mode":
        assert problem["fix"].startswith("chmod 600")
        (place / "ops.jsonl").chmod(0o600)
    elif damage == "archive":
        assert "set the relay again" in problem["fix"]
        rekindle("relay", "set", "relay.md")
    else:
        assert problem["fix"] == "rekindle doctor --fix"
        assert rekindle("doctor", "--fix")[0] == 0
    assert rekindle("doctor")[0] == 0


def test_doctor_names_a_broken_manifest_with_its_line(rekindle, project):
    """A typo in the manifest is reported with its line and the probable word."""
    (project / "rekindle.yaml").write_text("version: 1\nagents:\n  a:\n    harnes: x\n")
    code, out, _ = rekindle("doctor")
    assert code == 8
    assert "rekindle.yaml:4" in out
    assert "harness" in out


def test_a_foreign_agent_is_refused_and_taken_over_on_demand(rekindle, project):
    """An agent of another host is refused with 6, and taken with --take-over."""
    owner = folder(project) / "owner.json"
    owner.write_text('{"v":1,"host":"other-host","gen":4}')
    code, _, err = rekindle("loops", "add", "a", "text")
    assert code == 6
    assert "other-host" in err
    assert "--take-over" in err
    assert rekindle("status")[0] == 0
    assert rekindle("doctor")[0] == 8
    assert rekindle("loops", "add", "a", "text", "--take-over")[0] == 0
    assert msgspec.json.decode(owner.read_bytes())["gen"] == 5
    assert rekindle("doctor")[0] == 0


def test_config_explains_a_key(rekindle, project):
    """It shows value, default, origin and meaning of a setting, by the end of its name."""
    code, out, _ = rekindle("config", "explain", "max_relay_tokens")
    assert code == 0
    assert "runtime.relay.max_relay_tokens = 2000" in out
    assert "[default]" in out
    append(project / "rekindle.yaml", "runtime:\n  relay:\n    max_relay_tokens: 900\n")
    printed = shown(rekindle("config", "explain", "max_relay_tokens", "--json"))
    assert printed["v"] == 1
    (found,) = printed["settings"]
    assert (found["value"], found["default"]) == (900, 2000)
    lines = (project / "rekindle.yaml").read_text().splitlines()
    assert found["origin"] == f"rekindle.yaml:{len(lines)}"


def test_config_explains_keys_of_an_agent_without_its_secrets(rekindle, project):
    token = f"ghp_{'a1B2c3D4e5' * 4}"[:40]
    text = (project / "rekindle.yaml").read_text()
    entry = f"    env: {{X: {token}, DB_PASSWORD: hunter2hunter2, LANG: C}}\n"
    agent = "  trades:\n"
    assert agent in text
    more = f"{agent}{entry}    budget: {{usd: 5}}\n"
    (project / "rekindle.yaml").write_text(text.replace(agent, more))
    code, out, _ = rekindle("config", "explain", "env")
    assert (code, '"LANG":"C"' in out) == (0, True)
    printed = rekindle("config", "explain", "--json")[1]
    assert not any(secret in shown for secret in (token, "hunter2") for shown in (out, printed))
    assert "budget.usd = 5.0 dollars (default not set)" in rekindle("config", "explain", "usd")[1]
    assert "budget = {usd: 5.0}" in rekindle("config", "explain", "budget")[1]


def test_config_without_a_key_explains_everything(rekindle, here):
    """Without a project it lists every default."""
    found = shown(rekindle("config", "explain", "--json"))["settings"]
    keys = {one["key"] for one in found}
    assert {"runtime.watch.tool_timeout", "agents.NAME.cycles", "store.lock_wait_seconds"} <= keys
    assert all(one["meaning"] for one in found)


def test_a_setting_in_the_manifest_is_obeyed(rekindle, project):
    """A relay is trimmed to the cap of the manifest."""
    append(project / "rekindle.yaml", "runtime:\n  relay:\n    max_relay_tokens: 200\n")
    (project / "relay.md").write_text(RELAY + "## Notes\n" + "- a note to trim\n" * 200)
    code, out, _ = rekindle("relay", "set", "relay.md")
    assert (code, "trimmed to its cap" in out) == (0, True)
    assert shown(rekindle("status", "--json"))["agents"][0]["relay"]["tokens"] <= 200


def test_a_bug_ends_with_a_report_and_no_traceback(rekindle, project, monkeypatch):
    """An unforeseen exception becomes one sentence, with a file to send in."""

    def broken(*_arguments, **_more):
        raise ZeroDivisionError("unforeseen")

    monkeypatch.setattr("rekindle.cli.reports.status_details.FileRowReader", broken)
    code, _, err = rekindle("status")
    assert code == 70
    assert "Traceback" not in err
    report = err.split("report it with ")[1].split(";")[0]
    with open(report) as file:  # noqa: PTH123 - the path is text out of a message
        assert "ZeroDivisionError" in file.read()
    os.unlink(report)  # noqa: PTH108 - as above


def test_a_closed_pipe_is_not_an_error(project):
    """`rekindle events | head` exits quietly when head exits."""
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-m", "rekindle", "events"],
        cwd=project,
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_a_read_only_folder_is_reported(rekindle, project, monkeypatch):
    """An error of the file system becomes exit 5 with the path and the next step."""

    def refuse(*_arguments, **_more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rekindle.stores.log.inbox.os.write", refuse)
    code, _, err = rekindle("loops", "add", "a", "text")
    monkeypatch.undo()
    assert code == 5
    assert "No space left" in err
    assert "free some space" in err


def test_exit_codes_are_distinct_by_branch():
    """Each branch below the root has its own code, and none that a shell uses."""
    branches = RekindleError.__subclasses__()
    codes = [branch.exit_code for branch in branches]
    assert len(codes) == len(set(codes))
    assert set(codes).isdisjoint({0, 1, 126, 127, main.CRASHED, main.INTERRUPTED})


def program(*arguments, **options):
    """Run the command as a process of its own, for effects that only a process has."""
    command = [sys.executable, "-m", "rekindle", *arguments]
    return subprocess.run(command, check=False, stderr=subprocess.PIPE, **options)


def test_a_terminal_without_the_signs_does_not_fail(project):
    """A terminal that cannot print ✓ gets another sign, and the command succeeds."""
    environment = {"PATH": os.environ["PATH"], "PYTHONIOENCODING": "latin-1"}
    ended = program(
        "loops", "add", "a", "text", cwd=project, env=environment, stdout=subprocess.PIPE
    )
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_output_that_cannot_be_written_is_reported(project):
    """A full disk behind `>` becomes one sentence; the command has done its work."""
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        ended = program("loops", "add", "a", "text", cwd=project, stdout=full)
    assert ended.returncode == 1
    assert b"output could not be written" in ended.stderr
    assert b"Traceback" not in ended.stderr
    assert b'"loop.added"' in (folder(project) / "ops.jsonl").read_bytes()


def test_a_closed_output_does_not_fail(project):
    """Started with its output closed, a command still does its work and exits with 0."""
    ended = program("loops", "add", "a", "text", cwd=project, preexec_fn=lambda: os.close(1))
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_working_directory_that_is_gone_is_reported(tmp_path):
    """The message says that the folder was deleted."""
    gone = tmp_path / "gone"
    gone.mkdir()
    ended = program("status", cwd=gone, stdout=subprocess.PIPE, preexec_fn=gone.rmdir)
    assert ended.returncode == 2
    assert b"current folder no longer exists" in ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["relay", "diff", "0", "0"],
        ["relay", "history", "-n", "-1"],
        ["events", "-n", "-5"],
        ["events", "-n", "9" * 30],
    ],
)
def test_numbers_that_make_no_sense_are_refused(rekindle, project, arguments):
    """Zero, negative and endless numbers give a usage error or "no such", never a bug."""
    code, _, err = rekindle(*arguments)
    assert code in {2, 7}
    assert "bug" not in err


def test_a_relay_without_its_file_is_still_shown(rekindle, project):
    """Every reader sees a committed relay, whatever happened to the file."""
    (project / "relay.md").write_text(RELAY)
    rekindle("relay", "set", "relay.md")
    (folder(project) / "memories/consensus.md").unlink()
    assert rekindle("relay", "show")[1] == RELAY
    assert rekindle("relay", "check")[0] == 0


def test_a_lost_run_folder_hides_nothing(rekindle, project):
    """Without `run`, status and loops show the same, and commands create it again."""
    rekindle("loops", "add", "known", "text")
    shutil.rmtree(folder(project) / "run")
    assert "1 open" in rekindle("status")[1]
    assert "known" in rekindle("loops")[1]
    assert rekindle("resolve", "known", "done")[0] == 0
    assert rekindle("doctor")[0] == 0


def test_init_adds_no_second_agent_without_a_name(rekindle, project):
    """`init --yes` again shows the existing agent; another one is added only by name."""
    before = (project / "rekindle.yaml").read_text()
    code, out, _ = rekindle("init", "--yes")
    assert code == 0
    assert "already exists, with trades" in out
    assert "made" not in out
    assert (project / "rekindle.yaml").read_text() == before


def test_init_fills_an_empty_manifest(rekindle, here):
    """An empty rekindle.yaml is written as if it did not exist."""
    (here / "rekindle.yaml").write_text("\n")
    assert rekindle("init", "--yes", "--agent", "trades")[0] == 0
    assert list(manifest.parse((here / "rekindle.yaml").read_text()).agents) == ["trades"]


def test_init_keeps_the_manifest_s_mode_and_link(rekindle, here):
    """A manifest that is a link, or that only its owner may read, stays so."""
    target = here / "kept-elsewhere.yaml"
    target.write_text("version: 1\n")
    target.chmod(0o600)
    (here / "rekindle.yaml").symlink_to(target)
    assert rekindle("init", "--yes", "--agent", "trades")[0] == 0
    assert (here / "rekindle.yaml").is_symlink()
    assert target.stat().st_mode & 0o777 == 0o600
    assert "trades" in target.read_text()


def test_init_does_not_write_its_prompt_through_a_link(rekindle, here, tmp_path_factory):
    """A dangling PROMPT.md link is left alone."""
    target = tmp_path_factory.mktemp("elsewhere") / "target"
    (here / "PROMPT.md").symlink_to(target)
    rekindle("init", "--yes", "--agent", "trades")
    assert not target.exists()


def test_eight_init_at_once_add_eight_agents(here):
    """Each adds to the text of the others."""
    command = [sys.executable, "-m", "rekindle", "init", "--yes", "--agent"]
    started = [
        subprocess.Popen([*command, f"a{number}"], cwd=here, stdout=subprocess.DEVNULL)
        for number in range(8)
    ]
    assert [one.wait() for one in started] == [0] * 8
    agents = manifest.parse((here / "rekindle.yaml").read_text()).agents
    assert set(agents) == {f"a{number}" for number in range(8)}


@pytest.mark.parametrize("place", [".rekindle", ".rekindle/agents"])
def test_a_link_above_the_agent_is_refused(rekindle, project, tmp_path_factory, place):
    """Nothing is written through a link, wherever in our folders it is."""
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "moved"
    (project / place).rename(elsewhere)
    (project / place).symlink_to(elsewhere)
    code, _, err = rekindle("loops", "add", "a", "text")
    assert code == 5
    assert "symbolic link" in err


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        ("## Next Action: ship the parser\n\n## Metrics\n1\n", "ship the parser"),
        ("## Next Action: `make ship`\n", "`make ship`"),
        ("## Next Action - ship it\n", "ship it"),
        ("## Next Action: ship it\n- only after the tests\n", "ship it"),
        ("## Next Action — Cycle 12\nship it\n", "ship it"),
        ("## Next Action: Cycle 12\nship it\n", "ship it"),
    ],
)
def test_a_directive_in_its_own_heading_counts(rekindle, here, text, headline):
    """`## Next Action: ship it` is a directive, alone or with text below it."""
    (here / "relay.md").write_text(text)
    found = shown(rekindle("relay", "check", "relay.md", "--json"))
    assert (found["kind"], found["headline"]) == ("ok", headline)


def test_a_loop_added_by_hand_can_be_resolved(rekindle, project):
    """A loop in state.json is known to the next command."""
    path = folder(project) / "state.json"
    raw = msgspec.json.decode(path.read_bytes())
    raw["open_loops"] = [{"id": "by-hand", "text": "text"}]
    path.write_bytes(msgspec.json.encode(raw))
    assert "1 open" in rekindle("status")[1]
    assert rekindle("resolve", "by-hand", "done")[0] == 0


def test_doctor_take_over_takes_over(rekindle, project):
    """--take-over includes the fix: it needs no second option."""
    (folder(project) / "owner.json").write_text('{"v":1,"host":"other-host","gen":4}')
    assert rekindle("doctor", "--take-over")[0] == 0


def test_doctor_s_commands_can_be_pasted(tmp_path, monkeypatch, capfd):
    """A path with a quote and a space is quoted for the shell."""
    place = tmp_path / "it's here"
    place.mkdir()
    monkeypatch.chdir(place)
    main.run(["init", "--yes", "--agent", "trades"])
    log = place / ".rekindle/agents/trades/ops.jsonl"
    log.chmod(0o644)
    capfd.readouterr()
    assert main.run(["doctor", "--json"]) == 8
    problem, *_ = msgspec.json.decode(capfd.readouterr().out)["agents"]["trades"]
    assert shlex.split(problem["fix"]) == ["chmod", "600", str(log)]


def test_a_broken_owner_record_names_a_way_out(rekindle, project):
    """Every problem that doctor prints has a next step."""
    (folder(project) / "owner.json").write_text("{")
    code, out, _ = rekindle("doctor")
    assert code == 8
    assert "remove" in out


def test_doctor_names_the_upgrade_for_a_record_of_a_newer_rekindle(rekindle, project):
    """A problem that --fix cannot fix does not name --fix as its solution."""
    record = b'\n1 event {"v":1,"ts":"2026-04-09T12:00:00Z","kind":"loop.parked"}\n'
    private = find_private_project(project).make_agent("trades")
    (private.inbox / "1.seg").write_bytes(record)
    code, out, _ = rekindle("doctor")
    assert code == 8
    assert "pip install --upgrade" in out


def test_a_folder_with_a_name_that_is_not_text_does_not_fail(tmp_path, monkeypatch, capfd):
    """A name of broken bytes is shown as far as possible."""
    place = os.fsencode(tmp_path) + b"/\xff\xfe"
    os.mkdir(place)  # noqa: PTH102 - bytes
    monkeypatch.chdir(os.fsdecode(place))
    assert main.run(["init", "--yes", "--json", "--agent", "trades"]) == 0


def test_events_are_followed_from_the_last_whole_line(project):
    """A half-written line at the start of --follow is printed once it is whole."""
    log = folder(project) / "ops.jsonl"
    line = b'{"v":1,"seq":2,"gen":1,"ts":"2026-04-09T12:00:00Z","kind":"heartbeat","new":1}\n'
    with log.open("ab") as file:
        file.write(line[:30])
    following = subprocess.Popen(
        [sys.executable, "-m", "rekindle", "events", "--follow", "--json"],
        cwd=project,
        stdout=subprocess.PIPE,
    )
    try:
        assert b'"agent.created"' in following.stdout.readline()
        with log.open("ab") as file:
            file.write(line[30:])
        assert following.stdout.readline() == line.replace(b'"v":1', b'"v":1,"agent":"trades"')
    finally:
        following.kill()
        following.communicate()


@pytest.mark.parametrize("ending", ["", "~"])
def test_leftovers_of_a_killed_init_are_swept(rekindle, project, ending):
    """A half-written manifest beside the real one is removed by the next init."""
    litter = project / f".tmp-0123456789abcdef-rekindle.yaml{ending}"
    litter.write_text("version")
    rekindle("init", "--yes", "--agent", "second")
    assert not litter.exists()


@pytest.fixture
def audited(rekindle, project, tmp_path_factory, monkeypatch):
    """Create a project in a repository, with two relays."""
    isolate(monkeypatch, tmp_path_factory.mktemp("home"))
    repository = Repository(project).init()
    for number in (1, 2):
        (project / "relay.md").write_text(RELAY.replace("parser", f"part {number}"))
        assert rekindle("relay", "set", "relay.md")[0] == 0
    return repository


def test_history_shows_the_commit_of_each_relay(rekindle, audited):
    """A relay in the git audit trail has its commit beside it; JSON has the whole id."""
    ref = "refs/heads/rekindle/trades/relay"
    tip, first = audited.git("rev-parse", ref, f"{ref}~").splitlines()
    found = shown(rekindle("relay", "history", "--json"))["relays"]
    assert [one["commit"] for one in found] == [tip, first]
    _, out, _ = rekindle("relay", "history")
    assert [line.split()[1] for line in out.splitlines()] == [tip[:10], first[:10]]


def test_history_without_a_trail_is_as_it_was(rekindle, project):
    """Without a repository there is no column and no commit."""
    (project / "relay.md").write_text(RELAY)
    rekindle("relay", "set", "relay.md")
    assert shown(rekindle("relay", "history", "--json"))["relays"][0]["commit"] is None
    _, out, _ = rekindle("relay", "history")
    assert out.split()[1].startswith("20")


def test_diff_takes_commits_of_the_trail(rekindle, audited):
    """A short id, a whole one and a number name the same relay."""
    ref = "refs/heads/rekindle/trades/relay"
    tip, first = audited.git("rev-parse", ref, f"{ref}~").splitlines()
    by_number = shown(rekindle("relay", "diff", "2", "3", "--json"))
    assert shown(rekindle("relay", "diff", first[:7], tip, "--json")) == by_number
    assert shown(rekindle("relay", "diff", first.upper(), "--json")) == by_number
    assert "-Write the part 1" in by_number["diff"]


@pytest.mark.parametrize(
    ("revision", "code", "said"),
    [
        ("99", 7, "relay 99 does not exist"),
        ("abcdef12", 7, "audit trail has no relay with commit abcdef12"),
        ("HEAD", 2, "a relay number or a git commit"),
        ("--upload-pack=x", 2, ""),
        ("-1", 2, ""),
    ],
)
def test_diff_refuses_anything_but_a_relay(rekindle, audited, revision, code, said):
    """Only numbers and ids are accepted, and nothing else reaches git."""
    ended, _, err = rekindle("relay", "diff", revision)
    assert ended == code
    assert said in err


def test_diff_reads_from_git_what_the_archive_lost(rekindle, audited, project):
    """The trail is a second copy, checked by hash."""
    expected = shown(rekindle("relay", "diff", "--json"))
    for path in (folder(project) / "memories/archive").glob("relay-*"):
        path.unlink()
    assert shown(rekindle("relay", "diff", "--json")) == expected


def test_outside_a_repository_one_line_reports_it_once(rekindle, project):
    """It is on stderr, with a hint; the second relay is silent, and the doctor remembers."""
    (project / "relay.md").write_text(RELAY)
    code, out, err = rekindle("relay", "set", "relay.md")
    assert code == 0
    assert "✓ relay committed" in out
    assert err.startswith("Note: git audit trail: ")
    assert len(err.splitlines()) == 1
    assert rekindle("relay", "set", "relay.md")[2] == ""
    assert "not in a git repository" in rekindle("doctor")[1]


def test_doctor_fix_catches_the_trail_up(rekindle, project, tmp_path_factory, monkeypatch):
    """After git init the doctor names the lag, and its command fixes it."""
    isolate(monkeypatch, tmp_path_factory.mktemp("home"))
    (project / "relay.md").write_text(RELAY)
    rekindle("relay", "set", "relay.md")
    repository = Repository(project).init()
    code, out, _ = rekindle("doctor")
    assert code == 0
    assert "missing from the git audit trail: 1" in out
    assert rekindle("doctor", "--fix")[0] == 0
    assert [seq for seq, _ in repository.trail()] == [2]
    assert "audit trail" not in rekindle("doctor")[1]


def test_init_offers_what_is_installed(rekindle, tmp_path_factory, monkeypatch):
    """The first installed CLI is the default; without any it is Claude Code, with a note."""
    programs = tmp_path_factory.mktemp("bin")  # a program in the project would not count
    monkeypatch.setenv("PATH", str(programs))
    code, _, err = rekindle("init", "--yes", "--agent", "one")
    assert (code, "no agent CLI is on the PATH: using claude-code" in err) == (0, True)
    (programs / "codex").write_text("#!/bin/sh\n")
    (programs / "codex").chmod(0o755)
    code, _, err = rekindle("init", "--yes", "--agent", "two")
    assert (code, err) == (0, "")
    code, out, _ = rekindle("status", "--json")
    assert code == 0
    rows = msgspec.json.decode(out)["agents"]
    assert {row["agent"]: row["harness"] for row in rows} == {"one": "claude-code", "two": "codex"}


def test_an_unknown_harness_is_refused_and_found(rekindle):
    """Init refuses it before writing; doctor finds it in a manifest edited by hand."""
    code, _, err = rekindle("init", "--yes", "--agent", "a", "--harness", "comand")
    assert code == 2
    assert "one of: claude-code, codex, gemini, command" in err
    assert rekindle("init", "--yes", "--agent", "a", "--harness", "codex")[0] == 0
    code, out, _ = rekindle("init", "--yes", "--agent", "a", "--harness", "gemini", "--json")
    assert (code, msgspec.json.decode(out)["harness"]) == (0, "codex")
    path = Path("rekindle.yaml")
    path.write_text(path.read_text().replace("codex", "codx"))
    code, out, _ = rekindle("doctor")
    assert code == 8
    assert "there is no harness named 'codx'" in out


def test_a_cli_without_hooks_needs_no_installation(rekindle):
    """Its status says that no hooks are needed; installing them is refused with the reason."""
    assert rekindle("init", "--yes", "--agent", "a", "--harness", "command")[0] == 0
    assert "does not need hooks" in rekindle("hooks", "status")[1]
    code, _, err = rekindle("hooks", "install")
    assert (code, "command has no hooks" in err) == (2, True)


def test_packages_are_searched_only_if_needed(rekindle):
    """Reading the installed packages takes longer than all of `status`."""
    assert rekindle("init", "--yes", "--agent", "a", "--harness", "codex")[0] == 0
    asked = [sys.executable, "-X", "importtime", "-c", "from rekindle.cli.main import main; main()"]
    ran = subprocess.run([*asked, "status"], capture_output=True, text=True, check=True)
    assert "a  (codex)" in ran.stdout
    assert "rekindle.plugins" in ran.stderr
    assert "importlib.metadata" not in ran.stderr


HEAVY = {
    "rekindle.flows.cycles.judge_cycle",
    "rekindle.policy.relay.convergence",
    "rekindle.policy.relay.decision_ledger",
    "rekindle.policy.relay.deliberation",
    "rekindle.policy.redact.find_secrets",
    "rekindle.policy.stall.directive",
    "rekindle.policy.stall.relay_comparison",
    "rekindle.policy.stall.directive_words",
}
"""Word tables that are compiled when they are imported."""


def test_readers_and_primers_import_no_word_tables(rekindle, here):
    """These are `status`, and the program that a session's start hook waits for."""
    assert rekindle("init", "--yes", "--agent", "trades")[0] == 0
    (here / "relay.md").write_text(RELAY)
    assert rekindle("relay", "set", "relay.md")[0] == 0
    start = b'1 hook claude-code SessionStart:startup - - 1794709671134562890 - {"session_id":"s"}'
    for module, argument, given, shows in (
        ("rekindle", "status", b"", b"trades  (claude-code)"),
        ("rekindle.wiring.hook_primer", str(folder(here)), start, b"Next Action"),
    ):
        asked = [sys.executable, "-X", "importtime", "-m", module, argument]
        ran = subprocess.run(asked, input=given, capture_output=True, check=True)
        assert shows in ran.stdout
        imported = {line.rpartition("|")[2].strip() for line in ran.stderr.decode().splitlines()}
        assert "rekindle.policy.projection.projection" in imported
        assert not imported & HEAVY, module
