"""An account is a CLI with one configuration folder, which the agent's variables name."""

import subprocess
from datetime import timedelta

import msgspec
import pytest

from rekindle import config
from rekindle.documents.launches.quota_windows import QuotaReport, QuotaWindow
from rekindle.documents.launches.route import Route
from rekindle.policy.supervision.budget import RunSpending
from rekindle.system import clock as system_clock
from rekindle.system.files import user_folder
from rekindle.system.processes import launch_processes
from rekindle.thresholds.quota_limits import TURN_PERCENT, WORKING_SECONDS
from rekindle.wiring.agent_environment import make_environment
from rekindle.wiring.agent_quota import AgentQuota, find_config_folder

ROUTE = Route("codex")
WORK = Route("codex", "work")
HOME = Route("codex", "home")


@pytest.fixture
def project(tmp_path):
    (tmp_path / "rekindle.yaml").write_text(
        "version: 1\n"
        "agents:\n"
        "  own: {harness: codex}\n"
        "  work: {harness: codex, env: {CODEX_HOME: $WORK_FOLDER}}\n"
        "  plain: {harness: command, command: [cat]}\n"
    )
    return config.load_project(tmp_path)


def test_the_folder_follows_the_variable_of_the_cli(project, tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "link"))
    monkeypatch.setenv("WORK_FOLDER", str(tmp_path / "work"))
    assert find_config_folder(project, "own", Route("codex")) == str(tmp_path / "real")
    assert find_config_folder(project, "work", Route("codex")) == str(tmp_path / "work")


def test_the_folder_is_that_of_the_launch(project, monkeypatch):
    """A launch expands only a value that is nothing but a variable."""
    monkeypatch.setenv("WORK_FOLDER", "/work")
    entry = msgspec.structs.replace(
        project.manifest.agents["work"], env={"CODEX_HOME": "/x/$WORK_FOLDER"}
    )
    manifest = msgspec.structs.replace(project.manifest, agents={"work": entry})
    changed = msgspec.structs.replace(project, manifest=manifest)
    folder = find_config_folder(changed, "work", Route("codex"))
    assert folder == make_environment(changed, "work").variables["CODEX_HOME"] == "/x/$WORK_FOLDER"


def test_the_folder_is_in_the_home_by_default(project, tmp_path, monkeypatch):
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_config_folder(project, "own", Route("codex")) == str(tmp_path / ".codex")


def test_the_cli_of_a_reviewer_uses_its_own_folder(project, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    assert find_config_folder(project, "own", Route("claude-code")) == str(tmp_path / "claude")


def test_a_plain_program_has_no_folder(project):
    assert find_config_folder(project, "plain", Route("command")) == ""


@pytest.fixture
def quota(tmp_path, monkeypatch, clock):
    """Return a function that makes an agent's quota, in a project with this `quota:`."""
    monkeypatch.setattr(system_clock, "read_clock", clock)
    monkeypatch.setattr(user_folder, "find_user_folder", lambda: tmp_path / "user")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("TZ", "UTC")

    def make(name="a", keys="", own="", place="project"):
        folder = tmp_path / place
        folder.mkdir(exist_ok=True)
        agents = "a: {harness: codex, accounts: [work, home]}, b: {harness: codex}"
        accounts = ", ".join(
            f"{each}: {{harness: codex, config_dir: {tmp_path / each}{own}}}"
            for each in ("work", "home")
        )
        (folder / "rekindle.yaml").write_text(
            f"version: 1\nagents: {{{agents}, c: {{harness: codex}}}}\n"
            f"accounts: {{{accounts}}}\n{keys}"
        )
        return AgentQuota(lambda: config.load_project(folder), name)

    return make


def week(clock, used):
    return QuotaReport((QuotaWindow("7 days", used, clock() + timedelta(days=3), 10080),))


def spend(quota, usd, route=ROUTE, run="1", since=0.0):
    """Note what a run has spent, which had spent `since` when it was noted first."""
    for total in (since, usd):
        quota.note_spending(route, run, RunSpending(usd=total), is_working=False)


def count(quota, *routes):
    """Return what counts for the account of each route."""
    ledgers = [quota.find_account(route).read_ledgers() for route in routes]
    return [sum(hour.usd for each in all_ for hour in each.hours.values()) for all_ in ledgers]


def test_an_agent_is_held_at_the_reserve(quota, clock):
    paced = quota("b", "quota: {reserve: 20%}\n")
    assert paced.find_hold(ROUTE) is None
    paced.note_quota(ROUTE, week(clock, 81.0))
    assert paced.find_hold(ROUTE).until == clock() + timedelta(days=3)
    assert paced.find_stop(ROUTE).words.startswith("7 days 81 % used")


def test_a_launch_that_would_have_to_stop_at_once_does_not_start(quota, clock):
    """Its first turn needs room above the reserve, as those of the agents that work."""
    agent = quota("b", "quota: {reserve: 20%}\n")
    agent.note_quota(ROUTE, week(clock, 80.0 - TURN_PERCENT))
    assert agent.find_hold(ROUTE) is not None


def test_without_a_quota_nothing_is_held_or_written(quota, clock, tmp_path):
    free = quota("b")
    free.note_quota(ROUTE, week(clock, 99.0))
    spend(free, 100.0)
    assert free.find_hold(ROUTE) is free.find_stop(ROUTE) is None
    assert not [*(tmp_path / "user").rglob("agents")]


def test_agents_of_a_project_share_its_cap(quota, clock):
    keys = "quota: {per_day: {usd: 20}}\n"
    first, second = quota("a", keys), quota("b", keys)
    spend(first, 12.0, WORK)
    spend(second, 7.0)
    assert second.find_stop(ROUTE) is None
    clock.forward(seconds=120)
    spend(second, 8.0)
    assert first.find_stop(WORK).words == "cap of the project for today: $20.00 of $20 spent"
    assert quota("b", keys, place="other").find_stop(ROUTE) is None


def test_an_account_has_its_own_reserve_and_caps_over_all_projects(quota, clock):
    own = ", quota: {reserve: 50%, per_month: {usd: 9}}"
    first, second = quota("a", own=own), quota("a", own=own, place="other")
    first.note_quota(WORK, week(clock, 60.0))
    assert second.find_stop(WORK).words.endswith("in reserve (50 %)")
    spend(first, 5.0, WORK)
    spend(second, 4.0, WORK)
    assert "cap of the account for this month" in first.find_stop(WORK).words


def test_work_on_one_account_does_not_count_on_another(quota, clock):
    """A run's total includes the work on all of its accounts."""
    keys = "quota: {per_day: {usd: 20}}\n"
    agent = quota("a", keys)
    spend(agent, 8.0, WORK)
    clock.forward(seconds=120)
    spend(agent, 11.0, HOME)
    assert count(agent, WORK, HOME) == [8.0, 3.0]


def test_what_a_run_spent_before_it_had_a_quota_does_not_count(quota):
    agent = quota("b", "quota: {per_month: {usd: 20}}\n")
    spend(agent, 53.0, since=50.0)
    assert count(agent, ROUTE) == [3.0]
    assert agent.find_stop(ROUTE) is None


def test_work_on_an_account_without_a_quota_does_not_count_on_another(quota, tmp_path):
    text = (
        "version: 1\nagents: {a: {harness: codex, accounts: [work, home]}}\naccounts:\n"
        f"  work: {{harness: codex, config_dir: {tmp_path / 'work'}}}\n"
        f"  home: {{harness: codex, config_dir: {tmp_path / 'home'}, "
        "quota: {per_day: {usd: 5}}}\n"
    )
    quota()
    (tmp_path / "project/rekindle.yaml").write_text(text)
    agent = AgentQuota(lambda: config.load_project(tmp_path / "project"), "a")
    for total, route in ((6.0, WORK), (7.0, HOME), (13.0, WORK), (14.0, HOME)):
        spend(agent, total, route)
    assert count(agent, HOME) == [2.0]
    assert agent.find_stop(HOME) is None


def test_a_new_run_is_noted_at_once_though_it_has_spent_as_much_as_the_last(quota):
    agent = quota("b", "quota: {per_day: {usd: 20}}\n")
    spend(agent, 0.0, run="1")
    spend(agent, 0.0, run="2")
    spend(agent, 4.0, run="2", since=4.0)
    assert count(agent, ROUTE) == [4.0]


def test_spending_is_noted_after_the_clock_was_set_back(quota, clock):
    agent = quota("b", "quota: {per_day: {usd: 20}}\n")
    for total in (0.0, 1.0):
        agent.note_spending(ROUTE, "1", RunSpending(usd=total), is_working=True)
        clock.forward(hours=-3)
    assert count(agent, ROUTE) == [1.0]


def test_an_agent_that_waits_for_its_share_tells_the_others(quota, clock):
    keys = "quota: {reserve: 20%}\n"
    ahead, behind = quota("b", keys), quota("c", keys)
    account = ahead.find_account(ROUTE)
    spend(ahead, 9.0)
    spend(behind, 1.0)
    ahead.note_quota(ROUTE, week(clock, 70.0))
    ahead.note_hold(ROUTE, ahead.find_hold(ROUTE))
    assert behind.find_hold(ROUTE) is None
    assert {each.agent: each.waits for each in account.read_ledgers()} == {"b": True, "c": False}


def test_a_look_at_a_route_tells_the_others_nothing(quota, clock):
    keys = "quota: {reserve: 20%}\n"
    ahead, behind = quota("b", keys), quota("c", keys)
    spend(ahead, 9.0)
    spend(behind, 1.0)
    ahead.note_quota(ROUTE, week(clock, 70.0))
    assert ahead.find_hold(ROUTE).is_turn
    assert not any(each.waits for each in ahead.find_account(ROUTE).read_ledgers())


def test_an_agent_does_not_wait_for_agents_that_have_ended(quota, clock):
    keys = "quota: {reserve: 20%}\n"
    one, other = quota("b", keys), quota("c", keys)
    spend(one, 9.0)
    spend(other, 1.0)
    one.note_quota(ROUTE, week(clock, 77.0))
    assert "other agents" in one.find_stop(ROUTE).words
    other.leave()
    assert one.find_hold(ROUTE) is None
    assert other.find_account(ROUTE).read_ledgers()[1].hours
    clock.forward(seconds=120)
    spend(other, 1.1)
    assert one.find_hold(ROUTE) is not None


def test_a_supervisor_that_was_killed_loses_its_share(quota, clock, monkeypatch):
    """A supervisor that is only idle keeps it."""
    keys = "quota: {reserve: 20%}\n"
    one, other = quota("b", keys), quota("c", keys)
    spend(one, 9.0)
    supervisor = subprocess.Popen(["sleep", "600"])
    try:
        process = launch_processes.identify(supervisor.pid)
        monkeypatch.setattr(launch_processes, "identify_self", lambda: process)
        spend(other, 1.0)
        one.note_quota(ROUTE, week(clock, 77.0))
        clock.forward(seconds=WORKING_SECONDS + 1)
        assert "other agents" in one.find_stop(ROUTE).words
    finally:
        supervisor.kill()
        supervisor.wait()
    assert one.find_stop(ROUTE) is one.find_hold(ROUTE) is None
    assert other.find_account(ROUTE).read_ledgers()[1].hours


def test_the_share_of_a_killed_supervisor_is_kept_while_it_is_restarted(quota, clock, monkeypatch):
    keys = "quota: {reserve: 20%}\n"
    one, other = quota("b", keys), quota("c", keys)
    spend(one, 9.0)
    monkeypatch.setattr(launch_processes, "identify_self", lambda: "1.0.gone.0")
    spend(other, 1.0)
    one.note_quota(ROUTE, week(clock, 77.0))
    assert "other agents" in one.find_stop(ROUTE).words


def test_an_accepted_change_of_an_account_applies_at_once(quota, clock, tmp_path):
    agent = quota("a", "quota: {reserve: 20%}\n")
    before = agent.find_account(WORK)
    manifest = tmp_path / "project" / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace(str(tmp_path / "work"), str(tmp_path / "new")))
    agent.note_quota(WORK, week(clock, 50.0))
    assert before.read_windows().windows == ()
    assert agent.find_account(WORK).read_windows().folder == str(tmp_path / "new")
