"""`rekindle keep` continues a session that a person started in a terminal."""

from dataclasses import replace

import pytest

from e2e.by_hand import FIXTURES, ONE_IN_CI, ByHand
from loopback.script import Forever, Text

pytestmark = pytest.mark.timeout(300)
OUT_OF_CYCLES = 24
PROMPT = "Count the zebras in the yard."


@pytest.fixture(params=ONE_IN_CI)
def person(request, place):
    return ByHand(request.param, request, place)


def keep(person, *words):
    return person.rekindle.start("keep", "--yes", "--tools", "run", "--cycles", "1", *words)


def assert_continued(person, kept, session):
    """Assert that the one session continues with all its turns."""
    assert kept.wait() == OUT_OF_CYCLES, kept.out + kept.err
    by_hand, resumed, *_ = person.launches()
    assert (by_hand["origin"], by_hand["session"]) == ("person", session)
    assert (resumed["session"], resumed["resumes"]) == (session, True)
    told = [request.text for request in person.model.log.main]
    (text,) = [text for text in told if "A person started this session" in text]
    assert text.index(PROMPT) < text.index("badger") < text.index("A person started")
    assert f"harness: {person.name}" in (person.project / "rekindle.yaml").read_text()
    assert PROMPT in (person.project / "PROMPT.md").read_text()


def test_an_idle_session_is_closed_and_continued(person):
    """The CLI exits, and the same session gets its earlier turns and the rules of the agent."""
    person.model.play(Forever(Text("badger")))
    terminal = person.sit(PROMPT)
    person.wait_for(lambda: "badger" in person.transcripts() or None)
    (session,) = person.sessions()
    kept = keep(person)
    assert_continued(person, kept, session)
    assert terminal.wait() in {0, 143, 256 - 15}
    assert "closed the session" in kept.out


@pytest.mark.torture
@pytest.mark.parametrize("person", FIXTURES, indirect=True)
def test_a_tool_call_is_not_interrupted(person):
    """The command waits for the end of the call and of the turn, and says so."""
    wait = "touch working; while [ ! -e go ]; do sleep 0.1; done; touch finished"
    call = replace(person.shell(wait), said="I will run the tests.")
    person.model.play(call, Forever(Text("badger")))
    person.sit(PROMPT)
    person.wait_for(lambda: (person.project / "working").exists() or None)
    (session,) = person.sessions()
    kept = keep(person)
    person.wait_for(lambda: "waiting until the session's turn is over" in kept.out or None)
    (person.project / "go").touch()
    assert_continued(person, kept, session)
    assert (person.project / "finished").exists()
