"""The Python API over the files of a project."""

import threading

import pytest

import rekindle
from rekindle.documents import events
from rekindle.documents.relay import RelayField
from rekindle.errors import CheckFailedError, NotFoundError, UnknownAgentError
from rekindle.stores.files import FileStore

MANIFEST = """\
version: 1
agents:
  scout: {harness: command, command: ["true"], prompt: task.md}
  other: {harness: command, command: ["true"], prompt: task.md}
"""
RELAY = """\
## What We Did This Cycle
Built the form.

## Key Decisions Made
- Use sqlite

## Next Action
Ship the form.
"""


@pytest.fixture
def home(tmp_path):
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    (tmp_path / "task.md").write_text("Build the form.")
    with rekindle.connect(tmp_path) as opened:
        yield opened


def test_the_public_names_are_a_promise():
    assert rekindle.__all__ == [
        "Agent",
        "AgentSettings",
        "Budget",
        "BulkResult",
        "CodecSettings",
        "DefinitionError",
        "Fleet",
        "FleetAgent",
        "FleetChange",
        "FleetQuestion",
        "FleetQuestions",
        "FleetRow",
        "FleetUsage",
        "Home",
        "Operator",
        "Permissions",
        "RekindleError",
        "Row",
        "TlsSettings",
        "WaitTimeoutError",
        "connect",
        "run",
    ]
    for name in rekindle.__all__:
        assert getattr(rekindle, name).__module__.startswith("rekindle.")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        rekindle.nothing  # noqa: B018 - the access is the test


def test_an_agent_that_never_ran_has_a_row_and_no_folder(home):
    assert [(row.agent, row.state) for row in home.rows()] == [
        ("scout", "stopped"),
        ("other", "stopped"),
    ]
    assert not (home.path / ".rekindle").exists()


def test_an_unknown_agent_is_refused(home):
    with pytest.raises(UnknownAgentError) as refused:
        home.agent("scuot")
    assert "scout" in refused.value.hint


def test_a_changed_manifest_is_read_again(home):
    assert home.agents() == ["scout", "other"]
    text = (home.path / "rekindle.yaml").read_text().replace("other:", "third:")
    (home.path / "rekindle.yaml").write_text(text)
    assert home.agents() == ["scout", "third"]
    assert [row.agent for row in home.rows()] == ["scout", "third"]


def test_a_relay_is_edited_by_field(home):
    scout = home.agent("scout")
    with pytest.raises(NotFoundError):
        scout.relay.text()
    assert scout.relay.set(RELAY)
    with scout.relay.edit() as draft:
        draft.next_action = "Test the form."
        draft[RelayField.METRICS] = "3 tests"
    assert scout.relay.read().next_action == "Test the form."
    assert scout.row().next_action == "Test the form."
    assert [each.by for each in scout.relay.revisions()] == ["person", "person"]
    assert "-Ship the form." in scout.relay.diff()
    assert [entry.decision.text for entry in scout.decisions.list()] == ["Use sqlite"]


def test_an_edit_of_a_relay_that_has_changed_meanwhile_is_refused(home):
    """The text of the refused edit is kept."""
    scout = home.agent("scout")
    scout.relay.set(RELAY)

    def edit_late():
        with scout.relay.edit() as draft:
            scout.relay.set(RELAY.replace("Ship", "Sell"))
            draft.next_action = "Test the form."

    with pytest.raises(CheckFailedError, match="another relay was committed") as refused:
        edit_late()
    assert scout.relay.read().next_action == "Sell the form."
    kept = refused.value.hint.split()[4].rstrip(";")
    assert "Test the form." in (home.store.folder("scout").path / kept).read_text()


def test_an_edit_without_a_change_commits_nothing(home):
    scout = home.agent("scout")
    scout.relay.set(RELAY)
    with scout.relay.edit():
        pass
    assert len(scout.relay.revisions()) == 1


def test_loops_are_opened_and_resolved(home):
    loops = home.agent("scout").loops
    assert loops.open("limit", "Ten or a hundred?").outcome == "opened"
    assert loops.open("limit", "Ten or a hundred?").outcome == "unchanged"
    assert [loop.id for loop in loops.list()] == ["limit"]
    assert loops.resolve("limit", "ten").outcome == "resolved"
    assert loops.list() == ()
    assert [each.reason for each in loops.resolved()] == ["ten"]


def test_events_continue_after_a_number(home):
    scout = home.agent("scout")
    scout.loops.open("a", "first")
    [*before] = scout.events()
    scout.loops.open("b", "second")
    [new] = scout.events(after=before[-1].seq)
    assert isinstance(new, events.LoopAdded)
    assert new.id == "b"


def test_followed_events_arrive(home):
    scout, found = home.agent("scout"), []
    scout.loops.open("a", "first")

    def follow():
        for event in scout.events(after=scout.row().at, follow=True):
            found.append(event)
            return

    thread = threading.Thread(target=follow)
    thread.start()
    scout.loops.open("b", "second")
    thread.join(120)
    assert [event.kind for event in found] == ["loop.added"]


def test_a_wait_ends_with_the_state_or_the_timeout(home):
    scout = home.agent("scout")
    assert scout.wait({"stopped"}).state == "stopped"
    with pytest.raises(TimeoutError) as late:
        scout.wait({"done"}, timeout=0)
    assert isinstance(late.value, rekindle.WaitTimeoutError)


def test_an_untrusted_folder_starts_nothing(home, monkeypatch):
    monkeypatch.delenv("REKINDLE_TRUST")
    with pytest.raises(rekindle.RekindleError) as refused:
        home.agent("scout").start()
    assert refused.value.exit_code == 11


def test_a_message_to_an_agent_without_a_question_is_recorded(home):
    scout = home.agent("scout")
    scout.loops.open("a", "first")
    assert scout.answer("Take the second one, please.") is None
    texts = [event.text for event in scout.events() if isinstance(event, events.PersonAnswered)]
    assert texts == ["Take the second one, please."]


def test_the_store_of_a_project_on_this_host_is_its_files(home):
    assert isinstance(home.store, FileStore)
    assert home.questions() == []
    assert home.morning().project == home.path.name


def test_a_night_and_its_output_are_read_from_the_log(home):
    scout = home.agent("scout")
    scout.answer("Take the second one, please.")
    assert [line.text for line in scout.night().lines] == [
        "you answered: Take the second one, please."
    ]
    assert scout.output()[-1].endswith("you answered: Take the second one, please.")
