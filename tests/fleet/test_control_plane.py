"""Programs that control a fleet without a folder: real engine, real worker."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from temporalio.common import SearchAttributeKey

import rekindle
from documented import blocks, join_python
from fleet.apart import Apart
from fleet.engine import Engine
from rekindle import AgentSettings, Budget, DefinitionError, Fleet, FleetChange
from rekindle.documents.events import RunEnded
from rekindle.errors import EngineError, ManifestError, NotFoundError, NotOnFleetError, UsageError
from rekindle.fleet.commands import fleet_control
from rekindle.fleet.engine import agent_list

GUIDE = Path(__file__).parents[2] / "docs/guides/control-plane.md"
EXAMPLE = Path(__file__).parents[2] / "examples/define_many_agents.py"
POOL = "control"
SLOTS = 4
PATIENCE = 150
AGENT = """\
import os, pathlib, sys
sys.stdin.read()
relay = pathlib.Path(os.environ["REKINDLE_FOLDER"].replace("/agents/", "/drafts/"), "relay.md")
relay.write_text("## Current Phase\\nSteps\\n\\n## Next Action\\n" + os.environ["NEXT"] + "\\n")
pathlib.Path("step").write_text("x")
"""
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def host(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apart]:
    """Start the only host of its pool, in an empty folder with the guide's manifest."""
    folder = tmp_path_factory.mktemp("host")
    (manifest,) = [body for kind, _, body in blocks(GUIDE.read_text()) if kind == "yaml"]
    address = f"address: {engine.address}\n  pool: {POOL}\n  heartbeat_timeout: 10s"
    assert "address: 127.0.0.1:7233" in manifest
    manifest = manifest.replace("address: 127.0.0.1:7233", address)
    (folder / "rekindle.yaml").write_text(manifest)
    argv = [sys.executable, "-m", "rekindle", "fleet", "worker", "--trust", "--host", POOL]
    argv += ["--slots", str(SLOTS), "--root", str(folder / "root"), "--sandbox", "off"]
    process = Apart(argv, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert "takes up to" in process.stdout.readline()
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        finally:
            process.close()


@pytest.fixture
def fleet(engine: Engine, host: Apart) -> Iterator[Fleet]:
    with rekindle.connect(
        fleet=engine.address, pool=POOL, team="blue", heartbeat_timeout=10
    ) as opened:
        yield opened


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    return request.node.name[5:30].strip("_[]").replace("_", "-")


def spec(name: str, **more) -> AgentSettings:
    usual = {
        "harness": "command",
        "command": [sys.executable, "-I", "-c", AGENT],
        "task": "Do the list.",
        "env": {"NEXT": "Do the next step"},
        "manifest": {"runtime": {"brief": {"at": "never"}}},
    }
    return AgentSettings(name=name, **usual | more)


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, "it never came to pass"
        time.sleep(0.2)


def collect(fleet: Fleet, names: set[str], kind: str, *, after: str = "") -> list:
    """Return the changes until each agent had one of this kind."""
    waiting, seen, deadline = set(names), [], time.monotonic() + PATIENCE
    for change in _watch(fleet, after, deadline):
        if change.row.agent in names:
            seen.append(change)
            if change.kind == kind:
                waiting.discard(change.row.agent)
        if not waiting:
            return seen
    raise AssertionError(f"no {kind} of {waiting}: {[change.row for change in seen]}")


def _watch(fleet: Fleet, after: str, deadline: float) -> Iterator[FleetChange]:
    """Watch like `Fleet.watch`, but not forever."""
    for changes in fleet.polls(after=after):
        yield from changes
        if time.monotonic() > deadline:
            return
        time.sleep(0.2)


def test_agents_go_from_their_definition_to_their_removal(fleet, prefix):
    specs = [spec(f"{prefix}-{number}", team=f"t{number % 2}") for number in range(6)]
    names = [one.name for one in specs]
    assert set(fleet.define_all(specs).done) == set(names)
    until(lambda: len(fleet.rows(team="t1")) == 3)
    assert {row.agent for row in fleet.rows(team="t1")} == set(names[1::2])
    assert {row.state for row in fleet.rows(team="t1")} == {"stopped"}
    again = fleet.define_all(specs)
    assert (set(again.unchanged), again.done, again.failed) == (set(names), (), {})

    started = fleet.run(names, cycles=2)
    assert (set(started.done), started.failed) == (set(names), {})
    changes = collect(fleet, set(names), "ended")
    assert "running" in {change.row.state for change in changes}
    ended = {change.row.agent: change.row for change in changes if change.kind == "ended"}
    assert {row.cycle for row in ended.values()} == {2}
    usage = {usage.name: usage for usage in fleet.usage() if usage.name in {"t0", "t1"}}
    assert {(one.agents, one.running, one.cycles) for one in usage.values()} == {(3, 0, 6)}
    assert fleet.agent(names[0]).relay().next_action == "Do the next step"
    assert RunEnded in map(type, fleet.agent(names[0]).events())
    assert fleet.agent(names[0]).row().cycles_done == 2

    cursor = changes[-1].cursor
    removed = fleet.remove([*names, "missing"])
    assert (set(removed.done), removed.unchanged) == (set(names), ("missing",))
    later = collect(fleet, set(names), "removed", after=cursor)
    assert {change.row.agent for change in later if change.kind == "removed"} == set(names)
    until(lambda: not fleet.rows(team="t1"))


def test_another_definition_counts_from_the_next_cycle(fleet, prefix):
    """Even if the engine's list still shows the one before."""
    assert fleet.define(spec(prefix))
    assert fleet.define(spec(prefix, env={"NEXT": "Do less"}))
    assert fleet.define(spec(prefix))
    assert fleet.define(spec(prefix, env={"NEXT": "Do more"}))
    fleet.run(prefix, cycles=1)
    collect(fleet, {prefix}, "ended")
    assert fleet.agent(prefix).relay().next_action == "Do more"
    until(lambda: not fleet.define(spec(prefix, env={"NEXT": "Do more"})))
    fleet.remove(prefix)


def test_an_agent_that_is_defined_again_is_reported_once(fleet, prefix):
    """The engine lists the removed agent and the new one."""
    fleet.define(spec(prefix))
    collect(fleet, {prefix}, "state")
    polls = fleet.polls()

    def poll() -> list[FleetChange]:
        return [change for change in next(polls) if change.row.agent == prefix]

    until(poll)
    fleet.remove(prefix)
    until(lambda: any(change.kind == "removed" for change in poll()))
    fleet.define(spec(prefix))
    kinds: list[str] = []

    def is_decided() -> bool:
        """Return whether the worker's first decision is listed, which is the last change."""
        changes = poll()
        kinds.extend(change.kind for change in changes)
        return any(change.row.changed and not change.row.is_removed for change in changes)

    until(is_decided)
    assert set(kinds) == {"state"}
    assert not any(poll() for _ in range(3))
    fleet.remove(prefix)


def test_a_question_is_found_and_answered_and_a_stop_holds(fleet, prefix):
    names = [f"{prefix}-{number}" for number in range(3)]
    waits = {"NEXT": "Waiting for Ann to choose a database"}
    fleet.define_all([spec(name, env=waits, team="asking") for name in names])
    fleet.run(names)
    collect(fleet, set(names), "question")
    until(lambda: {row.state for row in fleet.rows(team="asking")} == {"needs you"})
    asked = fleet.questions(team="asking")
    opened = {one.agent: one.text for one in asked.opened}
    assert (set(opened), len(asked.opened), asked.failed) == (set(names), 3, {})
    assert all("choose a database" in text for text in opened.values())
    assert {row.agent for row in fleet.rows(asks=True, team="asking")} == set(names)
    assert fleet.answer(names[0], "stop").done == (names[0],)
    until(lambda: len(fleet.questions(team="asking").opened) == 2)
    with pytest.raises(NotFoundError, match="is closed"):
        fleet.answer(names[0], "stop", question=f"{names[0]}-1")
    assert fleet.stop(names).done
    until(lambda: {row.state for row in fleet.rows(team="asking")} == {"stopped"})
    assert fleet.questions(team="asking").opened == ()
    fleet.remove(names)


def test_a_failure_of_one_agent_does_not_hide_the_others(fleet, prefix):
    specs = [spec(prefix), spec(f"{prefix}-b", budget=Budget(usd=-1)), spec("A B")]
    result = fleet.define_all(specs)
    assert result.done == (prefix,)
    error = result.failed[f"{prefix}-b"]
    assert isinstance(error, DefinitionError)
    assert error.field == "budget.usd"
    assert result.failed["A B"].field == "name"
    with pytest.raises(DefinitionError, match="budget"):
        result.require()
    mixed = fleet.run([prefix, "missing-agent"], cycles=1)
    assert mixed.done == (prefix,)
    assert isinstance(mixed.failed["missing-agent"], NotOnFleetError)
    with pytest.raises(NotOnFleetError) as missing:
        fleet.stop("missing-agent")
    assert "`Fleet.define`" in missing.value.hint
    twice = fleet.define_all([spec(f"{prefix}-c"), spec(f"{prefix}-c", task="Another.")])
    assert (twice.done, twice.failed[f"{prefix}-c"].field) == ((), "name")
    with pytest.raises(UsageError, match="is not a cursor"):
        next(fleet.watch(after="yesterday"))
    fleet.remove(prefix)


def test_an_agent_starts_from_its_branch(fleet, prefix, tmp_path):
    bare, here = tmp_path / "remote.git", tmp_path / "here"

    def git(*words: str) -> str:
        who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
        return subprocess.run(
            ["git", *who, *words], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    git("init", "-q", "--bare", "-b", "main", str(bare))
    git("clone", "-q", str(bare), str(here))
    for branch in ("main", "release/2"):
        git("-C", str(here), "checkout", "-q", "-B", branch)
        (here / "kind").write_text(branch)
        git("-C", str(here), "add", "kind")
        git("-C", str(here), "commit", "-q", "-m", branch)
        git("-C", str(here), "push", "-q", "origin", branch)
    fleet.define(spec(prefix, repository=str(bare), branch="release/2"))
    fleet.run(prefix, cycles=1)
    collect(fleet, {prefix}, "ended")
    work = f"rekindle/{prefix}/work"
    assert git("--git-dir", str(bare), "show", f"{work}:kind") == "release/2"
    assert git("--git-dir", str(bare), "show", f"{work}:step") == "x"
    fleet.remove(prefix)


def test_threads_share_a_connection(fleet, prefix):
    names, together, results = [f"{prefix}-{at}" for at in range(4)], threading.Barrier(4), []

    def define(name: str) -> None:
        together.wait(60)
        results.append((fleet.define(spec(name)), fleet.agent(name).row().state))

    threads = [threading.Thread(target=define, args=[name]) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [(True, "stopped")] * 4
    fleet.remove(names)


def test_agents_are_defined_before_any_host_starts(engine, prefix):
    with rekindle.connect(fleet=engine.address, namespace="other") as fleet:
        assert fleet.define(spec(prefix))
        until(lambda: [row.agent for row in fleet.rows() if row.agent == prefix])


@pytest.mark.timeout(60)
def test_a_command_without_a_worker_ends_in_time(tmp_path, prefix, monkeypatch):
    """The engine itself ends each request earlier, and the client sends it again."""
    monkeypatch.setattr(fleet_control, "FLEET_BULK_SECONDS", 3.0)
    with (
        Engine(tmp_path, settings=['history.longPollExpirationInterval="1s"']) as engine,
        rekindle.connect(fleet=engine.address) as fleet,
    ):
        fleet.define(spec(prefix))
        for command in (fleet.run, fleet.stop, fleet.remove):
            with pytest.raises(EngineError, match="no worker answered") as raised:
                command(prefix)
            assert raised.value.cause == "unanswered"


def test_a_namespace_that_no_host_has_prepared_is_named(engine, monkeypatch):
    absent = SearchAttributeKey.for_keyword("RekindleAbsent")
    monkeypatch.setattr(agent_list, "TEAM_ATTRIBUTE", absent)
    with rekindle.connect(fleet=engine.address) as fleet:
        with pytest.raises(EngineError, match="lacks Rekindle's search attributes") as refused:
            fleet.rows(team="blue")
        assert refused.value.cause == "attributes"
        assert "rekindle fleet worker" in refused.value.hint
    with pytest.raises(EngineError, match="is closed"):
        fleet.rows()


def test_the_guide_runs_as_written(engine, host, capsys):
    address = f'fleet="{engine.address}", pool="{POOL}"'
    text = join_python(GUIDE.read_text(), "").replace('fleet="127.0.0.1:7233"', address)
    assert address in text
    assert text.count("range(1, 11)") == 2
    text = text.replace("range(1, 11)", "range(1, 5)")
    first, end = text.split("fleet.stop(names)")
    assert "fleet.remove(names)" in end
    # The second time, the ends of the first runs are still listed.
    for part, defined, cycles in ((first, "4 defined, 0", 4), (text, "0 defined, 4", 8)):
        exec(compile(part, "control-plane.md", "exec"), {})  # noqa: S102 - the guide
        printed = capsys.readouterr().out
        assert f"{defined} unchanged" in printed
        assert printed.count(" done ") == 4
        assert f"\nweb 4 0 {cycles} " in printed


def test_the_example_runs_as_written(engine, host, tmp_path):
    (tmp_path / "tasks").write_text("Fix the form.\nFix the table.\n")
    program = EXAMPLE.read_text().replace('team="tasks")', f'team="tasks", pool="{POOL}")', 1)
    assert len(program.splitlines()) <= 40
    argv = [sys.executable, "-c", program, engine.address, "tasks", "command"]
    for cycle in (1, 2):  # the second time, it waits for the second runs
        done = subprocess.run(
            [*argv, sys.executable, "-I", "-c", "print('done')"],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        printed = sorted(line.split(":")[0] for line in done.stdout.splitlines())
        assert printed == ["task-1", "task-2"]
        with rekindle.connect(fleet=engine.address) as fleet:
            rows = fleet.rows(team="tasks")
        assert [(row.is_over, row.cycle) for row in rows] == [(True, cycle)] * 2


def test_a_connection_that_would_not_be_safe_is_refused(engine):
    with pytest.raises(ManifestError, match="plain text"):
        rekindle.connect(fleet="engine.example.org:7233")
    with pytest.raises(EngineError, match="no namespace"):
        rekindle.connect(fleet=engine.address, namespace="nowhere")
    with pytest.raises(UsageError, match="only a connection to a fleet"):
        rekindle.connect(".", team="blue")


def test_the_program_of_an_agent_is_refused(engine, monkeypatch):
    def refuse(command):
        raise rekindle.RekindleError(f"{command} was called by an agent")

    monkeypatch.setattr("rekindle.api.fleet.refuse_any_agent", refuse)
    with rekindle.connect(fleet=engine.address) as fleet:
        for act in (
            lambda: fleet.define(spec("a")),
            lambda: fleet.run("a"),
            lambda: fleet.stop("a"),
            lambda: fleet.answer("a", "yes"),
            lambda: fleet.remove("a"),
        ):
            with pytest.raises(rekindle.RekindleError, match="called by an agent"):
                act()
