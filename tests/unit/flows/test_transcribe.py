"""The output of a program without hooks: kept as turns, bounded, and without secrets."""

from types import SimpleNamespace

import pytest

from rekindle.documents.launch import Called, Said, Warned
from rekindle.errors import StoreError
from rekindle.flows import transcribe
from rekindle.flows.transcribe import LEFT_OUT, Transcribe
from rekindle.flows.world import Trouble
from rekindle.harnesses import command
from rekindle.policy.settings import Settings
from rekindle.stores.files.transcripts import TranscriptArchive
from rekindle.thresholds.storage import TRANSCRIBED_EVERY_SECONDS, TRANSCRIBED_TURNS
from rekindle.thresholds.texts import TRANSCRIBED_TURN_CHARACTERS

SESSION = "6f1c0000-0000-4000-8000-000000000001"
LINE = "x" * 99
A_TURN = TRANSCRIBED_TURN_CHARACTERS // 100


class Scene:
    def __init__(self, store, clock):
        store.create("trades")
        self.store, self.clock, self.now, self.told = store, clock, 0.0, []
        self.settings = Settings()
        self.archive = TranscriptArchive(store.folder("trades").transcripts)

    def elapsed(self):
        return self.now

    def tell(self, report):
        self.told.append(report)

    def begin(self, session=SESSION):
        agent = SimpleNamespace(name="trades", harness=command)
        return Transcribe(agent, self, session, "Ship it.")

    def turns(self):
        return [turn for kept in self.archive.parts(SESSION) for turn in self.archive.turns(kept)]

    def texts(self):
        return [(turn.who, turn.text) for turn in self.turns()]


@pytest.fixture
def scene(store, clock):
    return Scene(store, clock)


def test_what_it_was_given_and_printed_are_turns(scene):
    """Lines that come together are one turn; all of them are numbered through, with their time."""
    found = scene.begin()
    for seen in (Said("reading"), Called(call="1", tool="Bash", about="ls"), Warned("odd")):
        found.take(seen)
    scene.now += TRANSCRIBED_EVERY_SECONDS
    found.take(Said("still reading"))
    assert scene.texts()[-1] == ("agent", "reading\n· Bash ls\nstill reading")
    found.take(Said("all done"))
    found.write(is_last=True)
    assert scene.texts()[0] == ("person", "Ship it.")
    assert scene.texts()[2:] == [("agent", "all done")]
    assert [turn.number for turn in scene.turns()] == [1, 2, 3]
    assert all(turn.at for turn in scene.turns())
    [kept] = scene.archive.all()
    assert (kept.harness, kept.cursor.number) == ("command", 4)


def test_another_launch_of_the_session_is_another_part(scene):
    """Nothing that was kept is written over."""
    for word in ("first", "second"):
        found = scene.begin()
        found.take(Said(word))
        found.write(is_last=True)
    said = [text for who, text in scene.texts() if who == "agent"]
    assert said == ["first", "second"]


def test_of_much_output_the_beginning_and_the_end_are_kept(scene, monkeypatch):
    """However fast it prints: neither memory nor disk grows with it."""
    monkeypatch.setattr(transcribe, "TRANSCRIBED_BYTES", 1)
    found = scene.begin()
    for _ in range(A_TURN * TRANSCRIBED_TURNS):
        found.take(Said(LINE))
    assert len(scene.turns()) == TRANSCRIBED_TURNS
    for number in range(3 * A_TURN):
        found.take(Said(f"{number} {LINE}"))
        assert found._size <= TRANSCRIBED_TURN_CHARACTERS + 200
    found.write(is_last=True)
    *_, left_out, last = scene.texts()
    assert left_out == ("cli", LEFT_OUT)
    assert last[1].splitlines()[-1].startswith(f"{3 * A_TURN - 1} ")


def test_no_secret_is_kept_not_even_one_of_many_lines(scene):
    """A private key is redacted as a whole: no turn ends within it."""
    body = [f"{number:02}{'aB3d' * 15}" for number in range(80)]
    frame = "-----{} RSA PRIVATE" + " KEY-----"
    found = scene.begin()
    for line in (frame.format("BEGIN"), *body, frame.format("END"), "after"):
        found.take(Said(line))
        scene.now += TRANSCRIBED_EVERY_SECONDS / 10
    found.write(is_last=True)
    kept = "\n".join(text for _, text in scene.texts())
    assert "after" in kept
    assert not [line for line in body if line in kept]


def test_what_cannot_be_kept_is_reported_once_and_ends_nothing(scene, monkeypatch):
    def refuse(*_):
        raise StoreError("archive", "no space left")

    monkeypatch.setattr(TranscriptArchive, "add", refuse)
    found = scene.begin()
    for _ in range(2):
        found.take(Said("working"))
        found.write()
    assert scene.told == [Trouble("its output is not kept: archive: no space left")]


def test_output_is_a_sign_of_life_now_and_then(scene):
    """Stamped with the time of the last line, and once for each."""
    found = scene.begin()
    found.take(Said("working"))
    printed_at = scene.clock()
    assert found.sign() is None
    scene.now += TRANSCRIBED_EVERY_SECONDS
    assert found.sign().ts == printed_at
    assert found.sign(is_last=True) is None
    found.take(Said("done"))
    assert found.sign(is_last=True).session == SESSION


def test_without_an_archive_nothing_is_kept(scene):
    """`runtime.archive.transcripts: false`; it is active all the same."""
    archive = SimpleNamespace(transcripts=False)
    scene.settings = SimpleNamespace(runtime=SimpleNamespace(archive=archive))
    found = scene.begin()
    found.take(Said("working"))
    found.write(is_last=True)
    assert scene.texts() == []
    assert found.sign(is_last=True) is not None
