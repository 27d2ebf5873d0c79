"""A host's work with a lease, from its first step on."""

import stat
import sys
from datetime import timedelta

import msgspec
import pytest

from rekindle import config
from rekindle.documents import events
from rekindle.documents.commits.work_commit import (
    PushedWork,
    make_work_ref,
)
from rekindle.errors import EngineError, FencedError, OwnershipError, StalePushError
from rekindle.fleet.agent.host_orders import HostOrder, HostResult
from rekindle.fleet.hosts import host_cycle
from rekindle.fleet.hosts.host_folder import HostFolder
from rekindle.fleet.hosts.host_messages import (
    EngineCutOff,
    EngineRegister,
    LeaseRefusal,
    make_asker,
)
from rekindle.fleet.hosts.host_register import HostRegister
from rekindle.fleet.hosts.hosted_agent import HostedAgent, make_tell
from rekindle.flows.supervisor_ports import TroubleReport
from rekindle.policy.exits.restart import WaitUntil
from rekindle.policy.fleet import agent_leases, agent_registry
from rekindle.policy.fleet.agent_leases import LeaseRequest
from rekindle.policy.fleet.agent_registry import (
    AgentDefinition,
    RegisteredAgent,
)
from rekindle.policy.projection.projection import Projection
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.sandbox.profile import SandboxFloor
from rekindle.policy.settings.runtime_settings import FLEET_DOCUMENT_BYTES
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.system import clock
from rekindle.system.git.remote_repository import RemoteRepository
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.system.processes.child_processes import Interruption
from rekindle.wiring import supervisor_setup as wiring
from rekindle.wiring.open_store import open_store
from throwaway import Repository


@pytest.fixture
def steps(tmp_path):
    """Create the steps of an agent that has crashed twice, a moment ago."""
    (tmp_path / "PROMPT.md").write_text("work")
    program = [sys.executable, "-c", "pass"]
    (tmp_path / "rekindle.yaml").write_text(
        f"version: 1\nagents:\n  trades:\n    harness: command\n    command: {program}\n"
    )
    project = config.load_project(tmp_path)
    store = open_store(project)
    now = clock.read_clock()
    happened = [
        events.DesiredSet(ts=now, desired="running"),
        events.RunStarted(ts=now),
        events.CycleStarted(ts=now, cycle=1),
    ]
    for launch in ("l1", "l2"):
        own = {"ts": now, "launch": launch, "cycle": 1, "session": launch}
        happened += [
            events.LaunchStarted(**own, harness="command", boot="b", uptime=1),
            events.LaunchEnded(**own, exit="crash", words="it fell"),
        ]
    with store.writer("trades") as writer:
        writer.append(*happened)
    with Interruption() as interruption, store.supervising("trades"):
        yield wiring.make_steps(
            project, store, "trades", lambda _: None, interruption, fold_every=1
        )


def test_who_was_given_the_lease_has_waited(steps):
    """The engine's clock counts, not that of a host which is behind."""
    known = steps.log.known()
    assert isinstance(steps.decide(known), WaitUntil)
    assert not host_cycle._run_step(steps, is_first=False)
    assert len(steps.log.known().attempts) == 2
    assert host_cycle._run_step(steps, is_first=True)
    assert len(steps.log.known().attempts) == 3


def test_the_files_of_a_cycle_are_private(tmp_path):
    """The umask of the worker does not matter."""
    folder = RekindleFolder(tmp_path).agent("trades")
    folder.run.mkdir(parents=True)
    make_tell(HostFolder(tmp_path, "trades", "a"), "trades")(TroubleReport("no"))
    assert "no" in folder.output.read_text()
    assert stat.S_IMODE(folder.output.stat().st_mode) == 0o600


class Engine:
    """The worker's end of a line, with what the engine has kept of an agent."""

    def __init__(self, kept):
        self.kept, self.asked = kept, []

    def send(self, asked):
        self.asked.append(asked)

    def recv(self):
        asked = self.asked[-1]
        if isinstance(asked, LeaseRequest):
            if why := agent_leases.explain_refused_request(self.kept, asked):
                return LeaseRefusal(why)
            self.kept, opened = agent_leases.open_lease(self.kept, asked, clock.read_clock())
            return opened
        if why := agent_leases.explain_refused_lease(self.kept, asked.generation, asked.lease):
            return LeaseRefusal(why)
        self.kept, committed = agent_registry.commit_events(self.kept, asked)
        return committed


@pytest.fixture
def engine(monkeypatch):
    monkeypatch.setattr("os.nice", lambda _: 0)  # it would count for all the tests after this one
    manifest = "version: 1\nagents: {trades: {harness: command, command: ['true']}}\n"
    definition = AgentDefinition(
        manifest=manifest, files={"PROMPT.md": "work"}, pool="p", heartbeat_seconds=5
    )
    kept = RegisteredAgent(
        agent="trades", definition=definition, projection=Projection(agent="trades")
    )
    created = events.AgentCreated(ts=clock.read_clock(), agent="trades")
    return Engine(agent_leases.grant_lease(agent_registry.append_events(kept, created)))


def test_a_brief_that_is_due_closes_its_morning(tmp_path, engine, monkeypatch):
    """Otherwise a workflow that starts over would ask for it again; a host's zone is irrelevant."""
    monkeypatch.setattr(host_cycle, "_prepare_process", lambda: None)
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    now = clock.read_clock()
    hour = now.replace(second=0, microsecond=0)
    manifest = (
        "version: 1\nagents: {trades: {harness: command, command: ['true']}}\n"
        "personas: {summarizer: {adapter: command, command: ['false']}}\n"
        f"runtime: {{brief: {{at: '{hour:%H:%M}'}}}}\nfleet: {{pool: p}}\n"
    )
    definition = msgspec.structs.replace(engine.kept.definition, manifest=manifest)
    began, own = hour - timedelta(hours=3), {"launch": "l", "cycle": 1, "session": "s"}
    kept = msgspec.structs.replace(engine.kept, definition=definition)
    engine.kept = agent_registry.append_events(
        kept,
        events.LaunchStarted(ts=began, harness="command", **own),
        events.LaunchEnded(ts=began + timedelta(hours=1), exit="clean", **own),
    )
    order, place = HostOrder("ns/trades", "trades", 1), HostFolder(tmp_path / "p", "trades", "a")
    host_cycle.write_brief(order, place, engine)
    assert isinstance(engine.asked[-1], HostResult), engine.asked[-1]
    assert engine.kept.projection.briefed.closed.morning == hour.date().isoformat()


def test_a_writer_beside_a_cycle_leaves_its_replica_alone(tmp_path, engine):
    """The cycle's replica catches up; without a cycle the replica is fetched again."""
    order, place = HostOrder("ns/trades", "trades", 1), HostFolder(tmp_path / "p", "trades", "a")
    with place.supervising(0) as is_alone:
        assert is_alone
        HostedAgent(order, place, engine)
        with place.supervising(0) as is_second:
            assert not is_second
        said = events.LoopAdded(ts=clock.read_clock(), id="more", text="More")
        engine.kept = agent_registry.append_events(engine.kept, said)
        engine.asked.clear()
        beside = HostedAgent(order, place, engine, beside=True)
    assert not any(isinstance(one, LeaseRequest) for one in engine.asked)
    store = beside.open_replica()
    archive = store.folder("trades").archive
    assert store.read("trades").committed.seq == engine.kept.projection.seq
    assert not list(archive.glob("ops-before-*"))

    engine.kept = agent_registry.append_events(engine.kept, said)
    HostedAgent(order, place, engine)
    assert store.read("trades").committed.seq == engine.kept.projection.seq
    assert list(archive.glob("ops-before-*"))


@pytest.mark.parametrize(("size", "is_sent"), [(100, True), (FLEET_DOCUMENT_BYTES // 2, False)])
def test_a_relay_that_was_written_goes_along_if_the_engine_takes_it(tmp_path, size, is_sent):
    """It counts bytes, and one character may have three: refused, the launch would never end."""
    root = RekindleFolder(tmp_path)
    root.make()
    folder = root.agent("trades")
    folder.make()
    folder.draft.write_text("字" * size)
    sent = []

    class Engine:
        def commit(self, known, new, documents):
            sent.append(dict(documents))
            return []

    own = HostRegister(Engine(), folder, Redaction(), lambda _: None)
    ended = events.LaunchEnded(
        ts=clock.read_clock(), launch="l", cycle=3, session="s", exit="clean"
    )
    own.commit(1, [ended], {})
    assert bool(sent[0]) == is_sent
    assert all(len(data) <= FLEET_DOCUMENT_BYTES for data in sent[0].values())


LOST = OwnershipError("the engine does not answer", hint="nothing to do here")


class Host:
    """One that has claimed the work branch, and whose agent has just written something."""

    def __init__(self, fleet, engine, tmp_path):
        self.fleet, self.engine, self.told = fleet, engine, []
        self.workspace = fleet.at("here", 1)
        self.claimed = self.workspace.bring(None)
        (fleet.repository("here").path / "new.txt").write_text("the agent's\n")
        register = EngineRegister(HostOrder("w", "trades", 1), make_asker(engine))
        folder = RekindleFolder(tmp_path).agent("trades")
        self.own = HostRegister(register, folder, Redaction(), self.told.append)
        self.own.push_to(self.workspace, 1, self.claimed.revision)

    def end_launch(self):
        seq = self.engine.kept.projection.seq
        ended = events.LaunchEnded(
            ts=clock.read_clock(), launch="l", cycle=1, session="s", exit="clean"
        )
        return [events.parse(line) for line in self.own.commit(seq, [ended], {})]


@pytest.fixture
def host(fleet, engine, tmp_path):
    return Host(fleet, engine, tmp_path)


def by_a_person(fleet):
    """Push to the work branch as a person; return the commit."""
    person = Repository(fleet.root / "person")
    person.git("fetch", "-q", fleet.url, make_work_ref("trades"))
    person.git("checkout", "-q", "FETCH_HEAD")
    made = person.commit("theirs.txt", f"a person's, after {fleet.work()}\n")
    person.git("push", "-q", fleet.url, f"HEAD:{make_work_ref('trades')}")
    return made


@pytest.mark.parametrize("is_removed", [True, False], ids=["removed", "pushed to"])
def test_a_branch_that_a_person_changed_is_taken_again(host, fleet, is_removed):
    """The lease is in force: the launch ends, and what they pushed is not lost."""
    if is_removed:
        fleet.remote.git("update-ref", "-d", make_work_ref("trades"))
    else:
        theirs = by_a_person(fleet)
    pushed, ended = host.end_launch()
    assert isinstance(pushed, events.WorkspacePushed)
    assert isinstance(ended, events.LaunchEnded)
    assert pushed.revision == fleet.work()
    assert fleet.remote.git("show", f"{pushed.revision}:new.txt") == "the agent's"
    parents = fleet.remote.git("log", "-1", "--format=%P", pushed.revision).split()
    assert parents == [pushed.head, host.claimed.revision, *([] if is_removed else [theirs])]
    (trouble,) = host.told
    assert "rekindle/trades/work" in trouble.words
    assert ("removed" if is_removed else theirs[:12]) in trouble.words
    (fleet.repository("here").path / "more.txt").write_text("more\n")
    assert host.workspace.push().revision == fleet.work(), "it continues from there"


def test_a_push_that_the_engine_has_not_heard_of_is_recorded_later(host, fleet, monkeypatch):
    """Otherwise, the next host would restore the work from before, with the relay from after it."""
    with monkeypatch.context() as cut_off:
        cut_off.setattr(EngineRegister, "commit", lambda *_: (_ for _ in ()).throw(LOST))
        with pytest.raises(OwnershipError):
            host.end_launch()
    assert fleet.remote.git("show", f"{fleet.work()}:new.txt") == "the agent's"
    pushed, ended = host.end_launch()
    assert isinstance(pushed, events.WorkspacePushed)
    assert pushed.revision == fleet.work()
    assert isinstance(ended, events.LaunchEnded)
    (ended,) = host.end_launch()
    assert isinstance(ended, events.LaunchEnded), "it is recorded only once"


def test_who_has_lost_the_lease_takes_no_branch_again(host, fleet):
    """Whatever the branch was made to be meanwhile."""
    fleet.remote.git("update-ref", "-d", make_work_ref("trades"))
    host.engine.kept = agent_leases.grant_lease(host.engine.kept)
    with pytest.raises(OwnershipError, match="no longer belongs to this host"):
        host.end_launch()
    assert not fleet.work()
    assert not host.told


def test_who_loses_the_lease_just_behind_its_check_takes_nothing_either(host, fleet):
    """The successor has claimed the branch by then, and its generation is higher."""
    owner = fleet.at("there", 2).bring(host.claimed)
    with pytest.raises(StalePushError):
        host.end_launch()
    assert fleet.work() == owner.revision


def test_a_branch_that_cannot_be_taken_again_does_not_hold_the_agent_up(host, fleet):
    """The work stays here, and that is recorded."""
    fleet.remote.git("update-ref", "-d", make_work_ref("trades"))
    fleet.remote.git("branch", "rekindle/trades", "main")  # in its way
    kept, ended = host.end_launch()
    assert isinstance(kept, events.WorkspacePushFailed)
    assert "could not be reclaimed" in kept.words
    assert isinstance(ended, events.LaunchEnded)
    assert [one.words for one in host.told] == [kept.words]


def test_the_agent_gives_way_to_a_person_who_pushes_all_the_time(host, fleet, monkeypatch):
    """The push is tried a few times; the agent continues."""
    real = RemoteRepository.push

    def outrun(self, *arguments):
        by_a_person(fleet)
        return real(self, *arguments)

    monkeypatch.setattr(RemoteRepository, "push", outrun)
    kept, _ = host.end_launch()
    assert isinstance(kept, events.WorkspacePushFailed)
    assert "another program keeps pushing" in kept.words


@pytest.mark.parametrize(
    "answer",
    [EngineCutOff("the worker has exited (x)"), LeaseRefusal("generation 1 was replaced by 2")],
)
def test_an_expired_lease_is_reported_in_the_fleets_words(answer):
    """The error does not suggest a take-over, because the fleet hands over by itself."""
    lost = EngineRegister(HostOrder("w", "trades", 1, "lease"), lambda _: answer)
    with pytest.raises(OwnershipError, match="no longer belongs to this host") as refused:
        lost.commit(1, (), {})
    assert not isinstance(refused.value, FencedError)
    assert answer.words in str(refused.value)
    assert "--take-over" not in refused.value.hint


class Settled:
    """An agent of a host, that has worked there without a remote until its owner adds one."""

    def __init__(self, fleet, engine, tmp_path):
        self.fleet, self.engine = fleet, engine
        self.place = HostFolder(tmp_path / "p", "trades", "a")
        self.here().store()
        self.work = Repository(self.place.work)
        own = {"ts": clock.read_clock(), "launch": "l", "cycle": 1, "session": "s"}
        self.launched = [
            events.LaunchStarted(**own, harness="command", boot="b", uptime=1),
            events.LaunchEnded(**own, exit="clean"),
        ]

    def here(self):
        order = HostOrder("ns/trades", "trades", self.engine.kept.generation)
        return HostedAgent(order, self.place, self.engine)

    def go_on_with_a_remote(self):
        """The host's next cycle; returns what the log has of the work."""
        definition = msgspec.structs.replace(self.engine.kept.definition, remote=self.fleet.url)
        leased = agent_leases.grant_lease(self.engine.kept)
        self.engine.kept = msgspec.structs.replace(leased, definition=definition)
        self.here().store()
        return self.engine.kept.projection.workspace


@pytest.fixture
def settled(fleet, engine, tmp_path):
    found = Settled(fleet, engine, tmp_path)
    engine.kept = agent_registry.append_events(engine.kept, *found.launched)
    return found


def test_what_an_agent_made_before_it_had_a_remote_stays_its_work(settled, fleet):
    """It is pushed as it is; what the remote has is neither put here nor taken for removed."""
    (settled.work.path / "kept.txt").write_text("the agent's\n")
    (settled.work.path / "made.txt").write_text("made here\n")
    pushed = settled.go_on_with_a_remote()
    assert pushed.revision == fleet.work()
    assert (pushed.head, pushed.branch) == ("", "main")
    assert sorted(one.name for one in settled.work.path.iterdir()) == [
        ".git",
        "kept.txt",
        "made.txt",
    ]
    assert settled.work.git("status", "--porcelain") == "?? kept.txt\n?? made.txt"
    assert settled.work.git("log", "-1", "--format=%s", "origin/main") == "More"
    (settled.work.path / "more.txt").write_text("more\n")
    assert settled.go_on_with_a_remote() == pushed, "claimed once"
    other = fleet.at("there", 9)
    other.bring(PushedWork(pushed.revision, pushed.head, pushed.branch))
    assert (fleet.repository("there").path / "kept.txt").read_text() == "the agent's\n"


def test_a_repository_that_the_agent_made_itself_stays_as_it_is(settled, fleet):
    """Its commits, which are unrelated to the remote's, stay."""
    made = settled.work.init("--initial-branch=own").commit("made.txt")
    pushed = settled.go_on_with_a_remote()
    assert (pushed.head, pushed.branch) == (made, "own")
    assert settled.work.git("status", "--porcelain") == ""
    assert fleet.is_in(made, fleet.work())


@pytest.mark.parametrize("step", ["sweep", "set_head", "move"])
def test_killed_while_the_work_is_made_known_it_gets_there_the_next_time(
    settled, fleet, monkeypatch, step
):
    """Nothing was recorded: it is done again, and nothing of it is replaced."""
    (settled.work.path / "made.txt").write_text("made here\n")
    with monkeypatch.context() as patch:
        patch.setattr(WorkingCopy, step, lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            settled.go_on_with_a_remote()
    pushed = settled.go_on_with_a_remote()
    assert pushed.revision == fleet.work()
    assert settled.work.git("status", "--porcelain") == "?? made.txt"


def test_a_folder_that_the_agent_has_not_used_gets_the_remote_s_files(fleet, engine, tmp_path):
    """Existing files belong to another life."""
    found = Settled(fleet, engine, tmp_path)
    (found.work.path / "kept.txt").write_text("of another life\n")
    assert found.go_on_with_a_remote().head
    assert (found.work.path / "kept.txt").read_text() == "kept\n"


def test_an_agent_without_work_begins_with_the_remote_s_files(settled):
    """A lost disk is the same case."""
    assert settled.go_on_with_a_remote().head
    assert (settled.work.path / "kept.txt").read_text() == "kept\n"


def test_a_host_does_not_push_to_a_repository_of_an_agent(tmp_path, engine, fleet):
    """Otherwise its hooks would run outside every sandbox."""
    definition = msgspec.structs.replace(engine.kept.definition, remote=fleet.url)
    engine.kept = msgspec.structs.replace(engine.kept, definition=definition)
    order, floor = HostOrder("ns/trades", "trades", 1), SandboxFloor(1 << 30, 64)
    place = HostFolder(tmp_path / "p", "trades", "a", floor)
    with pytest.raises(EngineError, match="its git remote is in"):
        HostedAgent(order, place, engine).store()
    assert not place.work.exists()
    assert not place.mirrors.exists()
    engine.kept = agent_leases.grant_lease(engine.kept)
    (tmp_path / "root").mkdir()
    place = HostFolder(tmp_path / "root/p", "trades", "a", floor)
    HostedAgent(HostOrder("ns/trades", "trades", 2), place, engine).store()
    assert (place.work / "kept.txt").exists()
