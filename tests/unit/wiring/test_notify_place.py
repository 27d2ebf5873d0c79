"""What is sent says where the agent is: from its supervisor, and from the watchdog."""

import pytest

from rekindle import config
from rekindle.system import host
from rekindle.system.notify import Notifier
from rekindle.wiring import run, watch
from rekindle.wiring.store import open_store


@pytest.fixture
def sent(monkeypatch):
    messages = []

    def send(_notifier, title, body, severity="warning"):
        messages.append((title, body, severity))
        return []

    monkeypatch.setattr(Notifier, "send", send)
    return messages


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    manifest = "version: 1\nagents:\n  trades: {harness: claude-code}\n"
    (folder / "rekindle.yaml").write_text(manifest)
    return config.load(folder)


def test_a_supervisor_s_notification_names_project_host_severity_and_command(project, sent):
    store = open_store(project)
    notify = run._notify(project, "trades", Notifier([], store.redaction), lambda _report: None)
    notify("auth", "not logged in\n→ rekindle answer trades-1 retry")
    place = f"failure: agent trades, project shop, host {host.name()}"
    words = f"not logged in\n→ rekindle answer trades-1 retry\n{place}"
    assert sent == [("trades: needs you", words, "failure")]


def test_a_watchdog_s_notification_does_too(project, sent):
    watching = watch._watching(project, open_store(project))
    assert watching._around.notify("trades", "exit 1") == []
    place = f"failure: agent trades, project shop, host {host.name()}"
    words = f"exit 1\n→ rekindle status trades\n{place}"
    assert sent == [("trades: does not come up", words, "failure")]
