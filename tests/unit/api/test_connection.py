"""Programs whose project changes, or whose input is wrong."""

import shutil
import threading
from datetime import UTC, datetime

import pytest

import rekindle
from rekindle import config
from rekindle.documents.events import PersonAnswered
from rekindle.errors import ManifestError, NotFoundError, UnknownAgentError, UsageError

MANIFEST = """\
version: 1
agents: {scout: {harness: command, command: ["true"], prompt: task.md}}
"""


@pytest.fixture
def home(tmp_path):
    """A project in a folder of another project."""
    inner = tmp_path / "inner"
    inner.mkdir()
    for folder in (tmp_path, inner):
        (folder / "rekindle.yaml").write_text(MANIFEST)
        (folder / "task.md").write_text("Build the form.")
    with rekindle.connect(inner) as opened:
        yield opened


def test_a_project_without_its_manifest_is_not_replaced_by_the_one_above(home):
    (home.path / "rekindle.yaml").unlink()
    with pytest.raises(ManifestError, match="is gone from") as refused:
        home.rows()
    assert "restore it" in refused.value.hint


def test_a_manifest_that_changes_while_it_is_read_is_read_again(home, monkeypatch):
    path, load = home.path / "rekindle.yaml", config.load_project

    def load_late(folder):
        project = load(folder)
        path.write_text(MANIFEST.replace("scout", "later"))
        return project

    monkeypatch.setattr(config, "load_project", load_late)
    path.write_text(MANIFEST.replace("scout", "early"))
    assert home.agents() == ["early"]
    assert home.agents() == ["later"]


def test_threads_share_one_store(home):
    together, stores = threading.Barrier(4), []

    def read():
        together.wait(120)
        stores.append(home.store)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(set(map(id, stores))) == 1


def test_an_unknown_name_is_refused_by_all_readers(home):
    with pytest.raises(UnknownAgentError):
        home.rows(["scuot"])
    with pytest.raises(UnknownAgentError):
        home.search("form", agents=["scuot"])
    with pytest.raises(NotFoundError, match="no loop with id 'limit'"):
        home.agent("scout").loops.history("limit")
    scout = home.agent("scout")
    (home.path / "rekindle.yaml").write_text(MANIFEST.replace("scout", "other"))
    for read in (scout.row, scout.night):
        with pytest.raises(UnknownAgentError):
            read()


def test_the_words_of_a_program_are_cleaned_like_those_of_a_command(home):
    scout = home.agent("scout")
    scout.answer(" Take\u202e the \x1b[31msecond\x1b[0m one.\n")
    [said] = [event for event in scout.events() if isinstance(event, PersonAnswered)]
    assert said.text == "Take the second one."
    with pytest.raises(UsageError, match="this one has 0"):
        scout.answer(" \u200b\n")


def test_a_time_without_a_zone_is_local(home):
    scout = home.agent("scout")
    scout.answer("Take the second one.")
    assert scout.night(datetime(2026, 1, 1)).lines  # noqa: DTZ001 - the zone is the test
    assert not scout.night(until=datetime(2026, 1, 1, tzinfo=UTC)).lines


def test_forged_events_are_not_returned(home):
    scout = home.agent("scout")
    scout.answer("Take the second one.")
    [*before] = scout.events()
    log = home.store.folder("scout").log
    with log.open("ab") as file:
        file.write(log.read_bytes().splitlines(keepends=True)[-1])
    assert list(scout.events()) == before


def test_an_agent_can_be_stopped_while_the_manifest_is_broken(home):
    scout = home.agent("scout")
    scout.answer("Take the second one.")
    (home.path / "rekindle.yaml").write_text("agents: [")
    assert not scout.stop()
    (home.path / "rekindle.yaml").write_text(MANIFEST)
    assert home.store.read("scout").projection.run.desired == "stopped"
    shutil.rmtree(home.path)
    with pytest.raises(ManifestError):
        scout.stop()
    assert not home.path.exists()


def test_the_environment_can_trust_a_folder(home, monkeypatch):
    monkeypatch.setenv("REKINDLE_TRUST", "1")
    assert home.agent("scout").restart() == "new"


@pytest.mark.parametrize(
    ("given", "words", "hint"),
    [
        ({"fleet": ""}, "fleet=''", 'fleet="127.0.0.1:7233"'),
        ({"fleet": None}, "fleet=None", 'fleet="127.0.0.1:7233"'),
        ({"fleet": 7233}, "fleet=7233", 'fleet="127.0.0.1:7233"'),
        ({"folder": ".", "fleet": "127.0.0.1:1"}, "no folder", "leave out"),
        ({"operator": "bob"}, "operator='bob'", "rekindle.Operator"),
        ({"fleet": "127.0.0.1:1", "operator": "bob"}, "operator='bob'", "rekindle.Operator"),
        ({"fleat": "127.0.0.1:1"}, "fleat", "did you mean `fleet`?"),
        ({"team": "blue"}, "only a connection to a fleet", 'fleet="HOST:PORT"'),
    ],
)
def test_a_wrong_argument_of_a_connection_is_named(home, monkeypatch, given, words, hint):
    monkeypatch.chdir(home.path)
    with pytest.raises(UsageError, match=words) as refused:
        rekindle.connect(**given)
    assert hint in refused.value.hint


def test_the_current_folder_is_the_default(home, monkeypatch):
    monkeypatch.chdir(home.path)
    with rekindle.connect() as opened:
        assert opened.path == home.path
