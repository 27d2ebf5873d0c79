"""The newest quota of an account is stored once for all agents of a user."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle.documents.agent_ledger import AgentLedger, HourSpending
from rekindle.documents.launches.quota_windows import QuotaReport, QuotaWindow
from rekindle.stores.folders.quota_files import AccountFiles, list_ledgers
from rekindle.system.files import durable_files, user_folder

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SHORT = QuotaWindow("5 hours", 40.0, NOW + timedelta(hours=3), 300)
REPORT = QuotaReport((SHORT,))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(user_folder, "find_user_folder", lambda: tmp_path / "user")
    return tmp_path / "user"


def test_reports_of_one_agent_are_read_by_another():
    assert AccountFiles("codex", "/a").note_windows(REPORT, NOW)
    quota = AccountFiles("codex", "/a").read_windows()
    assert (quota.windows, quota.seen_at, quota.folder) == ((SHORT,), NOW, "/a")


def test_accounts_do_not_share_numbers():
    AccountFiles("codex", "/a").note_windows(REPORT, NOW)
    assert AccountFiles("codex", "/b").read_windows().windows == ()
    assert AccountFiles("claude-code", "/a").read_windows().windows == ()


def test_the_time_of_an_unchanged_report_is_stored_once_a_minute():
    """`status` shows how old the numbers are, and not when they changed."""
    account = AccountFiles("codex", "/a")
    account.note_windows(REPORT, NOW)
    for seconds, seen in ((59, 0), (60, 60), (119, 60), (121, 121)):
        assert not account.note_windows(REPORT, NOW + timedelta(seconds=seconds))
        assert account.read_windows().seen_at == NOW + timedelta(seconds=seen)


def test_small_steps_add_up_to_a_change():
    """Each step is below the percent that counts as a change."""
    account = AccountFiles("codex", "/a")
    account.note_windows(REPORT, NOW)
    changes = [
        account.note_windows(
            QuotaReport((msgspec.structs.replace(SHORT, used_percent=40 + step * 0.4),)),
            NOW + timedelta(minutes=2 * step),
        )
        for step in (1, 2, 3)
    ]
    assert changes == [False, False, True]


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"harness": 3}', b"\xff"])
def test_a_damaged_file_counts_as_missing(text):
    account = AccountFiles("codex", "/a")
    account.note_windows(REPORT, NOW)
    (account.path / "windows.json").write_bytes(text)
    assert account.read_windows().windows == ()
    assert account.note_windows(REPORT, NOW)
    assert account.read_windows().windows == (SHORT,)


def test_a_name_from_a_plugin_stays_inside_the_folder(folder):
    assert AccountFiles("../../x", "/a").path.parent == folder / "quota"


def test_each_agent_has_one_ledger_for_each_account():
    first, second = AccountFiles("codex", "/a"), AccountFiles("codex", "/b")
    agents = [AgentLedger("/p", "x"), AgentLedger("/q", "x", hours={5: HourSpending(1.0, 7)})]
    for ledger in agents:
        first.write_ledger(ledger)
    second.write_ledger(agents[0])
    assert sorted(first.read_ledgers(), key=str) == sorted(agents, key=str)
    assert len(list_ledgers()) == 3
    assert first.read_ledger(AgentLedger("/q", "x", "high")).hours == agents[1].hours
    assert first.read_ledger(AgentLedger("/q", "x", "high")).priority == "high"


def test_a_damaged_ledger_counts_as_missing():
    account = AccountFiles("codex", "/a")
    account.write_ledger(AgentLedger("/p", "x"))
    [path] = (account.path / "agents").iterdir()
    path.write_bytes(b"{")
    assert account.read_ledgers() == list_ledgers() == []
    assert account.read_ledger(AgentLedger("/p", "y")) == AgentLedger("/p", "y")


def test_only_ledgers_that_have_changed_are_read_again(monkeypatch):
    account, read, paths = AccountFiles("codex", "/a"), durable_files.read_bytes, []
    monkeypatch.setattr(
        durable_files, "read_bytes", lambda path: paths.append(path.name[0]) or read(path)
    )
    for _ in range(2):
        for name in "xy":
            account.write_ledger(AgentLedger("/p", name))
        assert len(account.read_ledgers()) == len(account.read_ledgers()) == 2
    account.write_ledger(AgentLedger("/p", "x", hours={5: HourSpending(1.0)}))
    assert [len(each.hours) for each in list_ledgers()] == [1, 0]
    assert paths == [*"xyxyx"]


def test_numbers_that_have_reset_are_not_stored():
    account = AccountFiles("codex", "/a")
    account.note_windows(REPORT, NOW)
    over = QuotaWindow("5 hours", 100.0, NOW - timedelta(hours=1), 300)
    assert not account.note_windows(QuotaReport((over,)), NOW)
    assert account.read_windows().windows == (SHORT,)


def test_an_older_report_does_not_replace_newer_numbers():
    account, full = AccountFiles("codex", "/a"), QuotaWindow("5 hours", 90.0, SHORT.resets_at, 300)
    account.note_windows(QuotaReport((full,), NOW - timedelta(minutes=1)), NOW)
    assert not account.note_windows(QuotaReport((SHORT,), NOW - timedelta(minutes=2)), NOW)
    assert account.read_windows().windows == (full,)
    assert account.note_windows(QuotaReport((SHORT,), NOW), NOW)


def test_a_clock_that_was_set_back_does_not_keep_old_numbers():
    account, full = AccountFiles("codex", "/a"), QuotaWindow("5 hours", 90.0, SHORT.resets_at, 300)
    account.note_windows(REPORT, NOW + timedelta(hours=1))
    assert account.note_windows(QuotaReport((full,), NOW), NOW)


def test_ledgers_without_use_are_removed():
    account = AccountFiles("codex", "/a")
    account.write_ledger(AgentLedger("/p", "x"))
    account.prune(datetime.now(UTC) - timedelta(days=1))
    assert account.read_ledgers()
    account.prune(datetime.now(UTC) + timedelta(days=1))
    assert account.read_ledgers() == []
