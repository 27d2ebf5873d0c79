"""The ordinary commands with a fleet in the manifest: real engine, real worker."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from fleet.engine import Engine
from fleet.figures import hold
from fleet.working import Place, worker
from rekindle import config
from rekindle.cli.main import run
from rekindle.documents.events import HandoffRequested
from rekindle.errors import OwnershipError
from rekindle.fleet.commands import fleet_checks
from rekindle.fleet.commands.define_agent import define_agent
from rekindle.fleet.commands.fleet_store import FleetStore
from rekindle.fleet.commands.move_agent import AgentMover
from rekindle.stores.files import ownership
from rekindle.system import clock
from rekindle.system.host import identify_author
from rekindle.wiring.open_store import open_store

Cli = Callable[..., tuple[int, str, str]]
_PATIENCE_SECONDS = 60
pytestmark = pytest.mark.timeout(300)

OUT_OF_CYCLES = 24


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of agents on the host."""
    return tmp_path_factory.mktemp("host") / "a"


@pytest.fixture(scope="module")
def host(engine: Engine, root: Path) -> Iterator[str]:
    """Start the only host of its pool; return the manifest section for it."""
    folder = root.parent
    said = f"fleet: {{address: '{engine.address}', pool: verbs, heartbeat_timeout: 10s}}"
    manifest = "version: 1\nagents: {}\n"
    (folder / "rekindle.yaml").write_text(f"{manifest}{said}\n")
    with worker(folder, root, "a"):
        yield said


@pytest.fixture
def no_worker(engine: Engine) -> str:
    """Return the manifest section of a fleet without a worker."""
    return f"fleet: {{address: '{engine.address}', namespace: other}}"


@pytest.fixture
def place(tmp_path, monkeypatch, request) -> Place:
    found = Place(tmp_path, f"agent-{request.node.name[5:40].strip('_[]').replace('_', '-')}")
    monkeypatch.chdir(found.project)
    monkeypatch.setattr("os.environ", os.environ | {"NO_COLOR": "1"})
    return found


@pytest.fixture
def rekindle(capsys) -> Cli:
    def call(*words: str) -> tuple[int, str, str]:
        code = run(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def told(rekindle: Cli, agent: str) -> dict:
    return json.loads(rekindle("status", agent, "--json")[1])["agents"][0]


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < deadline, "it never came to pass"
        time.sleep(0.1)


def await_row(rekindle: Cli, agent: str, holds: Callable[[dict], object]) -> dict:
    """Return the agent's row once it has run and `holds`; a busy host may answer too late."""
    rows = []

    def matches() -> bool:
        rows.append(told(rekindle, agent))
        return bool(rows[-1].get("run") and holds(rows[-1]))

    try:
        until(matches)
    except AssertionError as late:
        raise AssertionError(f"{late}: {rows[-1]}") from None
    return rows[-1]


def await_end(rekindle: Cli, agent: str) -> dict:
    """Return the row once the run has ended; the host returns the agent a moment later."""
    return await_row(
        rekindle, agent, lambda row: row["run"]["ended"] and not row["run"]["supervised"]
    )


def say_all(place: Place, rekindle: Cli) -> None:
    """Give every command that an operator may give to a running agent."""
    name = place.agent
    assert "✓ loop second opened" in rekindle("loops", "add", "second", "Look again")[1]
    assert "✓ loop first resolved" in rekindle("resolve", "first", "done")[1]
    # A cycle is recorded a moment before its launch, which is what a handoff needs.
    until(lambda: "is not running" not in rekindle("handoff")[2])
    assert "cannot be stopped between two turns" in rekindle("handoff")[2]
    with opened(place) as (_, store):  # as for a CLI that supports it
        assert store.submit(name, HandoffRequested(ts=clock.read_clock()))
    assert "handoff.requested" in rekindle("events")[1]
    assert "It will arrive in its next prompt" in rekindle("tell", name, "Keep", "right")[1]
    assert "its next cycle will get the message" in rekindle("answer", name, "Turn", "left")[1]
    assert "✓ second" not in rekindle("loops")[1]


def test_an_agent_moves_to_a_fleet_and_home_again(place, host, rekindle):
    """It keeps its numbers, its loops, its relay, and the commands in the meantime."""
    name = place.agent
    assert rekindle("run", name)[0] == OUT_OF_CYCLES
    assert rekindle("loops", "add", "first", "Look at the list")[0] == 0
    place.push()
    place.say(host)
    assert (
        "state:  stopped: is in this folder, not on the fleet\n"
        f"          → rekindle fleet import {name}" in rekindle("status")[1]
    )
    code, _, err = rekindle("run", name)
    assert code == 6
    assert f"rekindle fleet import {name}" in err
    assert rekindle("fleet", "import", name)[0] == 0
    assert "is already on the fleet" in rekindle("fleet", "import", "--all")[1]
    row = told(rekindle, name)
    assert (row["cycle"], row["open_loops"]) == (2, 1)
    assert row["next_action"] == "Do step 3 of the list"
    assert row["fleet"]["state"] == "over"

    place.hold.touch()
    code, out, _ = rekindle("run", name, "--cycles", "3")
    assert code == 0
    assert "is running on the fleet, on a host of pool verbs" in out
    await_row(rekindle, name, lambda row: row["cycle"] == 3 and row["host"] == "a")
    say_all(place, rekindle)
    assert rekindle("stop", name)[1] == f"✓ {name}: stopped\n"
    assert rekindle("stop", name)[1] == f"✓ {name}: is not running, and stays stopped\n"
    row = told(rekindle, name)
    assert (row["run"]["desired"], row["run"]["supervised"]) == ("stopped", False)
    assert f"by={identify_author()}" in rekindle("events", name)[1]
    place.hold.unlink()
    assert "will be started again in a fresh session" in rekindle("restart", name, "--fresh")[1]
    row = await_end(rekindle, name)
    assert row["cycle"] == 5
    assert row["next_action"] == "Do step 6 of the list"
    assert "Do step 6 of the list" in rekindle("relay", "show")[1]

    code, out, _ = rekindle("fleet", "remove", name)
    assert code == 0
    assert f"on branch rekindle/{name}/work" in out
    assert place.pushed("step-5") == "x"
    assert "Turn left" in place.pushed("told.md")
    assert place.pushed("told.md").count("Keep right") == 1
    assert f"agent {name} is not on the fleet" in rekindle("fleet", "remove", name)[2]
    place.say()
    row = told(rekindle, name)
    assert (row["cycle"], row["open_loops"], row["state"]) == (5, 1, "stopped")
    assert row["next_action"] == "Do step 6 of the list"
    code, out, _ = rekindle("run", name, "--cycles", "1")
    assert code == OUT_OF_CYCLES
    assert f"{name}: cycle 6, a fresh session" in out


def test_an_agent_begins_on_a_fleet_and_is_removed_while_it_runs(
    place, host, rekindle, monkeypatch
):
    """There was nothing of it here before; afterwards its state is here."""
    name = place.agent
    place.say(host)
    assert rekindle("status")[1].endswith(f"is not on the fleet\n          → rekindle run {name}\n")
    assert rekindle("stop", name)[0] == 7
    assert rekindle("loops", "add", "a", "b")[0] == 7
    place.hold.touch()
    assert "is now on the fleet" in rekindle("run", name)[1]
    # A host that is slow to begin is given the agent again, with the next generation.
    until(lambda: "running, host a of pool verbs; generation " in rekindle("status")[1])
    await_row(rekindle, name, lambda row: row["run"]["supervised"])
    _, out, err = rekindle("events", "-n", "0")
    assert "agent.created" in out
    assert not err
    code, out, _ = rekindle("metrics")
    assert code == 0
    assert f'agent="{name}",state="running"}} 1\n' in out
    assert "_total" not in out  # its log is on several hosts
    monkeypatch.setattr("rekindle.api.fleet_rows.FLEET_STATUS_AGENTS", 0)
    listed = f"{name}  (command)\n  state:  running\n  fleet:  running, host a of pool verbs\n"
    assert rekindle("status")[1] == listed
    with opened(place) as (_, store):
        generation = store.wait_for(store.agents.remove(name)).generation
    # Repeat it, as after a kill on the way home.
    assert rekindle("fleet", "remove", name)[0] == 0
    place.hold.unlink()
    owner = ownership.read_owner(open_store(config.load_project(place.project)).folder(name))
    assert owner.gen > generation
    place.say()
    assert "cycle 1, a fresh session" in rekindle("run", name, "--cycles", "1")[1]


def test_a_changed_manifest_counts_from_the_next_command(place, host, rekindle, monkeypatch):
    """The command sends it."""
    name = place.agent
    place.say(host)
    assert rekindle("run", name, "--cycles", "1")[0] == 0
    asked = await_end(rekindle, name)
    with monkeypatch.context() as patch:
        patch.setattr("rekindle.api.fleet_rows.FLEET_STATUS_AGENTS", 0)
        until(lambda: told(rekindle, name)["outcome"])
        listed = told(rekindle, name)
    assert (listed["state"], listed["outcome"]) == (asked["state"], asked["outcome"])
    assert listed["outcome"] == "out-of-cycles"
    place.say(f"{host}\nruntime: {{brief: {{at: '07:15', zone: Europe/Zurich}}}}")
    assert rekindle("restart", name)[0] == 0
    with opened(place) as (_, fleet_store):
        assert "07:15" in fleet_store.kept(name).definition.manifest
    assert rekindle("fleet", "remove", name)[0] == 0


def test_a_reported_end_is_held_against_until_on_a_fleet(place, host, rekindle):
    """`until:` refuses the first report, which the next cycle is told; the second one holds."""
    name, program = place.agent, place.project / "agent.py"
    program.write_text(re.sub(r"Do step \{.*?\} of the list", "DONE", program.read_text()))
    place.push()
    check = "    until: test -e step-2\n    until_claimed: true\n"
    place.say(host)
    manifest = place.project / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace("    cycles: 2\n", f"    cycles: 9\n{check}"))
    assert rekindle("run", name)[0] == 0
    found = await_end(rekindle, name)
    assert (found["state"], found["outcome"], found["cycle"]) == ("done", "done", 2), found
    assert "until" in place.pushed("told.md")
    assert rekindle("fleet", "remove", name)[0] == 0


def test_a_reported_end_is_reviewed_on_a_fleet(place, host, rekindle):
    """The host runs the reviewer; a refusal reaches the next cycle, consent ends the run."""
    name, program = place.agent, place.project / "agent.py"
    program.write_text(re.sub(r"Do step \{.*?\} of the list", "DONE", program.read_text()))
    critic = place.project / "critic.py"
    critic.write_text(
        "import pathlib, sys\n"
        "assert '## Next Action\\nDONE' in sys.stdin.read()\n"
        "print('DONE' if pathlib.Path('step-2').exists() else 'NOT DONE\\nno step two')\n"
    )
    place.push()
    place.say(host)
    manifest = place.project / "rekindle.yaml"
    persona = f"critic: {{adapter: command, command: {[sys.executable, str(critic)]}}}"
    text = manifest.read_text().replace("    cycles: 2\n", "    cycles: 9\n    review: critic\n")
    manifest.write_text(text.replace("personas: {", f"personas: {{{persona}, "))
    assert rekindle("run", name)[0] == 0
    found = await_end(rekindle, name)
    assert (found["state"], found["outcome"], found["cycle"]) == ("done", "done", 2), found
    assert (
        "A review does not agree. Missing, according to the review:\nno step two"
        in place.pushed("told.md")
    )
    lines = rekindle("events", name, "--json", "--last", "0")[1].splitlines()
    made = [one for one in map(json.loads, lines) if one["kind"] == "review.made"]
    assert [one["verdict"] for one in made] == ["failed", "passed"], made
    assert rekindle("fleet", "remove", name)[0] == 0


def test_a_host_that_lost_its_disk_has_the_work_from_the_remote(place, host, root, rekindle):
    """The host comes back under its name, and the agent was not moved."""
    name = place.agent
    place.say(host)
    assert rekindle("run", name, "--cycles", "1")[0] == 0
    # Not only the run is over: the host has returned the agent and no longer writes there.
    until(lambda: told(rekindle, name)["fleet"]["state"] == "over")
    shutil.rmtree(root / f"default~{name}")
    assert rekindle("run", name, "--cycles", "1")[0] == 0
    await_row(rekindle, name, lambda row: row["run"]["ended"] and row["cycle"] == 2)
    assert (place.pushed("step-1"), place.pushed("step-2")) == ("x", "x")
    assert rekindle("fleet", "remove", name)[0] == 0


def test_a_brief_is_written_by_a_host_and_shown(place, host, rekindle):
    """A second brief without news is the same one, and the command says so."""
    name = place.agent
    place.say(host)
    assert rekindle("run", name, "--cycles", "1")[0] == 0
    before = place.count_pushes()
    row = await_end(rekindle, name)
    pushes = place.count_pushes() - before
    code, out, err = rekindle("brief", name)
    assert (code, err) == (0, "")
    assert "**Next:** Do step 2 of the list" in out
    code, again, err = rekindle("brief", name)
    assert (code, again) == (0, out)
    assert "no new brief was written" in err
    hold(pushes_per_cycle=pushes / row["cycle"])
    assert rekindle("fleet", "remove", name)[0] == 0


def test_without_a_worker_the_engine_is_asked_alone(place, no_worker, rekindle, monkeypatch):
    """Commands that need no worker work; the others say what is missing."""
    name = place.agent
    place.say(no_worker)
    monkeypatch.setattr("rekindle.fleet.engine.agent_client._ANSWER", timedelta(seconds=1))
    code, out, _ = rekindle("run", name)
    assert code == 0
    assert "as soon as a host of pool default has a free slot" in out
    code, out, _ = rekindle("status", name)
    assert code == 0
    assert "fleet:  new, pool -" in out
    assert f"no worker answered for agent {name} in time" in out
    assert "start a worker on this host with `rekindle fleet worker`" in out
    code, _, err = rekindle("stop", name)
    assert code == 10
    assert "no worker answered for agent" in err


def test_what_is_pushed_is_said_and_never_a_key_of_the_fleet(place, no_worker, rekindle):
    """An untracked file is never pushed silently, and a key is never pushed at all."""
    name = place.agent
    key = place.project / "keys/fleet.key"
    key.parent.mkdir()
    key.write_text("A" * 43 + "=")
    place.say(no_worker.replace("}", ", codec: {key_files: [keys/fleet.key]}}"))
    code, out, err = rekindle("run", name)
    assert (code, out) == (5, "")
    assert "keys/fleet.key would be pushed, but contains a secret of the fleet" in err
    assert ".gitignore" in err
    place.push()
    assert (
        "keys/fleet.key would be pushed, but contains a secret of the fleet"
        in rekindle("fleet", "import", name)[2]
    )
    subprocess.run(["git", "rm", "-rq", "--cached", "keys"], cwd=place.project, check=True)
    (place.project / ".gitignore").write_text(".rekindle/\nrekindle.yaml\n*.key\n")
    (place.project / "new.txt").write_text("new\n")
    code, out, err = rekindle("run", name)
    assert code == 0
    branch = f"rekindle/{name}/work"
    # The removal of the key is not committed either.
    assert f"pushed the files of {name}, 3 of them not committed, to the branch {branch}" in err
    assert place.pushed("new.txt") == "new\n"
    with pytest.raises(subprocess.CalledProcessError):
        place.pushed("keys/fleet.key")


def test_the_engine_gets_no_login(place, no_worker):
    """Each host has its own."""
    url = "https://ann:secret@example.org/x.git"
    subprocess.run(["git", "remote", "set-url", "origin", url], cwd=place.project, check=True)
    place.say(no_worker)
    project = config.load_project(place.project)
    definition = define_agent(project, project.settings.fleet, place.agent)
    assert definition.remote == "https://example.org/x.git"
    [problem] = fleet_checks.check_workspace(project, place.agent)
    assert problem.is_note
    assert "contains a login, which is not sent to the fleet" in problem.what
    assert "secret" not in problem.what


def test_an_import_that_was_killed_can_be_repeated(place, no_worker, rekindle):
    """The folder belongs to the fleet first; no host runs the agent until the fleet has it."""
    name = place.agent
    assert rekindle("loops", "add", "first", "Look")[0] == 0
    place.say(no_worker)
    with opened(place) as (moving, store):
        moving._release_to_fleet(name)
        assert not store.exists(name)
    place.say()
    code, _, err = rekindle("loops", "add", "second", "Look")
    assert code == 6
    assert f"agent {name} is on the fleet other" in err
    assert f"`rekindle fleet remove {name}` to move it back" in err
    assert "it is on a fleet, and this is its last state on this host" in rekindle("status")[1]
    place.say(no_worker)
    assert rekindle("run", name)[0] == 6
    assert rekindle("fleet", "import", name)[0] == 0
    with opened(place) as (moving, store):
        assert store.exists(name)
        assert moving.has_moved_to_fleet(name)


def test_an_agent_that_the_fleet_refuses_stays_at_home(place, no_worker, rekindle):
    """The mark is removed; a similar mark is not touched."""
    name = place.agent
    assert rekindle("loops", "add", "first", "Look")[0] == 0
    place.say(no_worker)
    with opened(place) as (moving, store):
        owner = ownership.read_owner(open_store(config.load_project(place.project)).folder(name))
        project = config.load_project(place.project)
        definition = define_agent(project, project.settings.fleet, name)
        store.wait_for(store.agents.begin(name, definition))
        with pytest.raises(OwnershipError, match="the fleet already has another agent named"):
            moving.send(name)
        assert not moving.has_moved_to_fleet(name)
        store.exists = lambda _: False  # another command is faster, by a moment
        with pytest.raises(OwnershipError, match="is already on the fleet"):
            moving.send(name)
        assert not moving.has_moved_to_fleet(name)
        assert ownership.read_owner(open_store(project).folder(name)).host == owner.host
    place.say()
    assert rekindle("loops", "add", "second", "Look")[0] == 0


def test_a_running_agent_is_not_imported(place, no_worker, rekindle):
    """Two supervisors would run it."""
    place.say(no_worker)
    with open_store(config.load_project(place.project)).supervising(place.agent):
        code, _, err = rekindle("fleet", "import", "--all")
    assert code == 6
    assert "is already running" in err
    assert rekindle("fleet", "import")[0] == 2


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (["up"], "`rekindle run NAME`"),
        (["down"], "`rekindle stop NAME`"),
        (["watch", "--once"], "only needs `rekindle fleet worker`"),
        (["daemon"], "only needs `rekindle fleet worker`"),
        (["service", "install", "--print"], "`rekindle fleet worker`"),
        (["run", "--once"], "omit --once"),
        (["run", "--json"], "`rekindle events NAME --follow --json`"),
        (["run", "--for-watchdog"], "stop this project's daemon"),
        (["brief", "--due"], "runtime: brief: at:"),
        (["brief", "--all"], "`rekindle status`"),
        (["brief", "--mechanical"], "summarizer"),
        (["decisions", "--all"], "omit --all"),
        (["relay", "set", "PROMPT.md"], "`rekindle answer NAME TEXT`"),
        (["relay", "history"], "on the agent's host"),
        (["relay", "diff"], "on the agent's host"),
        (["transcript"], "on the agent's host"),
        (["hooks", "install"], "each host"),
        (["adopt", "PROMPT.md"], "without `fleet:`"),
        (["doctor", "--fix"], "without `fleet:`"),
    ],
)
def test_a_command_for_one_host_names_an_alternative(place, rekindle, words, instead):
    """It does not ask the engine."""
    place.say("fleet: {address: '127.0.0.1:9'}")
    code, _, err = rekindle(*words)
    assert code == 2
    assert "does not work for agents on a fleet" in err
    assert instead in err


def test_the_doctor_looks_at_the_engine_and_at_each_workspace(place, host, no_worker, rekindle):
    """It lists the pollers, and the remote of each workspace."""
    place.say(host)
    # A new worker is known after its first poll.
    until(lambda: rekindle("doctor")[0] == 0)
    out = rekindle("doctor")[1]
    assert "no git remote" not in out
    assert "briefs are written at 06:00 UTC" in out
    place.say(host.replace("pool: verbs", "pool: empty"))
    code, out, _ = rekindle("doctor")
    assert code == 8
    assert "no host of pool empty is running" in out
    place.say(no_worker)
    subprocess.run(["git", "remote", "remove", "origin"], cwd=place.project, check=True)
    code, out, _ = rekindle("doctor")
    assert code == 8
    assert "no worker is running, so no agent can continue" in out
    assert f"· {place.agent}: its folder has no git remote" in out


def test_a_command_exits_with_its_own_code(place, no_worker):
    """The client's own threads would crash one in four during Python's teardown."""
    place.say(no_worker)
    argv = [sys.executable, "-m", "rekindle", "status"]
    codes = [subprocess.run(argv, check=False, capture_output=True).returncode for _ in range(5)]
    assert codes == [0] * 5


class opened:  # noqa: N801 - a context
    """Open both stores, and the object that moves agents between them."""

    def __init__(self, place: Place) -> None:
        project = config.load_project(place.project)
        self._store = FleetStore(project, project.settings.fleet, os.environ, say=print)
        self._moving = AgentMover(project, project.settings.fleet, open_store(project), self._store)

    def __enter__(self) -> tuple[AgentMover, FleetStore]:
        return self._moving, self._store

    def __exit__(self, *exc: object) -> None:
        self._store.close()
