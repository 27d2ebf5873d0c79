"""`rekindle metrics` prints what `status` shows, for one project or for all."""

import os
import stat

import pytest

from rekindle import config
from rekindle.cli.main import run
from rekindle.documents import events
from rekindle.system import clock
from rekindle.system.files import durable_files
from rekindle.wiring.open_store import open_store

MANIFEST = "version: 1\nagents: {trades: {harness: claude-code}, news: {harness: codex}}\n"


@pytest.fixture
def shop(tmp_path, monkeypatch):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "rekindle.yaml").write_text(MANIFEST)
    store = open_store(config.load_project(folder))
    store.create("trades")
    with store.writer("trades") as writer:
        writer.append(
            events.RunStarted(ts=clock.read_clock()),
            events.SpendRecorded(ts=clock.read_clock(), launch="l", tokens=1200, usd=0.5),
        )
    monkeypatch.chdir(folder)
    return folder


def test_it_prints_the_rows_and_counts_of_a_project(shop, capfd):
    assert run(["metrics"]) == 0
    out = capfd.readouterr().out
    assert 'rekindle_agent_info{project="shop",agent="news",harness="codex"} 1\n' in out
    assert 'rekindle_agent_state{project="shop",agent="news",state="stopped"} 1\n' in out
    assert 'rekindle_tokens_total{project="shop",agent="trades"} 1200\n' in out
    assert 'rekindle_cost_usd_total{project="shop",agent="trades"} 0.5\n' in out
    assert 'agent="news"' not in "".join(line for line in out.splitlines() if "_total" in line)


def test_a_file_is_replaced_at_once_and_readable_for_all(shop, capfd, monkeypatch):
    """An exporter that reads every `.prom` file never sees a temporary one."""
    replace, seen = os.replace, []

    def replaced(before, after, **folders):
        seen.append((before, after))
        replace(before, after, **folders)

    monkeypatch.setattr(durable_files.os, "replace", replaced)
    for _ in range(2):
        assert run(["metrics", "--output", "out.prom"]) == 0
    assert capfd.readouterr().out == ""
    assert "rekindle_project_up" in (shop / "out.prom").read_text()
    assert stat.S_IMODE((shop / "out.prom").stat().st_mode) == 0o644
    assert [after for _, after in seen] == ["out.prom"] * 2
    assert not [before for before, _ in seen if before.endswith(".prom")]


def test_a_file_in_a_folder_that_does_not_exist_is_refused(shop, capfd):
    assert run(["metrics", "--output", "none/out.prom"]) == 2
    assert "does not exist" in capfd.readouterr().err


def test_all_projects_include_those_that_cannot_be_read(shop, tmp_path, capfd, monkeypatch):
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "rekindle.yaml").write_text("what is this\n")
    monkeypatch.setattr("rekindle.cli.reports.metrics_command.list_trusted", lambda: [broken, shop])
    monkeypatch.chdir(tmp_path)
    assert run(["metrics", "--all"]) == 0
    said = capfd.readouterr()
    assert 'rekindle_project_up{project="broken"} 0\n' in said.out
    assert 'rekindle_project_up{project="shop"} 1\n' in said.out
    assert 'rekindle_agent_state{project="shop",agent="trades",state="stopped"} 1\n' in said.out
    assert "Note: broken: " in said.err
