"""An agent's additions to a manifest in a trusted folder start nothing, and connect to nothing."""

import json
import socket
import sys
import time

import pytest

from rekindle import config
from rekindle.cli.main import run
from rekindle.errors import UnacceptedError
from rekindle.system import clock
from rekindle.wiring.access import trust_checks

MANIFEST = """\
version: 1
agents:
  trades: {harness: command, command: ["true"], until: ["true"]}
"""
PLANTED = """\
  evil: {harness: claude-code}
personas:
  summarizer: {adapter: command, command: [PYTHON, -c, "open('CANARY', 'w')"]}
runtime:
  brief: {at: "00:00"}
"""
ENTRY = '  evil: {harness: command, command: ["true"], until: ["true"]}\n'
MANIFEST_ERROR, ENGINE_ERROR = 3, 10


class Folder:
    """A trusted folder with one agent."""

    def __init__(self, path, capfd):
        self.path, self._capfd = path, capfd
        self.manifest, self.canary = path / "rekindle.yaml", path / "canary"
        self.manifest.write_text(MANIFEST)
        (path / "PROMPT.md").write_text("Ship it.\n")
        trust_checks.accept_folder(path)

    def __call__(self, *words, code=0):
        found = run(list(words))
        out, err = self._capfd.readouterr()
        assert found == code, out + err
        return out, err

    def add(self, text):
        planted = text.replace("PYTHON", sys.executable).replace("CANARY", str(self.canary))
        self.manifest.write_text(self.manifest.read_text() + planted)

    def plant_session(self, agent="evil"):
        """Write a session of an agent into the workspace, as any program there can."""
        transcript = self.path / "projects/p/s.jsonl"
        transcript.parent.mkdir(parents=True)
        message = {"role": "assistant", "id": "m", "content": [{"type": "text", "text": "done"}]}
        line = {
            "type": "assistant",
            "timestamp": clock.read_clock().isoformat(),
            "message": message,
        }
        transcript.write_text(json.dumps(line) + "\n")
        payload = json.dumps({"session_id": "s", "transcript_path": str(transcript)})
        inbox = self.path / ".rekindle/agents" / agent / "run/inbox"
        inbox.mkdir(parents=True)
        now = time.time_ns()
        yesterday = now - 86_400 * 10**9
        records = [
            f"1 hook claude-code SessionStart:startup - - {yesterday} - {payload}",
            f"1 hook claude-code PostToolUse - - {now} - {payload}",
        ]
        (inbox / "planted.seg").write_text("".join(f"\n{record}\n" for record in records))


@pytest.fixture
def folder(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("REKINDLE_TRUST", raising=False)
    return Folder(tmp_path, capfd)


def test_the_summarizer_of_an_agent_that_was_added_is_not_started(folder):
    """The watchdog's `brief --due` refuses an agent that the operator never accepted."""
    folder.add(PLANTED)
    folder.plant_session()
    out, err = folder("brief", "--due", code=MANIFEST_ERROR)
    assert "evil: " in out
    assert "its settings have never been accepted on this host" in err
    assert "rekindle restart evil" in err
    assert not folder.canary.exists()


def test_nor_does_a_command_by_hand_start_it(folder):
    """`brief` and `summarize` do not accept settings either."""
    folder.add(PLANTED)
    folder.plant_session()
    folder("brief", "evil", code=MANIFEST_ERROR)
    folder("summarize", "projects/p/s.jsonl", "--as", "brief", "-a", "evil", code=MANIFEST_ERROR)
    assert not folder.canary.exists()


def test_an_unknown_agent_notifies_no_address_of_the_manifest(folder):
    folder.add(ENTRY + "notify: ['json://127.0.0.1:9/']\n")
    assert trust_checks.find_accepted_notify(config.load_project(folder.path), "evil") == []


def test_trust_in_a_folder_accepts_every_agent_that_it_has(folder):
    """The user was shown all of them."""
    folder.add(ENTRY)
    trust_checks.forget_folder(folder.path)
    trust_checks.accept_folder(folder.path)
    project = config.load_project(folder.path)
    for name in ("trades", "evil"):
        trust_checks.require_accepted(project, name)
        assert trust_checks.accept_settings(project, name) == []


@pytest.mark.parametrize("command", ["run", "restart"])
def test_the_operator_accepts_an_added_agent_and_sees_its_settings(folder, command):
    """An agent that the operator wrote into the manifest needs no other command."""
    folder.add(ENTRY)
    with pytest.raises(UnacceptedError):
        trust_checks.require_accepted(config.load_project(folder.path), "evil")
    _, err = folder(command, "evil")
    assert 'agents.evil.command: added ["true"]' in err
    trust_checks.require_accepted(config.load_project(folder.path), "evil")
    assert "accepted" not in folder(command, "evil")[1]


def test_an_added_agent_that_is_not_accepted_is_noted_by_doctor(folder):
    folder.add(ENTRY)
    assert "its settings have never been accepted on this host" in folder("doctor")[0]


def test_init_accepts_the_agent_that_it_sets_up(folder):
    """Unless the manifest has something that the operator has not accepted: `run` shows that."""
    folder("init", "--agent", "books", "--harness", "command", "--yes")
    trust_checks.require_accepted(config.load_project(folder.path), "books")
    folder.add("notify: ['json://127.0.0.1:9/']\n")
    folder("init", "--agent", "second", "--harness", "command", "--yes")
    with pytest.raises(UnacceptedError):
        trust_checks.require_accepted(config.load_project(folder.path), "second")


def test_init_in_a_new_folder_accepts_what_it_wrote(folder, tmp_path, monkeypatch):
    """The first `run` then prints only what the operator has edited since."""
    (tmp_path / "new").mkdir()
    monkeypatch.chdir(tmp_path / "new")
    (tmp_path / "rekindle.yaml").unlink()
    _, err = folder("init", "--agent", "books", "--harness", "codex", "--yes")
    assert "accepted" not in err
    trust_checks.require_accepted(config.load_project(tmp_path / "new"), "books")


def test_hooks_install_accepts_the_agent_that_it_is_for(folder):
    folder.add("  evil: {harness: claude-code}\n")
    _, err = folder("hooks", "install", "-a", "evil")
    assert 'agents.evil.harness: added "claude-code"' in err
    trust_checks.require_accepted(config.load_project(folder.path), "evil")


@pytest.fixture
def engine():
    """Listen on an address that an agent could have planted, and record connections."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        yield listener


def plant_fleet(folder, engine):
    port = engine.getsockname()[1]
    folder.add(f"fleet: {{address: '127.0.0.1:{port}', api_key: $SECRET, tls: false}}\n")


COMMANDS = [
    ("status",),
    ("stop",),
    ("brief",),
    ("loops",),
    ("answer", "trades", "yes"),
    ("fleet", "remove", "trades"),
    ("fleet", "worker"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_fleet_that_was_added_is_not_connected_to(folder, engine, monkeypatch, command):
    """Its address would be sent the value of any variable that it names."""
    monkeypatch.setenv("SECRET", "s3cret")
    plant_fleet(folder, engine)
    _, err = folder(*command, code=MANIFEST_ERROR)
    assert 'fleet.api_key: added "$SECRET"' in err
    assert "rekindle restart NAME" in err
    assert "s3cret" not in err
    with pytest.raises(BlockingIOError):
        engine.accept()


def test_doctor_reports_it_and_connects_to_nothing(folder, engine):
    plant_fleet(folder, engine)
    assert "✗ fleet: rekindle.yaml: `fleet:`: changed" in folder("doctor", code=8)[0]
    with pytest.raises(BlockingIOError):
        engine.accept()


@pytest.mark.parametrize("command", [("run",), ("restart",), ("fleet", "import", "trades")])
def test_the_commands_that_have_an_agent_run_accept_a_fleet(folder, command):
    """Each prints what it accepts; from then on every command connects."""
    folder.add("fleet: {address: '127.0.0.1:9'}\n")
    _, err = folder(*command, code=ENGINE_ERROR)
    assert 'trades: accepted from rekindle.yaml: fleet.address: added "127.0.0.1:9"' in err
    assert "could not be reached" in folder("status", code=ENGINE_ERROR)[1]
    folder.manifest.write_text(folder.manifest.read_text().replace(":9", ":10"))
    assert 'fleet.address: "127.0.0.1:9" → "127.0.0.1:10"' in folder("status", code=3)[1]
