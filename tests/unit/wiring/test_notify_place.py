"""Notifications of supervisors, watchdogs and a fleet's hosts name the place of the agent."""

import msgspec
import pytest

from rekindle import config
from rekindle.fleet.agent.host_orders import HostOrder
from rekindle.fleet.commands.define_agent import define_agent
from rekindle.fleet.hosts import activities
from rekindle.policy.settings.runtime_settings import FleetSettings
from rekindle.system import host
from rekindle.system.notifications import Notifier
from rekindle.wiring import supervisor_setup
from rekindle.wiring.open_store import open_store
from rekindle.wiring.starting import background_start


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
    return config.load_project(folder)


def test_a_supervisor_s_notification_names_project_host_severity_and_command(project, sent):
    store = open_store(project)
    notify = supervisor_setup._make_notify(
        project, "trades", Notifier([], store.redaction), lambda _report: None
    )
    notify("auth", "not logged in\n→ rekindle answer trades-1 retry")
    place = f"failure: agent trades, project shop, host {host.name()}"
    words = f"not logged in\n→ rekindle answer trades-1 retry\n{place}"
    assert sent == [("trades: needs you", words, "failure")]


def test_a_notification_of_a_fleet_does_too(project, sent):
    """A definition of an older Rekindle has the namespace in the place of the project."""
    (project.path / "PROMPT.md").write_text("Ship it.\n")
    definition = define_agent(project, FleetSettings(address="127.0.0.1:1"), "trades")
    order = HostOrder("shops/trades", "trades", 1)
    for one in (definition, msgspec.structs.replace(definition, project="")):
        assert activities._send_notification(one, order, "auth", "not logged in", "tower") == []
    words = "not logged in\n→ rekindle status trades\nfailure: agent trades, project {}, host tower"
    assert sent == [
        ("trades: needs you", words.format("shop"), "failure"),
        ("trades: needs you", words.format("shops"), "failure"),
    ]


def test_a_watchdog_s_notification_does_too(project, sent):
    watching = background_start._make_watchdog(project, open_store(project))
    assert watching._ports.notify("trades", "exit 1") == []
    place = f"failure: agent trades, project shop, host {host.name()}"
    words = f"exit 1\n→ rekindle status trades\n{place}"
    assert sent == [("trades: does not come up", words, "failure")]
