"""`rekindle top` over a recorded night, with keys as a person presses them."""

import asyncio
import time

import msgspec
import pytest
from textual.widgets import DataTable, Static, TabbedContent

from recorded_night import QUESTION, ask_permission, keep_supervised, write_night
from rekindle.api.home import Home
from rekindle.documents import events
from rekindle.documents.screens.agent_row import STATES
from rekindle.errors import RekindleError
from rekindle.system import clock
from rekindle.terminal_screen.action_dialog import ActionDialog
from rekindle.terminal_screen.agent_screen import AgentScreen
from rekindle.terminal_screen.keys_dialog import KeysDialog
from rekindle.terminal_screen.plain_static import PlainStatic
from rekindle.terminal_screen.plain_text import STATE_GLYPHS
from rekindle.terminal_screen.top_app import TopApp

DEADLINE_SECONDS = 120


@pytest.fixture(scope="module")
def seen_folder(tmp_path_factory):
    """Return a night that no test changes."""
    folder = write_night(tmp_path_factory.mktemp("seen") / "shop", clock.read_clock())
    with keep_supervised(folder):
        yield folder


@pytest.fixture
def folder(tmp_path):
    return write_night(tmp_path / "shop", clock.read_clock())


class Person:
    """Presses keys, and reads what the screen shows."""

    def __init__(self, app, pilot):
        self.app, self.pilot = app, pilot

    async def press(self, *keys):
        for key in keys:
            await self.pilot.press(key)

    async def wait(self, is_reached):
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not is_reached():
            assert time.monotonic() < deadline, self.read_all()
            await self.pilot.pause()

    def read(self, selector):
        return str(self.app.screen.query_one(selector, Static).content)

    def read_all(self):
        """Return the text of every line on the screen."""
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())

    def list_agents(self):
        return [row.value for row in self.app.screen_stack[0].query_one(DataTable).rows]

    def list_notices(self):
        return "\n".join(notice.message for notice in self.app._notifications)


def play(folder, acts, *, size=(120, 30), **options):
    """Run the program, and let a person act once the agents are shown."""

    async def run():
        app = TopApp(folder, **options)
        async with app.run_test(size=size, notifications=True) as pilot:
            person = Person(app, pilot)
            await person.wait(lambda: app.reading is not None or app.lost)
            await pilot.pause()
            await acts(person)

    asyncio.run(run())


def list_events(folder, agent, kind):
    with Home(folder) as home:
        return [event for event in home.agent(agent).events() if isinstance(event, kind)]


def test_the_table_shows_each_agent_with_the_state_of_its_row(seen_folder):
    async def acts(person):
        text = person.read_all()
        for row in person.app.reading.rows:
            [line] = [
                line
                for line in text.splitlines()
                if row.agent in line.split() and row.harness in line
            ]
            assert row.state in line
        assert person.list_agents() == ["trades", "docs", "api", "infra", "web"]
        assert "1 needs you" in person.read("#title")
        assert QUESTION in person.read("#strip")
        assert "trades" in person.read("#strip")

    play(seen_folder, acts)


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_every_width_shows_state_agent_and_reason(seen_folder, columns):
    async def acts(person):
        table = person.app.screen.query_one(DataTable)
        assert [key.value for key in table.columns][:2] == ["state", "agent"]
        assert "what, or why" in [key.value for key in table.columns]
        assert table.virtual_size.width <= columns
        assert "? keys" in person.read_all()

    play(seen_folder, acts, size=(columns, 24))


def test_a_filter_hides_other_agents_and_escape_shows_them_again(seen_folder):
    async def acts(person):
        await person.press("slash", *"usage")
        assert person.list_agents() == ["api"]
        await person.press("x", "enter")
        assert person.list_agents() == []
        assert "no agent matches usagex" in person.read("#empty")
        await person.press("escape")
        assert len(person.list_agents()) == 5

    play(seen_folder, acts)


@pytest.mark.parametrize(("key", "agents"), [("exclamation_mark", ["trades"]), ("at", ["docs"])])
def test_a_key_shows_only_agents_in_one_state(seen_folder, key, agents):
    async def acts(person):
        await person.press(key)
        assert person.list_agents() == agents
        await person.press(key)
        assert len(person.list_agents()) == 5

    play(seen_folder, acts)


def test_peek_shows_the_relay_of_the_selected_agent(seen_folder):
    async def acts(person):
        await person.press("space")
        await person.wait(lambda: "Write to the order book" in person.read("#peek"))
        assert "rekindle answer trades-2" in person.read("#peek")
        await person.press("down")
        await person.wait(lambda: "docs has no relay yet" in person.read("#peek"))

    play(seen_folder, acts)


def test_the_keys_are_listed(seen_folder):
    async def acts(person):
        await person.press("question_mark")
        assert isinstance(person.app.screen, KeysDialog)
        text = person.read_all()
        for words in ("restart fresh", "hand off", "filter", "quit"):
            assert words in text
        assert "Cursor" not in text

    play(seen_folder, acts)


def test_an_answer_is_confirmed_and_recorded_in_the_log(folder):
    async def acts(person):
        await person.press("a")
        assert isinstance(person.app.screen, ActionDialog)
        assert QUESTION in person.read("#context")
        await person.press("enter")
        assert isinstance(person.app.screen, ActionDialog)
        await person.press(*"ten")
        assert person.read("#command") == "$ rekindle answer trades-2 ten"
        await person.press("enter")
        await person.wait(lambda: "the answer is recorded" in person.list_notices())
        await person.wait(lambda: person.app.reading.find_row("trades").state != "needs you")

    play(folder, acts)
    answer = list_events(folder, "trades", events.QuestionAnswered)[-1]
    assert (answer.question, answer.text, answer.origin) == ("trades-2", "ten", "top")


@pytest.mark.parametrize(("key", "choice"), [("y", "allow"), ("n", "deny")])
def test_a_permission_is_decided_with_one_key(folder, key, choice):
    """Also if the agent has asked something else since then, and works on."""
    ask_permission(folder, "docs")
    ask_permission(folder, "trades")

    async def acts(person):
        assert "git push origin main" in person.read("#strip")
        await person.press("down", key)
        assert "git push origin main" in person.read("#context")
        verb = {"allow": "approve", "deny": "deny"}[choice]
        assert person.read("#command") == f"$ rekindle {verb} docs-1"
        await person.press("enter")
        await person.wait(lambda: "the answer is recorded" in person.list_notices())
        await person.wait(lambda: "docs" not in person.app.reading.asked)
        await person.press("up", key)
        assert person.read("#command") == f"$ rekindle {verb} trades-3"

    play(folder, acts)
    (answer,) = list_events(folder, "docs", events.QuestionAnswered)
    assert (answer.question, answer.choice, answer.origin) == ("docs-1", choice, "top")


def test_yes_without_a_question_is_refused(folder):
    async def acts(person):
        await person.press("down", "y")
        assert not isinstance(person.app.screen, ActionDialog)
        assert "docs: no question takes yes or no" in person.list_notices()

    play(folder, acts)


def test_a_message_is_sent_to_an_agent(folder):
    async def acts(person):
        await person.press("t", *"ten")
        assert person.read("#command") == "$ rekindle tell trades ten"
        await person.press("enter")
        await person.wait(lambda: "the message will arrive" in person.list_notices())

    play(folder, acts)
    (sent,) = list_events(folder, "trades", events.MessageSent)
    assert (sent.text, sent.origin) == ("ten", "top")


def test_escape_cancels_an_action(folder):
    async def acts(person):
        await person.press("s")
        assert person.read("#command") == "$ rekindle stop trades"
        await person.press("escape")
        assert not person.list_notices()

    play(folder, acts)
    assert len(list_events(folder, "trades", events.DesiredSet)) == 1


def test_stop_is_asked_once_and_recorded(folder):
    async def acts(person):
        await person.press("s", "enter")
        await person.wait(lambda: "stays stopped" in person.list_notices())

    play(folder, acts)
    assert list_events(folder, "trades", events.DesiredSet)[-1].desired == "stopped"


def test_a_refused_action_shows_its_hint(folder):
    async def acts(person):
        await person.press("h", "enter")
        await person.wait(lambda: "nothing to hand off" in person.list_notices())
        assert "→ `rekindle status trades`" in person.list_notices()

    play(folder, acts)


def test_a_higher_cap_is_recorded_and_a_wrong_one_is_explained(folder):
    async def acts(person):
        await person.press("down", "b", *"much", "enter")
        await person.wait(lambda: "is not a number" in person.list_notices())
        await person.press("b", *"12")
        assert "~$0.90/5" in person.read("#context")
        assert person.read("#command") == "$ rekindle budget docs --usd 12"
        await person.press("enter")
        await person.wait(lambda: person.app.reading.find_row("docs").spend.usd_cap == 12)

    play(folder, acts)


def test_read_only_hides_all_actions(seen_folder):
    async def acts(person):
        assert "answer" not in person.read_all()
        for key in "ayntsrfhb":
            await person.press(key)
            assert not isinstance(person.app.screen, ActionDialog)
        await person.press("enter")
        await person.press("3", "x")
        assert isinstance(person.app.screen, AgentScreen)

    play(seen_folder, acts, read_only=True)


def test_the_agent_screen_tells_the_night(seen_folder):
    async def acts(person):
        await person.press("enter")
        await person.wait(lambda: "crashed: ended by SIGKILL" in person.read("#night-text"))
        night = person.read("#night-text")
        for words in ("session  ", "✕", "▲", "◆", "max 71%", "$3.10/10", "usage limit"):
            assert words in night
        relay = person.read("#relay-text")
        assert "Prepared the limit of updates" in relay
        assert "+- Count updates for each client" in person.read("#diff-text")
        assert "Reject unknown fields" in person.read("#decisions-text")

    play(seen_folder, acts)


def test_keys_open_each_tab_and_the_output_is_shown(seen_folder):
    async def acts(person):
        await person.press("enter")
        for key, name in zip("2345", ("relay", "loops", "decisions", "output"), strict=True):
            await person.press(key)
            await person.wait(lambda: person.app.screen.query_one(TabbedContent).active == name)  # noqa: B023 - awaited in the loop
        await person.wait(lambda: "POST /profile" in person.read("#output-text"))
        await person.press("escape")
        assert not isinstance(person.app.screen, AgentScreen)

    play(seen_folder, acts)


def test_a_loop_is_resolved_with_a_reason(folder):
    async def acts(person):
        await person.press("enter")
        await person.wait(lambda: "rate-limit" in str(person.app.screen._loops))
        await person.press("3", "x")
        await person.wait(lambda: isinstance(person.app.screen, ActionDialog))
        assert "Choose the limit of updates" in person.read("#context")
        await person.press(*"ten", "enter")
        await person.wait(lambda: "rate-limit: resolved" in person.list_notices())

    play(folder, acts)
    resolved = list_events(folder, "trades", events.LoopResolved)[-1]
    assert (resolved.id, resolved.reason) == ("rate-limit", "ten")


def test_a_failed_reading_is_shown_and_the_old_rows_stay(seen_folder, monkeypatch):
    async def acts(person):
        def fail():
            raise RekindleError("the disk is gone")

        with monkeypatch.context() as changed:
            changed.setattr(person.app._reader, "read", fail)
            await person.app.read()
            assert "no updates since" in person.read("#lost")
            assert "the disk is gone" in person.read("#lost")
            assert person.app.screen.has_class("stale")
            assert len(person.list_agents()) == 5
            await person.press("s")
            assert not isinstance(person.app.screen, ActionDialog)
        await person.app.read()
        assert not person.app.screen.has_class("stale")

    play(seen_folder, acts)


def test_a_second_reading_is_skipped_while_one_is_under_way(seen_folder, monkeypatch):
    async def acts(person):
        started = []
        monkeypatch.setattr(person.app, "run_worker", lambda work: started.append(work.close()))
        person.app._is_reading = False
        person.app.request_reading()
        person.app.request_reading()
        assert len(started) == 1

    play(seen_folder, acts)


def test_only_changes_are_painted(seen_folder, monkeypatch):
    async def acts(person):
        screen, changed = person.app.screen, []
        table = screen.query_one(DataTable)
        monkeypatch.setattr(table, "update_cell", lambda *cell: changed.append(cell[:2]))
        monkeypatch.setattr(table, "clear", lambda **_: changed.append("all"))
        monkeypatch.setattr(PlainStatic, "update", lambda self, _: changed.append(self.id))
        screen.show_reading()
        assert changed == []
        rows = person.app.reading.rows
        row = msgspec.structs.replace(rows[1], open_loops=7)
        person.app.reading = person.app.reading._replace(rows=(rows[0], row, *rows[2:]))
        screen.show_reading()
        assert changed == [("docs", "loops")]

    play(seen_folder, acts)


def test_text_of_an_agent_is_shown_as_it_is(folder):
    """Neither markup nor escape sequences in a question have an effect."""
    question = (
        "[bold red]Delete[/] [@click=app.quit]it[/]? \x1b[31m\x1b]0;title\x07\u202eyes[/nothing]"
    )
    shown = "[bold red]Delete[/] [@click=app.quit]it[/]? yes[/nothing]"

    async def acts(person):
        reading = person.app.reading
        asked = msgspec.structs.replace(reading.questions["trades"], text=question)
        rows = tuple(
            msgspec.structs.replace(row, reason=question, next_action=question)
            for row in reading.rows
        )
        reading = reading._replace(rows=rows, asked={"trades": [asked]})
        person.app._reader.read = lambda: reading
        await person.app.read()
        await person.pilot.pause()
        assert shown in person.read("#strip")
        assert shown[:20] in person.read_all()
        await person.press("space", "a")
        assert shown in person.read("#context")
        assert shown in person.read_all()
        await person.press(*"[b]", "escape", "enter")
        await person.wait(lambda: shown in person.read("#summary"))
        assert "\x1b" not in person.read_all()

    play(folder, acts)


def test_a_refusal_with_markup_is_shown_as_it_is(folder, monkeypatch):
    def refuse(_self):
        raise RekindleError("[bold]no[/] [/x]", hint="[b]try[/]")

    monkeypatch.setattr("rekindle.api.agent.Agent.hand_off", refuse)

    async def acts(person):
        await person.press("h", "enter")
        await person.wait(lambda: "[bold]no[/] [/x]" in person.read_all())

    play(folder, acts)


def test_a_folder_without_a_project_is_refused(tmp_path):
    with pytest.raises(RekindleError):
        TopApp(tmp_path)


def test_every_state_has_a_glyph():
    assert set(STATE_GLYPHS) == set(STATES)
