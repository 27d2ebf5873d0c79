"""`rekindle traces` sends the spans of a project's agents to a collector."""

import socket
from contextlib import closing

import pytest

from collector import collecting, list_spans
from rekindle import config
from rekindle.cli.main import run
from rekindle.cli.reports import traces_command
from rekindle.documents import events
from rekindle.errors import CollectorError
from rekindle.fleet.hosts.host_folder import HostFolder
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.system import clock
from rekindle.system.trace_collector import HEADERS
from rekindle.wiring.open_store import open_store

MANIFEST = "version: 1\nagents: {trades: {harness: claude-code}}\n"


@pytest.fixture
def shop(tmp_path, monkeypatch):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "rekindle.yaml").write_text(MANIFEST)
    append_run(open_store(config.load_project(folder)))
    monkeypatch.chdir(folder)
    for name in (traces_command.ENDPOINT, HEADERS):
        monkeypatch.delenv(name, raising=False)
    return folder


def append_run(store):
    store.create("trades")
    now = clock.read_clock()
    with store.writer("trades") as writer:
        writer.append(events.RunStarted(ts=now), events.RunEnded(ts=now, why="done"))


def test_it_sends_the_spans_and_counts_them(shop, capfd):
    with collecting() as got:
        assert run(["traces", "--to", got.url]) == 0
    assert capfd.readouterr().out == "✓ sent 1 span\n"
    [span] = list_spans(got.bodies[0])
    assert span.name == "invoke_workflow trades"
    assert got.headers[0]["path"] == "/v1/traces"
    assert got.headers[0]["Content-Type"] == "application/json"


def test_it_reads_the_variables_that_other_exporters_use(shop, monkeypatch):
    with collecting() as got:
        monkeypatch.setenv(traces_command.ENDPOINT, got.url)
        monkeypatch.setenv(HEADERS, "authorization=Bearer%20abc, team=a")
        assert run(["traces"]) == 0
    assert got.headers[0]["Authorization"] == "Bearer abc"
    assert got.headers[0]["Team"] == "a"


@pytest.mark.parametrize("status", [400, 503])
def test_a_collector_that_refuses_is_reported(shop, capfd, status):
    with collecting(status) as got:
        assert run(["traces", "--to", got.url]) == CollectorError.exit_code
    said = capfd.readouterr().err
    assert f"HTTP {status}" in said
    assert "4318" in said


@pytest.mark.parametrize("words", [[], ["--to", "127.0.0.1:4318"], ["--to", "file:///etc/passwd"]])
def test_a_url_is_needed(shop, capfd, words):
    assert run(["traces", *words]) == 2
    assert traces_command.ENDPOINT in capfd.readouterr().err


def test_a_collector_that_hangs_is_given_up(shop, capfd, monkeypatch):
    monkeypatch.setattr("rekindle.system.trace_collector.TRACE_SECONDS", 0.2)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert run(["traces", "--to", url]) == CollectorError.exit_code
    assert "timed out" in capfd.readouterr().err


def test_following_reports_an_outage_once_and_continues_after_it(shop, capfd, monkeypatch):
    turns = []

    def turn(_seconds):
        turns.append(len(got.bodies))
        got.status = 200 if len(turns) == 2 else got.status
        if len(turns) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(traces_command.time, "sleep", turn)
    with collecting(503) as got:
        run(["traces", "--follow", "--to", got.url])
    assert turns == [0, 0, 1]
    assert capfd.readouterr().err.count("waiting: the collector") == 1


def test_it_reads_the_logs_of_a_fleet_worker(shop, tmp_path, capfd):
    root = tmp_path / "root"
    place = HostFolder(root / "default~trades", "trades", "one")
    place.path.mkdir(parents=True)
    place.define(
        AgentDefinition(manifest=MANIFEST, pool="default", heartbeat_seconds=5, project="bank")
    )
    with collecting() as got:
        assert run(["traces", "--to", got.url, "--root", str(root)]) == 0
    assert capfd.readouterr().out == "✓ sent 0 spans\n"
    project = config.make_project(place.path, MANIFEST)
    append_run(open_store(project))
    with collecting() as got:
        assert run(["traces", "--to", got.url, "--root", str(root)]) == 0
    [span] = list_spans(got.bodies[0])
    assert span.name == "invoke_workflow trades"
