"""Text of agents and other people: a terminal shows it and never obeys it."""

import io
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import RELAY
from rekindle.cli import main, output
from rekindle.cli.output import make_safe
from rekindle.documents import events
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from rekindle.system import clock, host
from rekindle.wiring.access.trust_checks import accept_folder
from terminals import run_on_terminal

OSC = "\x1b]0;TITLE\x07"
CSI = "\x1b[8mHIDDEN\x1b[2J"
C1 = "\x9b31mEIGHT"
BIDI = "\u202eDROWKCAB"
HOSTILE = f"do {OSC}{CSI}{C1}\rOVER{BIDI}\x08\x7f it"
MANIFEST = "version: 1\nagents: {trades: {harness: command, command: ['true']}}\n"
OWN_STYLE = re.compile(rb"\x1b\[[0-9;]*m")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Create an agent whose relays, loops and events contain control sequences."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    accept_folder(tmp_path)
    store = FileStore(
        tmp_path, host=host.identify_host(), settings=Settings(), clock=clock.read_clock
    )
    first = RELAY.replace("Write the parser", f"First {HOSTILE}")
    second = RELAY.replace("Write the parser", f"Second {HOSTILE}").replace(
        "- Files over", f"- {HOSTILE} Files over"
    )
    for text in (first, second):
        store.submit("trades", events.RelayProposed(ts=clock.read_clock(), text=text, by="person"))
    now = clock.read_clock()
    store.submit("trades", events.LoopAdded(ts=now, id="parser", text=HOSTILE, added=now.date()))
    transcript = tmp_path / "session.jsonl"
    message = {"role": "user", "content": HOSTILE}
    line = {"type": "user", "timestamp": clock.read_clock().isoformat(), "message": message}
    transcript.write_bytes(msgspec.json.encode(line) + b"\n")
    started = events.SessionStarted(
        ts=clock.read_clock(), session="s1", harness="claude-code", transcript=str(transcript)
    )
    with store.writer("trades") as writer:
        writer.append(started)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "shows"),
    [
        (("relay", "show"), rb"\x1b]0;TITLE\x07"),
        (("relay", "diff"), rb"\x1b[8mHIDDEN\x1b[2J"),
        (("relay", "show", "--json"), rb"\u009b31m"),
        (("relay", "history"), b"TITLE"),
        (("decisions",), b"TITLE"),
        (("loops",), b"TITLE"),
        (("transcript",), b"EIGHT"),
        (("logs",), b"EIGHT"),
        (("brief", "--all"), b"TITLE"),
        (("events",), b"TITLE"),
        (("events", "--json"), b"DROWKCAB"),
        (("status",), b"TITLE"),
        (("brief", "--mechanical"), b"TITLE"),
        (("redact", "session.jsonl"), b"TITLE"),
        (("relay", "diff", OSC), b"TITLE"),
    ],
)
def test_a_terminal_gets_no_sequence_from_text(project, words, shows):
    """Only the styles of the command itself reach the terminal as sequences."""
    _, received = run_on_terminal(*words)
    assert shows in received
    own = OWN_STYLE.sub(b"", received)
    assert b"\x1b" not in own
    assert b"\x1b[8m" not in received
    text = own.decode().replace("\r\n", "\n")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text), text


def test_json_holds_the_exact_text(project, capfd):
    """Programs that need every character use --json."""
    assert main.run(["relay", "show", "--json"]) == 0
    assert f"Second {HOSTILE}" in msgspec.json.decode(capfd.readouterr().out)["text"]


def test_a_relay_without_control_characters_is_piped_exactly(project, capfd):
    """`relay show > FILE` writes the file that `relay set` would accept, Windows lines included."""
    text = RELAY.replace("\n", "\r\n").replace("Write", "Write\tdie ✓ Prüfung")
    (project / "relay.md").write_bytes(text.encode())
    assert main.run(["relay", "set", "relay.md"]) == 0
    capfd.readouterr()
    assert main.run(["relay", "show"]) == 0
    shown = capfd.readouterr().out
    committed = project / ".rekindle/agents/trades/memories/consensus.md"
    assert shown.encode() == committed.read_bytes()
    assert "Write\tdie ✓ Prüfung" in shown


@given(st.text())
def test_safe_text_is_a_fixed_point_without_control_characters(text):
    """Text is escaped once; whatever a terminal shows stays as it is."""
    safe = make_safe(text)
    assert make_safe(safe) == safe
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e]|\r(?!\n)", safe)
    plain = re.sub(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", "", text)
    assert make_safe(plain) == plain


@pytest.fixture
def coloured(monkeypatch):
    """Print a line as at a terminal; return what was printed."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def run(**environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        terminal = Terminal()
        monkeypatch.setattr("sys.stdout", terminal)
        output.echo("✓ started")
        output.print_styled("late", fg="red")
        return terminal.getvalue()

    return run


COLOURED = "\x1b[32m✓\x1b[0m started\n\x1b[31mlate\x1b[0m\n"
PLAIN = "✓ started\nlate\n"


@pytest.mark.parametrize(
    ("environment", "printed"),
    [
        ({}, COLOURED),
        ({"NO_COLOR": "1"}, PLAIN),
        ({"NO_COLOR": ""}, COLOURED),
        ({"TERM": "dumb"}, PLAIN),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, COLOURED),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, PLAIN),
    ],
)
def test_a_terminal_gets_colours_unless_the_user_refuses_them(coloured, environment, printed):
    assert coloured(**environment) == printed


@pytest.mark.parametrize(("value", "printed"), [("", PLAIN), ("0", PLAIN), ("1", COLOURED)])
def test_a_pipe_gets_colours_only_if_the_user_forces_them(monkeypatch, capsys, value, printed):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", value)
    output.echo("✓ started")
    output.print_styled("late", fg="red")
    assert capsys.readouterr().out == printed


def test_a_screen_without_colours_is_still_painted(monkeypatch, capsys):
    """NO_COLOR removes the colours, not the movements of the cursor."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda *_: False)
    output.paint_lines([(output.style_text("busy", fg="green"),)], is_first=True)
    assert capsys.readouterr().out == "\x1b[2J\x1b[Hbusy\x1b[K\n\x1b[J"
