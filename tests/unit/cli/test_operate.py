"""`stop`, `restart`, `up`, `down`, `watch`: an operator's commands, with scripted agents."""

import contextlib
import json
import re
import shutil
import signal
import stat
import sys

import pytest

from prerequisites import needs_program
from rekindle import config
from rekindle.cli.main import run
from rekindle.cli.running.up_command import render_start_result
from rekindle.errors import UsageError
from rekindle.stores.files import FileStore
from rekindle.stores.folders.private_files import find_private_project
from rekindle.system.files import user_folder
from rekindle.system.processes import program_search
from rekindle.system.terminal import tmux
from rekindle.wiring.access.trust_checks import accept_folder
from rekindle.wiring.open_store import open_store
from rekindle.wiring.starting.background_start import read_last_words
from rekindle.wiring.starting.bring_up import StartResult

AGENT = """\
import os, pathlib, sys, time
name = os.environ["REKINDLE_AGENT"]
number = len(list(pathlib.Path(".").glob(f"{name}-*")))
pathlib.Path(f"{name}-{number}.tmp").write_text(os.environ["PATH"])
os.rename(f"{name}-{number}.tmp", f"{name}-{number}")
print("working", flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
"""


class Project:
    """Two agents that work until the file `go` exists, in a place of their own."""

    def __init__(self, place, folder):
        self.place, self.path = place, folder / "project"
        self.path.mkdir()
        (self.path / "agent.py").write_text(AGENT)
        (self.path / "PROMPT.md").write_text("Ship it.\n")
        self.write()
        accept_folder(self.path)

    def write(self, **more):
        entries = "".join(
            f"  {name}:\n    harness: command\n    cycles: 1\n    until: ['true']\n"
            f"    command: [{sys.executable}, agent.py]\n" + more.get(name, "")
            for name in ("trades", "docs")
        )
        (self.path / "rekindle.yaml").write_text(f"version: 1\nagents:\n{entries}")

    def start(self, *arguments, path="/usr/bin:/bin", **environment):
        return self.place.start(
            [sys.executable, "-I", "-m", "rekindle", *arguments],
            env={
                "PATH": path,
                "HOME": str(self.path),
                "LC_ALL": "C.UTF-8",
                **environment,
            },
            cwd=self.path,
        )

    def __call__(self, *arguments, code=0, **environment):
        started = self.start(*arguments, **environment)
        assert started.wait() == code, started.out + started.err
        return started

    def tmux(self, *words, **more):
        started = self.place.start(
            [shutil.which("tmux"), *words],
            env={"PATH": "/usr/bin:/bin", "XDG_MINE": "older", **more},
            cwd=self.path,
        )
        assert started.wait() == 0, started.err
        return started

    def run(self, name):
        return self.path / ".rekindle/agents" / name / "run"

    def private(self, name):
        return find_private_project(self.path).agent(name)

    def wait_for_launch(self, name, number=0):
        self.place.wait_for((self.path / f"{name}-{number}").exists)

    def pids(self, *words):
        """Return the processes whose command line ends with these words."""
        found = self.place._ask(do="list")["processes"]
        return [one["pid"] for one in found if one["argv"][-len(words) :] == list(words)]

    def kill_supervisor(self, name):
        [pid] = self.pids("run", name, "--for-up") or self.pids("run", name, "--for-watchdog")
        self.place.signal(pid, signal.SIGKILL)
        self.place.wait_for(lambda: not self.pids("agent.py"))


@pytest.fixture
def project(place, tmp_path):
    made = Project(place, tmp_path)
    yield made
    made("down")
    place.wait_for(lambda: place.processes() == [])


def test_stop_all_stops_every_agent(project):
    """It works like `down`; a name beside it is refused."""
    project("up")
    assert "`rekindle stop docs`" in project("stop", "--all", "docs", code=2).err
    assert project("stop", "--all").out == "✓ trades: stopped\n✓ docs: stopped\n"
    assert project.pids("agent.py") == []


def test_agents_are_started_and_stopped_together(project):
    """Each is named, a second start is reported as such, and nothing is left running."""
    assert project("up").out == "✓ trades: started\n✓ docs: started\n"
    for name in ("trades", "docs"):
        project.wait_for_launch(name)
    assert project("up", "trades").out == "✓ trades: is already running\n"
    assert project("status", "trades").out.count("1, 0 of 1 done, 1 left; its process started") == 1
    assert project("stop", "trades").out == "✓ trades: stopped\n"
    assert "state:  stopped: by you" in project("status", "trades").out
    expected = "✓ trades: is not running, and stays stopped\n✓ docs: stopped\n"
    assert project("down").out == expected
    assert project.pids("agent.py") == []


def test_json_has_the_same_facts(project):
    """The commands print the same as JSON."""
    assert json.loads(project("up", "trades", "--json").out) == {
        "v": 1,
        "agents": [{"agent": "trades", "state": "started", "error": "", "hint": ""}],
    }
    project.wait_for_launch("trades")
    assert json.loads(project("restart", "trades", "--json").out)["supervised"] is True
    assert json.loads(project("stop", "trades", "--json").out) == {
        "v": 1,
        "agent": "trades",
        "desired": "stopped",
        "was_running": True,
    }
    assert json.loads(project("down", "--json").out) == {
        "v": 1,
        "stopped": ["trades", "docs"],
        "were_running": [],
        "still_ending": [],
    }


def test_a_handoff_of_an_agent_whose_harness_is_gone_says_so(project):
    """Its manifest was edited while it runs: the error names a line, and nothing is requested."""
    project("up", "trades")
    project.wait_for_launch("trades")
    manifest = project.path / "rekindle.yaml"
    text = manifest.read_text()
    manifest.write_text(text.replace("harness: ", "harness: no-", 1))
    ended = project("handoff", "trades", code=3)
    assert "rekindle.yaml:" in ended.err
    assert "agent trades: there is no harness named 'no-" in ended.err
    manifest.write_text(text)
    project("stop", "trades")


def test_a_task_that_is_done_at_once_was_started(project):
    """A supervisor that already finished is not a failure of `up`."""
    (project.path / "go").touch()
    out = project("up", "trades").out
    assert out.removesuffix(", and done and verified\n").removesuffix("\n") == "✓ trades: started"
    project.place.wait_for(lambda: not project.pids("run", "trades", "--for-up"))
    assert "state:  done and verified: " in project("status", "trades").out


def test_one_that_cannot_be_started_does_not_hold_the_others_back(project):
    """The exit code is 9 with its own message; the others run."""
    project.write(trades="    prompt: NOT.md\n")
    ended = project("up", code=9)
    assert "✗ trades: " in ended.out
    assert "NOT.md" in ended.out
    assert "✓ docs: started" in ended.out
    assert "not started: trades\n" in ended.err


def test_each_line_of_a_supervisor_that_did_not_come_up_is_a_line(project):
    """Its error and its hint are two lines of its output, and of the message of `up`."""
    store = open_store(config.load_project(project.path))
    store.create("trades")
    store.folder("trades").output.write_text("1\nNote: two\nError: three\n  → do it\n")
    assert read_last_words(store, "trades") == "Note: two\nError: three\n  → do it"
    row = StartResult("trades", error=read_last_words(store, "trades"))
    assert render_start_result(row) == "✗ trades: Note: two\n  Error: three\n    → do it"


def test_a_supervisor_that_ends_immediately_was_running(tmp_path, monkeypatch, capsys):
    """It is gone before the command can look again."""
    (tmp_path / "PROMPT.md").write_text("Ship it.\n")
    (tmp_path / "rekindle.yaml").write_text(
        "version: 1\nagents: {trades: {harness: claude-code, prompt: PROMPT.md}}\n"
    )
    monkeypatch.chdir(tmp_path)
    store = open_store(config.load_project(tmp_path))
    store.create("trades")
    submit = FileStore.submit
    with contextlib.ExitStack() as supervisor:
        supervisor.enter_context(store.supervising("trades"))

        def say(self, agent, *said):
            submit(self, agent, *said)
            supervisor.close()

        monkeypatch.setattr(FileStore, "submit", say)
        # Here the supervisor and the operator are one process, which would look like an agent.
        monkeypatch.setattr("rekindle.cli.options.require_operator", lambda *_: None)
        assert run(["stop", "trades"]) == 0
    assert capsys.readouterr().out == "✓ trades: stopped\n"


@pytest.mark.parametrize("command", ["down", "stop"])
@pytest.mark.parametrize("text", ["renamed", "broken", "newer", "empty"])
def test_an_agent_that_the_manifest_does_not_name_any_more_is_stopped(project, command, text):
    """An agent could rename or remove itself in rekindle.yaml, or break the file."""
    project("up", "trades")
    project.wait_for_launch("trades")
    manifest = project.path / "rekindle.yaml"
    before = manifest.read_text()
    one = before.partition("  docs:")[0]
    changed = {
        "renamed": one.replace("trades:", "others:"),
        "broken": "agents: [",
        "newer": one.replace("version: 1", "version: 99"),
        "empty": "version: 1\nagents: {}\n",
    }
    assert changed[text] != one
    manifest.write_text(changed[text])
    told = project(command)
    assert "✓ trades: stopped\n" in told.out
    assert project.pids("agent.py") == []
    manifest.write_text(before)


def test_stop_is_kept_for_an_agent_that_is_not_running(project):
    """A watchdog does not start it; `run` with its name does."""
    assert project("stop", "trades").out == "✓ trades: is not running, and stays stopped\n"
    assert "· trades: stopped by the operator\n" in project("watch", "--once").out
    assert "· docs: the operator has not started it\n" in project("watch", "--once").out
    (project.path / "go").touch()
    assert "✓ trades: done and verified after cycle 1" in project("run", "trades").out
    [row] = json.loads(project("status", "trades", "--json").out)["agents"]
    assert project("restart", "trades").out.startswith(
        "· trades: nothing is running: its work is done\nNext: `rekindle run trades`"
    )
    [again] = json.loads(project("status", "trades", "--json").out)["agents"]
    assert (again["state"], again["at"]) == (row["state"], row["at"])


def test_restart_names_what_will_start_it(project):
    """With a supervisor the agent is started again; without one the next command is named."""
    for options in ((), ("--fresh",)):
        assert project("restart", "trades", *options).out.startswith(
            "· trades: nothing is running: it was never started\nNext: `rekindle run trades`"
        )
    [created] = project("events", "--agent", "trades", "--json").out.splitlines()
    assert json.loads(created)["kind"] == "agent.created"
    assert "· trades: the operator has not started it\n" in project("watch", "--once").out
    project("stop", "trades")
    before = project("events", "--agent", "trades", "--json").out
    assert project("restart", "trades").out.startswith(
        "· trades: nothing is running: you stopped it\nNext: `rekindle run trades`"
    )
    assert project("events", "--agent", "trades", "--json").out == before
    project("up", "trades")
    project.wait_for_launch("trades")
    assert project("restart", "trades", "--fresh").out == (
        "✓ trades: will be started again in a fresh session\n"
    )
    project.wait_for_launch("trades", 1)
    assert not (project.run("trades") / ".fresh").exists()
    reasons = [
        json.loads(line).get("why")
        for line in project("events", "--agent", "trades", "--json", "--last", "0").out.splitlines()
        if json.loads(line)["kind"] == "launch.started"
    ]
    assert len(reasons) == 2


def test_a_supervisor_that_was_killed_is_started_again(project):
    """The next check starts it; a second check leaves one supervisor."""
    project("up", "trades")
    project.wait_for_launch("trades")
    project.kill_supervisor("trades")
    assert "✓ trades: started: its supervisor is gone\n" in project("watch", "--once").out
    project.wait_for_launch("trades", 1)
    assert "· trades: running\n" in project("watch", "--once").out
    assert len(project.pids("agent.py")) == 1


@pytest.mark.parametrize("says", ["", "1 done\n"], ids=["a person's own", "of an earlier end"])
def test_a_marker_of_a_person_holds_the_watchdog(project, says):
    """`.clean-exit` counts if it was made by hand, and not if it is older than the last command."""
    project("up", "trades")
    project.wait_for_launch("trades")
    project.kill_supervisor("trades")
    (project.run("trades") / ".clean-exit").write_text(says)
    words = "started: its supervisor is gone" if says else "ended as intended"
    assert f" trades: {words}\n" in project("watch", "--once").out


def test_the_operator_s_environment_is_kept_for_later_starts(project):
    """A watchdog under cron uses the PATH of the first start, without secrets."""
    secrets = {"LC_SECRET": "s", "XDG_TOKEN": "t"}
    project("up", "trades", path="/opt/mine:/usr/bin:/bin", **secrets)
    project.wait_for_launch("trades")
    private = project.private("trades").environment
    kept = json.loads(private.read_text())
    assert kept == {
        "PATH": "/opt/mine:/usr/bin:/bin",
        "HOME": str(project.path),
        "LC_ALL": "C.UTF-8",
    }
    assert (private.stat().st_mode & 0o777) == 0o600
    project.kill_supervisor("trades")
    project("watch", "--once")
    project.wait_for_launch("trades", 1)
    assert (project.path / "trades-1").read_text() == "/opt/mine:/usr/bin:/bin"


def test_a_forged_line_in_the_log_ends_the_agent(project):
    """The agent is in safe mode until `restart` accepts the log, and the line never counts."""
    project("up", "trades")
    project.wait_for_launch("trades")
    log = project.path / ".rekindle/agents/trades/ops.jsonl"
    forged = b'{"v":1,"seq":999,"gen":9,"ts":"2036-01-01T00:00:00Z","kind":"budget.lifted"}\n'
    with log.open("ab") as file:
        file.write(forged)
    project.place.wait_for(lambda: not project.pids("agent.py"))
    (row,) = json.loads(project("status", "trades", "--json").out)["agents"]
    assert row["log"] == "appended"
    assert row["run"]["safe_mode"]["kind"] == "tampered"
    assert "lines were added to its log" in project("status", "trades").out
    assert "lines were added to its log" in project("doctor", code=8).out
    project.kill_supervisor("trades")
    assert "its log is not the one that Rekindle wrote" in project("watch", "--once").out
    assert not project.pids("agent.py")
    assert "accepts the log" in project("restart", "trades").err
    assert (log.parent / "ops.jsonl.rejected").read_bytes() == forged
    assert forged not in log.read_bytes()
    assert "✓ trades: started: its supervisor is gone\n" in project("watch", "--once").out
    project.wait_for_launch("trades", 1)


def test_a_supervisor_continues_when_its_log_is_accepted(project):
    """It then obeys a stop that was given in the meantime."""
    project("up", "trades")
    project.wait_for_launch("trades")
    log = project.path / ".rekindle/agents/trades/ops.jsonl"
    with log.open("ab") as file:
        file.write(b"forged\n")
    project.place.wait_for(lambda: not project.pids("agent.py"))
    project("restart", "trades")
    project.wait_for_launch("trades", 1)
    with log.open("ab") as file:
        file.write(b"forged\n")
    project("stop", "trades")
    assert not project.pids("agent.py")
    assert "stopped by the operator" in project("watch", "--once").out


@pytest.mark.parametrize("planted_in", ["workspace", "user folder"])
def test_a_planted_environment_runs_nothing(project, planted_in):
    """Neither a file in the workspace, nor a variable that is never kept, reaches a supervisor."""
    project("up", "trades")
    project.wait_for_launch("trades")
    project.kill_supervisor("trades")
    planted = project.path / "planted"
    planted.mkdir()
    ran = project.path / "ran"
    (planted / "sitecustomize.py").write_text(f"open({str(ran)!r}, 'w')\n")
    where = project.run("trades") if planted_in == "workspace" else project.private("trades").path
    (where / "environment.json").write_text(json.dumps({"PYTHONPATH": str(planted)}))
    assert "✓ trades: started: its supervisor is gone\n" in project("watch", "--once").out
    project.wait_for_launch("trades", 1)
    assert not ran.exists()


def test_up_uses_the_current_environment(project):
    """The recorded environment is for other starts; an operator's new PATH counts."""
    project("up", "trades", path="/opt/old:/usr/bin:/bin")
    project.wait_for_launch("trades")
    project("stop", "trades")
    project("up", "trades", path="/opt/new:/usr/bin:/bin")
    project.wait_for_launch("trades", 1)
    assert (project.path / "trades-1").read_text() == "/opt/new:/usr/bin:/bin"


def test_a_program_that_prints_nothing_is_held_to_a_cap_on_tokens(project):
    """Its prompt is estimated, also while it runs, and does not end it before its work."""
    agent = AGENT.replace('print("working", flush=True)\n', "")
    (project.path / "agent.py").write_text(agent)
    more = "    budget: {tokens: 10}\n"
    project.write(trades=more)
    manifest = project.path / "rekindle.yaml"
    limited = manifest.read_text().replace("cycles: 1\n    until: ['true']", "cycles: 5", 1)
    manifest.write_text(limited)
    running = project.start("run", "trades")
    project.wait_for_launch("trades")

    def find_spent():
        lines = project("status", "trades").out.splitlines()
        return next((line for line in lines if line.startswith("  spent:")), "")

    project.place.wait_for(lambda: re.search(r"~[1-9][0-9]+ of 10 tokens", find_spent()))
    (project.path / "go").touch()
    assert running.wait() == 25, running.out + running.err
    assert "its budget of 10 tokens is spent" in running.err
    assert len(list(project.path.glob("trades-*"))) == 1
    (row,) = json.loads(project("status", "trades", "--json").out)["agents"]
    assert row["spend"]["tokens"]["source"] == "estimated"
    assert row["spend"]["tokens"]["value"] > 10


def test_a_run_that_resumes_with_a_raised_budget_is_kept_alive(project):
    """The run was over; after the operator's order its supervisor is watched again."""
    project.write(trades="    budget: {tokens: 1}\n")
    spent = project("run", "trades", code=25)
    assert "budget of 1 token is spent" in spent.err
    assert "· trades: its run is over\n" in project("watch", "--once").out
    shown = project("status", "trades").out
    assert "out of budget: its budget of 1 token is spent" in shown
    [command] = [line.split("→ ")[1] for line in shown.splitlines() if "→ rekindle" in line]
    assert f"`{command.partition('  (or: ')[0]}`" in spent.err, spent.err
    project.write(trades="    budget: {tokens: 1000000}\n")
    launches = len(list(project.path.glob("trades-*")))
    project("up", "trades")
    project.wait_for_launch("trades", launches)
    project.kill_supervisor("trades")
    assert "✓ trades: started: its supervisor is gone\n" in project("watch", "--once").out
    project.wait_for_launch("trades", launches + 1)
    runs = project("events", "--agent", "trades", "--json", "--last", "0").out.count(
        '"run.started"'
    )
    assert runs == 1


def test_a_restart_after_a_spent_budget_begins_a_new_run_for_any_starter(project):
    """A watchdog that comes first finds a full budget."""
    project.write(trades="    budget: {tokens: 1}\n")
    project("run", "trades", code=25)
    launches = len(list(project.path.glob("trades-*")))
    project("restart", "trades")
    assert "✓ trades: started: its supervisor is gone\n" in project("watch", "--once").out
    project.place.wait_for((project.path / f"trades-{launches}").exists, 20)
    assert (
        project("events", "--agent", "trades", "--json", "--last", "0").out.count('"run.started"')
        == 2
    )


def test_after_a_limit_without_a_wait_the_next_run_tries_again(project):
    """`limits.wait: false` ends the run; `rekindle run` after that time tries again."""
    (project.path / "agent.py").write_text(
        "import os, sys, time\n"
        "if os.path.exists('met'): sys.exit(0)\n"
        "open('met', 'w').close()\n"
        "sys.exit('error: quota exceeded, try again in 1 seconds')\n"
    )
    manifest = project.path / "rekindle.yaml"
    manifest.write_text(manifest.read_text() + "runtime: {limits: {wait: false}}\n")
    assert "waiting in cycle 1" in project("run", "trades", code=23).err
    found = []

    def is_done():
        found.append(
            project.place.start(
                [sys.executable, "-I", "-m", "rekindle", "run", "trades"],
                env={"PATH": "/usr/bin:/bin", "HOME": str(project.path), "LC_ALL": "C.UTF-8"},
                cwd=project.path,
            )
        )
        return found[-1].wait() == 0

    project.place.wait_for(is_done, 20)


@needs_program("tmux")
def test_a_tmux_window_has_the_operator_s_environment(project):
    """The environment of the tmux server, which may be older, is not used; words are quoted."""
    user_folder.make_user_folder(tmux.find_socket().parent.name)
    project.tmux("-S", str(tmux.find_socket()), "new-session", "-d", "-s", "another", "sleep 600")
    mine = {"XDG_MINE": "it's $mine; #{really}\n"}
    for name in ("trades", "docs"):  # the first creates the session, the second is added to it
        printed = project("up", name, "--tmux", **mine).out
        assert "started\n" in printed
        assert f"Next: tmux -S {tmux.find_socket()} attach -t rekindle\n" in printed
        project.wait_for_launch(name)
        found = json.loads(project.private(name).environment.read_text())
        assert found["XDG_MINE"] == mine["XDG_MINE"]
    project("down")
    project.tmux("-S", str(tmux.find_socket()), "kill-server")


@needs_program("tmux")
def test_a_tmux_server_that_an_agent_can_plant_is_sent_nothing(project):
    """The default socket is in /tmp, where a sandboxed agent may listen and would get the keys."""
    default = {"TMUX_TMPDIR": str(project.path)}
    project.tmux("new-session", "-d", "-s", "planted", "sleep 600", **default)
    assert "started\n" in project("up", "trades", "--tmux", **default).out
    project.wait_for_launch("trades")
    listed = project.tmux("list-windows", "-a", "-F", "#{session_name}", **default)
    assert listed.out.split() == ["planted"]
    assert tmux.find_socket().is_relative_to(user_folder.find_user_folder())
    assert stat.S_IMODE(user_folder.find_user_folder().stat().st_mode) == stat.S_IRWXU
    project("down")
    project.tmux("kill-server", **default)


def test_a_tmux_socket_whose_path_is_too_long_is_refused(monkeypatch, tmp_path):
    """The kernel would cut it, or refuse it with an unclear error."""
    monkeypatch.setattr(user_folder, "find_user_folder", lambda: tmp_path / ("x" * 100))
    monkeypatch.setattr(program_search, "find_executable", lambda _: "/usr/bin/tmux")
    with pytest.raises(UsageError, match="too long"):
        tmux.open_window("rekindle", "trades", str(tmp_path), ["true"], {})


def test_up_records_its_command_before_it_starts_anything(project):
    """A command during the start of the supervisor is later, and is not overruled."""
    project("up", "trades")
    lines = project("events", "--agent", "trades", "--json", "--last", "0").out.splitlines()
    kinds = [json.loads(line)["kind"] for line in lines]
    assert kinds.count("desired.set") == 1
    assert kinds.index("desired.set") < kinds.index("run.started")


def test_a_supervisor_that_cannot_start_is_reported_by_the_watchdog(project):
    """Its own message is shown instead of "started", and a fix takes effect at once."""
    project("up", "trades")
    project.wait_for_launch("trades")
    project.kill_supervisor("trades")
    project.write(trades="    prompt: NOT.md\n")
    manifest = project.path / "rekindle.yaml"
    manifest.write_text(manifest.read_text() + "runtime: {restart: {cooldown: 0s}}\n")
    assert "✓ trades: started: its supervisor is gone\n" in project("watch", "--once").out
    project.place.wait_for(lambda: not project.pids("run", "trades", "--for-watchdog"))
    out = project("watch", "--once").out
    assert "✗ trades: started again: its supervisor did not come up: " in out
    assert "NOT.md" in out
    project.place.wait_for(lambda: not project.pids("run", "trades", "--for-watchdog"))
    project.write()
    project("restart", "trades")
    assert "✓ trades: started: its supervisor is gone\n" in project("watch", "--once").out
    project.wait_for_launch("trades", 1)
