"""A worker is started once, wherever the coordinator was killed while it started it."""

import sys
from datetime import UTC, datetime

import pytest

import worktrees
from rekindle import config
from rekindle.documents.events import DesiredSet
from rekindle.documents.pipelines.pipeline_events import WorkerBegan
from rekindle.errors import UnacceptedError
from rekindle.policy.pipelines.pipeline_state import fold
from rekindle.stores.files.writer import Writer
from rekindle.wiring.access import trust_checks
from rekindle.wiring.open_store import open_store
from rekindle.wiring.pipelines import start_run, worker_start
from rekindle.wiring.pipelines.run_refs import find_repository
from rekindle.wiring.pipelines.worker_start import WorkerStarter
from sampling import WHOLE

LINES = 100
"""More lines than it takes to start a worker."""
KILLED_AT = range(0, LINES, 1 if WHOLE else 9)


class KilledError(BaseException):
    """Stands for kill -9."""


class Starting:
    """A run with a step for each line at which the coordinator is killed."""

    def __init__(self, path):
        steps = "".join(
            f"      - {{id: s{number}, run: 'true'}}\n" for number in sorted({1, *KILLED_AT})
        )
        steps += "      - {id: talk, prompt: Talk}\n"
        agents = "agents:\n  docs: {harness: command, command: [sh]}  # agent\n"
        manifest = f"version: 1\n{agents}pipelines:\n  ship:\n    steps:\n{steps}"
        (path / "rekindle.yaml").write_text(manifest)
        (path / ".gitignore").write_text(".rekindle\n")
        worktrees.git(path, "init", "-q", "-b", "main")
        worktrees.git(path, "add", "-A")
        worktrees.git(path, "commit", "-qm", "one")
        self.manifest = manifest
        self.path, self.project = path, config.load_project(path)
        self.folder = start_run.start_run(self.project, "ship")
        self.definition = self.folder.read_definition()
        self.started = []

    def ensure(self, number):
        """Start a worker as a new coordinator does."""
        began = WorkerBegan(
            ts=datetime.now(UTC),
            step=f"s{number}",
            attempt=1,
            agent=f"ship-1-s{number}",
            commit=self.definition.base,
        )
        source = find_repository(self.project)
        starter = WorkerStarter(self.project, self.folder, self.definition, source)
        assert starter.ensure(fold([*self.folder.read_events(), began]), began) == ""

    def assert_started_once(self, number):
        agent = f"ship-1-s{number}"
        store = open_store(config.load_project(self.path))
        with store.writer(agent) as writer:
            writer.fold()
        commands = [event for event in store.newest_events(agent) if isinstance(event, DesiredSet)]
        assert [command.desired for command in commands] == ["running"], number
        assert self.folder.read_workers()[agent].seq is not None
        assert self.started.count(agent) <= 1, "two supervisors were started"
        branch = worktrees.git(self.path, "rev-parse", f"rekindle/{agent}/work")
        assert branch.decode().strip() == self.definition.base


@pytest.fixture
def starting(tmp_path, monkeypatch):
    monkeypatch.setenv("REKINDLE_TRUST", "1")
    monkeypatch.setattr(start_run, "start_coordinator", lambda *_: None)
    starting = Starting(tmp_path)
    monkeypatch.setattr(
        worker_start.background_start,
        "start_supervisor",
        lambda _project, _store, name: starting.started.append(name),
    )
    return starting


def is_killed_at_line(number, action):
    """Run an action, and kill it before a line of the module. Return whether it got there."""
    lines = 0

    def trace(frame, event, _):
        nonlocal lines
        if frame.f_code.co_filename != worker_start.__file__ or "<" in frame.f_code.co_name:
            return None
        lines += event == "line"
        if event == "line" and lines == number:
            raise KilledError
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    except KilledError:
        return True
    finally:
        sys.settrace(before)
    return False


def test_a_kill_between_any_two_lines(starting):
    killed = []
    for number in KILLED_AT:
        killed.append(is_killed_at_line(number + 1, lambda: starting.ensure(number)))  # noqa: B023
        starting.ensure(number)
        starting.ensure(number)
        starting.assert_started_once(number)
        if not killed[-1]:
            break
    assert len(killed) > 5, "the lines were not traced"
    assert not killed[-1], "there are more lines"


def test_only_a_persona_that_a_worker_uses_needs_consent(starting):
    manifest = starting.path / "rekindle.yaml"
    manifest.write_text("personas: {unused: {adapter: codex}}\n" + manifest.read_text())
    starting.ensure(0)
    manifest.write_text(manifest.read_text().replace("unused", "default"))
    with pytest.raises(UnacceptedError, match=r"personas\.default: added"):
        starting.ensure(1)


def test_what_a_worker_takes_over_from_agents_needs_consent(starting):
    manifest = starting.path / "rekindle.yaml"
    manifest.write_text(starting.manifest.replace("}  # agent", ", env: {A: b}}  # agent"))
    with pytest.raises(UnacceptedError, match=r"agents with command\.env: added"):
        starting.ensure(0)


def test_a_worker_keeps_nothing_of_a_manifest_that_is_not_accepted(starting):
    manifest = starting.path / "rekindle.yaml"
    manifest.write_text("personas: {default: {sandbox: off}}\n" + starting.manifest)
    with pytest.raises(UnacceptedError):
        starting.ensure(0)
    manifest.write_text(starting.manifest)
    starting.ensure(0)
    assert starting.folder.read_workers()["ship-1-s0"].entry.sandbox is True


def test_a_running_worker_needs_consent_only_for_a_persona_that_it_uses(starting):
    starting.ensure(0)
    manifest = starting.path / "rekindle.yaml"
    for persona, reason in (("unused", ""), ("default", "personas.default: added")):
        text = f"personas: {{{persona}: {{system_prompt_file: /etc/hosts}}}}\n"
        manifest.write_text(text + starting.manifest)
        project = config.load_project(starting.path)
        unaccepted = trust_checks.explain_unaccepted(project, "ship-1-s0")
        assert reason in unaccepted
        assert bool(unaccepted) is bool(reason)


def test_a_kill_while_the_command_is_in_the_inbox(starting, monkeypatch):
    def die(_):
        raise KilledError

    with monkeypatch.context() as patches:
        patches.setattr(Writer, "fold", die)
        with pytest.raises(KilledError):
            starting.ensure(0)
    assert starting.started == []
    view = open_store(config.load_project(starting.path)).read("ship-1-s0")
    assert len(view.pending) == 1, "the command is not in the inbox"
    starting.ensure(0)
    starting.assert_started_once(0)
