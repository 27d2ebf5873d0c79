"""`rekindle status` shows the quota of the accounts that the agents use."""

import json
from datetime import timedelta

import pytest

from rekindle.cli import main
from rekindle.documents.launches.quota_windows import QuotaReport, QuotaWindow
from rekindle.stores.folders.quota_files import AccountFiles
from rekindle.system import clock
from rekindle.system.files import user_folder


@pytest.fixture
def show(tmp_path, monkeypatch, capfd):
    """Return the output of `status` in a project with some agents."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setattr(user_folder, "find_user_folder", lambda: tmp_path / "user")
    agents = {"one": "codex", "two": "codex", "plain": "command, command: [cat]"}
    lines = [f"  {name}: {{harness: {harness}}}\n" for name, harness in agents.items()]
    (tmp_path / "rekindle.yaml").write_text("version: 1\nagents:\n" + "".join(lines))

    def run(*words):
        capfd.readouterr()
        assert main.run(["status", *words]) == 0
        return capfd.readouterr().out

    return run


@pytest.fixture
def reset(tmp_path):
    """Store a report of Codex, and return the time of its reset."""
    now = clock.read_clock()
    window = QuotaWindow("5 hours", 42.0, now.replace(microsecond=0) + timedelta(hours=2), 300)
    AccountFiles("codex", str(tmp_path / "codex")).note_windows(QuotaReport((window,)), now)
    return window.resets_at


def test_an_account_without_a_report_is_unknown(show):
    assert "  quota:  unknown: codex has not reported any" in show("one")
    [account] = json.loads(show("--json"))["accounts"]
    assert (account["harness"], account["windows"]) == ("codex", None)


def test_agents_of_one_account_share_a_line(show, reset):
    line = f"quota of codex: 5 hours 42 % used, resets {reset:%Y-%m-%d %H:%M} (reported now)"
    assert show().count(line) == 1


def test_json_has_the_numbers_of_each_account(show, reset):
    [account] = json.loads(show("--json"))["accounts"]
    [window] = account["windows"]
    assert window == {
        "name": "5 hours",
        "used_percent": 42.0,
        "resets_at": f"{reset:%Y-%m-%dT%H:%M:%SZ}",
        "minutes": 300,
    }


def test_a_plain_program_has_no_account(show):
    assert "quota" not in show("plain")


def test_json_has_no_windows_that_have_reset(show, reset, monkeypatch):
    monkeypatch.setattr(clock, "read_clock", lambda: reset)
    [account] = json.loads(show("--json"))["accounts"]
    assert account["windows"] is None


def test_caps_are_shown_with_what_was_spent(show, tmp_path):
    manifest = tmp_path / "rekindle.yaml"
    quota = "quota: {per_day: {usd: 20}, per_month: {tokens: 5000}}\n"
    manifest.write_text(manifest.read_text() + quota)
    line = "caps of the project: $0.00 of $20 today; 0 of 5,000 tokens this month"
    assert line in show()
    assert line in show("one")
