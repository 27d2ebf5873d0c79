"""The output of a program without hooks: kept as turns, bounded, and without secrets."""

from types import SimpleNamespace

import pytest

from rekindle.documents.launches.launch_types import (
    AssistantText,
    ToolCallStarted,
    WarningReport,
)
from rekindle.errors import StoreError
from rekindle.flows.launches import output_transcript
from rekindle.flows.launches.output_transcript import (
    LEFT_OUT,
    OutputTranscriber,
)
from rekindle.flows.supervisor_ports import TroubleReport
from rekindle.harnesses import command_harness
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files.transcript_archive import TranscriptArchive
from rekindle.system.files import durable_files
from rekindle.thresholds.storage import (
    TRANSCRIBED_EVERY_SECONDS,
    TRANSCRIBED_LIVE_SECONDS,
    TRANSCRIBED_TURNS,
)
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
        agent = SimpleNamespace(name="trades", harness=command_harness)
        return OutputTranscriber(agent, self, session, "Ship it.")

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
    for seen in (
        AssistantText("reading"),
        ToolCallStarted(call="1", tool="Bash", about="ls"),
        WarningReport("odd"),
    ):
        found.take(seen)
    scene.now += TRANSCRIBED_EVERY_SECONDS
    found.take(AssistantText("still reading"))
    assert scene.texts()[-1] == ("agent", "reading\n· Bash ls\nstill reading")
    found.take(AssistantText("all done"))
    found.write(is_last=True)
    assert scene.texts()[0] == ("person", "Ship it.")
    assert scene.texts()[2:] == [("agent", "all done")]
    assert [turn.number for turn in scene.turns()] == [1, 2, 3]
    assert all(turn.at for turn in scene.turns())
    [kept] = scene.archive.all()
    assert (kept.harness, kept.cursor.number) == ("command", 4)


def test_readers_see_output_after_a_second_and_it_is_durable_after_thirty(scene, monkeypatch):
    """Nothing is synced before that, and no line has to follow: a tick is enough for both."""
    synced, sync = [], durable_files._sync_file
    monkeypatch.setattr(
        durable_files, "_sync_file", lambda *about: (synced.append(about), sync(*about))
    )
    found = scene.begin()
    found.take(AssistantText("reading"))
    found.show()
    assert scene.texts() == []
    scene.now += TRANSCRIBED_LIVE_SECONDS
    found.show()
    assert scene.texts() == [("person", "Ship it."), ("agent", "reading")]
    found.take(AssistantText("writing"))
    assert scene.texts()[-1] == ("agent", "reading")
    scene.now += TRANSCRIBED_LIVE_SECONDS
    found.show()
    assert scene.texts()[1:] == [("agent", "reading\nwriting")]
    assert synced == []
    scene.now += TRANSCRIBED_EVERY_SECONDS
    found.show()
    assert synced != []
    assert scene.texts()[1:] == [("agent", "reading\nwriting")]
    assert [kept.rest for kept in scene.archive.parts(SESSION)] == [()]
    found.take(AssistantText("done"))
    found.write(is_last=True)
    assert scene.texts()[2:] == [("agent", "done")]
    assert [turn.number for turn in scene.turns()] == [1, 2, 3]


def test_another_launch_of_the_session_is_another_part(scene):
    """Nothing that was kept is written over."""
    for word in ("first", "second"):
        found = scene.begin()
        found.take(AssistantText(word))
        found.write(is_last=True)
    said = [text for who, text in scene.texts() if who == "agent"]
    assert said == ["first", "second"]


def test_of_much_output_the_beginning_and_the_end_are_kept(scene, monkeypatch):
    """Neither memory nor disk grows with the output."""
    monkeypatch.setattr(output_transcript, "TRANSCRIBED_BYTES", 1)
    found = scene.begin()
    for _ in range(A_TURN * TRANSCRIBED_TURNS):
        found.take(AssistantText(LINE))
    assert len(scene.turns()) == TRANSCRIBED_TURNS
    for number in range(3 * A_TURN):
        found.take(AssistantText(f"{number} {LINE}"))
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
        found.take(AssistantText(line))
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
        found.take(AssistantText("working"))
        found.write()
    assert scene.told == [
        TroubleReport("the agent's output could not be archived: archive: no space left")
    ]


def test_output_is_a_sign_of_life_now_and_then(scene):
    """Stamped with the time of the last line, and once for each."""
    found = scene.begin()
    found.take(AssistantText("working"))
    printed_at = scene.clock()
    assert found.sign() is None
    scene.now += TRANSCRIBED_EVERY_SECONDS
    assert found.sign().ts == printed_at
    assert found.sign(is_last=True) is None
    found.take(AssistantText("done"))
    assert found.sign(is_last=True).session == SESSION


def test_without_an_archive_nothing_is_kept(scene):
    """With `runtime.archive.transcripts: false` the agent still counts as active."""
    archive = SimpleNamespace(transcripts=False)
    scene.settings = SimpleNamespace(runtime=SimpleNamespace(archive=archive))
    found = scene.begin()
    found.take(AssistantText("working"))
    found.write(is_last=True)
    assert scene.texts() == []
    assert found.sign(is_last=True) is not None
