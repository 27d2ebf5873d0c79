"""An unsupervised session is primed once, in time, and never with too much text."""

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as given_settings
from hypothesis import strategies as st

from conftest import RELAY, ManualClock
from rekindle.documents import brief, checkpoint, events, relay
from rekindle.documents.primer import count_utf16_units
from rekindle.errors import StoreError
from rekindle.flows.priming import prime_session as flow
from rekindle.flows.priming.prime_session import SessionPrimer
from rekindle.policy.settings.runtime_settings import (
    HOOK_CHARACTERS,
    SAME_START_SECONDS,
    Settings,
)
from rekindle.stores.files import FileStore

BANNER = "=== RECOVERY DETECTED ==="
SOURCES = ("startup", "resume", "clear", "compact", "fork")


class Scene:
    """A store with a relay, and processes that live or not as the test says."""

    def __init__(self, store, clock):
        self.store, self.clock = store, clock
        self.alive = set()

    def commit(self, text=RELAY):
        with self.store.writer("trades") as writer:
            writer.commit_relay(relay.parse(text), by="person")

    def append(self, *happened):
        with self.store.writer("trades") as writer:
            writer.append(*happened)

    def began(self, session, process="", **more):
        self.append(
            events.SessionStarted(
                ts=self.clock(),
                session=session,
                harness="claude-code",
                source="startup",
                process=process,
                **more,
            )
        )
        self.clock.forward(seconds=1)

    def prime(self, session="new", source="startup", store=None, **more):
        start = events.SessionStarted(
            ts=self.clock(), session=session, harness="claude-code", source=source, **more
        )
        said = []
        SessionPrimer(
            agent="trades",
            store=store or self.store,
            settings=Settings(),
            clock=self.clock,
            is_alive=self.alive.__contains__,
            rules="Never touch main.",
            task="Ship it.",
        ).prime(start, said.append)
        return "".join(said)

    def logged(self, kind):
        return [one for one in self.store.events_since("trades", 0).events if isinstance(one, kind)]


@pytest.fixture
def scene(store, clock):
    made = Scene(store, clock)
    made.commit()
    return made


def test_a_session_is_told_where_the_work_stands(scene):
    """Rules and relay, no banner; what was told and how much is known."""
    text = scene.prime()
    assert text.startswith("Never touch main.")
    assert RELAY.strip() in text
    assert BANNER not in text
    (given_,) = scene.logged(events.PrimerGiven)
    assert (given_.session, given_.source, given_.recovery) == ("new", "startup", False)
    assert given_.characters == len(text)


def test_of_two_hooks_one_is_answered(scene, open_store):
    """Installed twice, they report one start at the same time; a session begins only once."""
    answers = []
    barrier = threading.Barrier(2)

    def asks():
        barrier.wait()
        answers.append(scene.prime(store=open_store()))

    threads = [threading.Thread(target=asks) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(map(bool, answers)) == [False, True]
    assert len(scene.logged(events.PrimerGiven)) == 1
    assert scene.prime(session="another")
    scene.clock.forward(seconds=SAME_START_SECONDS)
    assert scene.prime() == ""


def test_another_beginning_of_the_same_session_is_told(scene):
    """A clear a moment after the start empties the window again."""
    assert scene.prime()
    assert scene.prime(source="clear")
    assert scene.prime(source="clear") == ""


def test_a_busy_writer_does_not_keep_a_session_waiting(scene, open_store, monkeypatch):
    """It is primed anyway, and nothing is claimed: twice is better than never."""
    monkeypatch.setattr(flow, "PRIME_LOCK_SECONDS", 0.02)
    scene.began("killed", "1.1.b")
    with open_store().writer("trades"):
        first, second = scene.prime(), scene.prime()
    assert first == second
    assert BANNER in first
    assert RELAY.strip() in first
    assert scene.logged(events.PrimerGiven) == scene.logged(events.SessionLost) == []


def test_a_store_of_another_host_is_still_read(scene, open_store):
    """A session may be primed without write access."""
    text = scene.prime(store=open_store(host="elsewhere"))
    assert RELAY.strip() in text
    assert scene.logged(events.PrimerGiven) == []


def test_what_could_not_be_said_is_said_to_the_next(scene):
    """Killed between saying and keeping, the notice comes twice; it is never used up in silence."""
    scene.began("one")

    def broken(text):
        raise BrokenPipeError

    start = events.SessionStarted(
        ts=scene.clock(), session="two", harness="claude-code", source="startup"
    )
    priming = SessionPrimer(
        agent="trades",
        store=scene.store,
        settings=Settings(),
        clock=scene.clock,
        is_alive=lambda _: False,
    )
    with pytest.raises(BrokenPipeError):
        priming.prime(start, broken)
    assert scene.logged(events.SessionLost) == scene.logged(events.PrimerGiven) == []
    assert BANNER in scene.prime("three")


ON_A_READ_ONLY_DISK = """
import subprocess, sys
from datetime import UTC, datetime
from pathlib import Path
from rekindle.documents.events import SessionStarted
from rekindle.flows.priming.prime_session import SessionPrimer
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
place = sys.argv[1]
subprocess.run(["mount", "--bind", "-o", "ro", place, place], check=True)
subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
now = datetime.now(UTC)
store = FileStore(Path(place), host="here", settings=Settings(), clock=lambda: now)
start = SessionStarted(ts=now, session="new", harness="claude-code", source="startup")
SessionPrimer(agent="trades", store=store, settings=Settings(), clock=lambda: now,
             is_alive=lambda _: False).prime(start, print)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system read-only needs root")
def test_a_store_that_cannot_be_written_is_still_read(scene, tmp_path):
    """On a read-only disk the session gets the primer with the banner."""
    scene.began("killed", "1.1.b")
    ended = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", ON_A_READ_ONLY_DISK, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(BANNER)
    assert RELAY.strip() in ended.stdout


def test_an_append_that_fails_still_tells(scene, monkeypatch):
    """A disk that fills up between reading and writing costs the claim, not the primer."""

    def full(*_, **__):
        raise StoreError("ops.jsonl", "No space left on device")

    monkeypatch.setattr("rekindle.stores.files.writer.Writer.append", full)
    assert RELAY.strip() in scene.prime()


def test_a_message_that_could_not_be_recorded_is_repeated_and_never_lost(scene, monkeypatch):
    """A failed append leaves the message waiting; a recorded one is given once."""
    scene.append(events.MessageSent(ts=scene.clock(), message="m1", text="Use the blue one."))

    def full(_, *happened):
        if happened:  # The inbox is folded before; it is empty.
            raise StoreError("ops.jsonl", "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("rekindle.stores.files.writer.Writer.append", full)
        assert "Use the blue one." in scene.prime("one")
    assert "Use the blue one." in scene.prime("two")
    assert "Use the blue one." not in scene.prime("three")
    (delivered,) = scene.logged(events.MessageDelivered)
    assert delivered.session == "two"


def test_an_interrupted_session_is_told_of_once(scene):
    """The first new session is told; from then on the interruption counts as told."""
    scene.began("killed", "1.1.b")
    first = scene.prime("second")
    assert first.startswith(BANNER)
    assert "  Task: Write the parser\n  Open loops: 0\n" in first
    assert [one.session for one in scene.logged(events.SessionLost)] == ["killed"]
    assert scene.logged(events.PrimerGiven)[0].recovery
    assert BANNER not in scene.prime("third")


@pytest.mark.parametrize("source", [one for one in SOURCES if one != "startup"])
def test_only_a_new_session_is_told_of_an_interruption(scene, source):
    """A resume, clear, compaction or fork was not interrupted; the next new session is told."""
    scene.began("killed", "1.1.b")
    assert BANNER not in scene.prime("going on", source)
    assert scene.logged(events.SessionLost) == []
    assert BANNER in scene.prime("new")


def test_a_session_whose_process_lives_was_not_interrupted(scene):
    """Two terminals side by side: neither is a crash of the other."""
    scene.began("beside", "1.1.b")
    scene.alive = {"1.1.b"}
    assert BANNER not in scene.prime("one more")
    scene.alive = set()
    assert BANNER in scene.prime("and another")


def test_a_session_is_not_told_of_itself_or_of_what_is_not_a_person_s(scene):
    """Its own start, a launch's session, a visitor's, and one that ended well."""
    scene.began("new", "1.1.b")
    scene.began("launched", "2.2.b", launch="l1")
    scene.began("visitor", "3.3.b", visitor=True)
    scene.began("ended", "4.4.b")
    scene.append(events.SessionEnded(ts=scene.clock(), session="ended"))
    assert BANNER not in scene.prime("new")


def test_without_a_directive_the_last_request_is_the_task(store, clock):
    """Of several lost sessions, the newest with a request counts."""
    scene = Scene(store, clock)
    for session, text in (("first", "count the stars"), ("second", "count the sand")):
        scene.began(session, "1.1.b")
        scene.append(events.PromptSubmitted(ts=scene.clock(), session=session, text=text))
    scene.began("third", "1.1.b")
    assert "  Task: count the sand\n" in scene.prime()
    assert len(scene.logged(events.SessionLost)) == 3


def test_nothing_known_says_so(store, clock):
    """No relay, no request: the notice does not invent a task."""
    scene = Scene(store, clock)
    scene.began("killed", "1.1.b")
    assert "  Task: not known\n" in scene.prime()


def test_a_compacted_session_gets_what_it_must_not_forget(scene):
    """Rules, its own last request, open and resolved loops; not the relay, which it has read."""
    scene.began("own", "1.1.b")
    scene.append(
        events.PromptSubmitted(ts=scene.clock(), session="own", text="count the stars"),
        events.LoopAdded(ts=scene.clock(), id="rate-limit", text="How many an hour?"),
        events.LoopAdded(ts=scene.clock(), id="encoding", text="Which?"),
    )
    scene.clock.forward(seconds=1)
    scene.append(events.LoopResolved(ts=scene.clock(), id="encoding", reason="UTF-8"))
    text = scene.prime("own", "compact")
    for part in (
        "Never touch main.",
        "Last request:\ncount the stars",
        "- rate-limit: How many an hour?",
        "Resolved, do not do this again:\n- encoding: UTF-8",
    ):
        assert text.count(part) == 1, part
    assert "Write the parser" not in text
    launched = scene.prime("launched", "compact", launch="l1")
    assert "Last request:\nShip it." in launched


def test_a_relay_edited_into_nonsense_does_not_keep_the_rest_back(scene):
    """The banner, the rules and the loops are told without it."""
    scene.began("killed", "1.1.b")
    scene.store.folder("trades").document("relay").write_bytes(b"\xff\xfe not a relay \x00")
    text = scene.prime()
    assert BANNER in text
    assert "Never touch main." in text


WILD = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs", "Cc"]),
        st.sampled_from("\U0001d11e\U0001f600\U0010ffff#-`~<>\n\n\t é"),
    ),
    min_size=1,
    max_size=40,
)
LONG = st.builds(lambda text, times: text * times, WILD, st.sampled_from([1, 3, 50, 400]))


@given(directive=LONG, decisions=LONG, other=LONG, loops=st.lists(LONG, max_size=3), known=LONG)
@given_settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking costs minutes of fsync
)
def test_no_primer_is_too_long_for_a_hook(directive, decisions, other, loops, known):
    """With any relay, checkpoint, brief and loops the CLI's limit holds, and the notice stays."""
    with tempfile.TemporaryDirectory() as folder:
        clock = ManualClock()
        store = FileStore(Path(folder), host="here", settings=Settings(), clock=clock)
        scene = Scene(store, clock)
        scene.commit(
            f"## Key Decisions Made\n- {decisions}\n\n## Open Questions\n{other}\n\n"
            f"# Next Action\nBegin with this, now. {directive}\n"
        )
        with store.writer("trades") as writer:
            parts = dict.fromkeys(checkpoint.CheckpointSection, f"- {known}".replace("\n", "\n- "))
            writer.commit_checkpoint(checkpoint.compose(parts), by="summarizer")
            said = dict.fromkeys(brief.BriefLabel, " ".join(known.split()) or "nothing")
            writer.commit_brief(brief.compose("trades", clock().date(), said), by="machine")
        scene.append(
            *(
                events.LoopAdded(ts=clock(), id=f"loop-{number}", text=text)
                for number, text in enumerate(loops)
            )
        )
        scene.began("killed", "1.1.b")
        for source in ("clear", "compact", "startup"):
            text = scene.prime(source=source)
            assert count_utf16_units(text) <= HOOK_CHARACTERS, source
        assert text.startswith(BANNER)
        assert "Begin with this, now." in text.partition("=\n\n")[2]


def test_notes_of_a_session_that_crashed_are_in_the_next_primer(store, clock):
    """No relay contains them yet, and the first session has no relay at all."""
    scene, note = Scene(store, clock), "## Failed Approaches\n- regexes: slow ("
    scene.append(events.ProposalMade(ts=clock(), about="failed approach", text="regexes: slow"))
    assert note in scene.prime()
    clock.forward(hours=1)
    scene.commit()
    assert note in scene.prime(session="later")
    clock.forward(hours=1)
    again = scene.prime(session="later", source="compact")
    assert "Failed, do not try this again:\n- regexes: slow (" in again
