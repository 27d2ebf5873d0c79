"""The bridge with a double of Telegram: commands, failures of the service, and kills."""

import threading

import msgspec
import pytest

from phone.phone_world import ME
from phone.telegram_double import Telegram
from rekindle.api.home import Home
from rekindle.api.trusted_homes import TrustedHomes
from rekindle.errors import EngineError, PhoneError
from rekindle.phone import bridge as bridges
from rekindle.phone import bridge_projects
from rekindle.phone.bridge_projects import BridgeProjects
from rekindle.policy.operator.answers import make_answer
from rekindle.stores.folders.phone_files import PhoneFiles
from rekindle.wiring.access import trust_checks

MINE = f"telegram:{ME}"


class KilledError(BaseException):
    """Ends the bridge at one point, as a kill does."""


def test_commands_cover_all_projects(desk, project, add_project, telegram):
    desk.pair(right="operate")
    other = add_project("books")
    project.ask()
    other.ask()
    other.ask("docs")
    status = "\n".join(desk.ask_phone("/status"))
    assert "shop/trades: stopped" in status
    assert "books/docs: stopped" in status
    [questions] = desk.ask_phone("/questions")
    assert len(questions.splitlines()) == 3
    morning = desk.ask_phone("/morning")
    assert [text.split(" ")[0] for text in morning] == ["books", "books", "shop", "shop"]
    assert max(map(len, morning)) <= 700
    assert "/stop AGENT" in desk.ask_phone("/help")[0]
    assert "Several projects" in desk.ask_phone("/answer trades-1 allow")[0]
    assert desk.ask_phone("/answer books/trades-1 allow") == ["Recorded: allow."]
    assert desk.ask_phone("/answer docs-1 deny") == ["Recorded: deny."]
    assert desk.ask_phone("/answer docs-1 deny") == ["There is no open question docs-1."]
    assert desk.ask_phone("/answer docs-1") == ["Send /answer ID TEXT."]
    assert "is not one of the choices" in desk.ask_phone("/answer trades-1 maybe")[0]
    assert other.answers() == {"trades-1": ("allow", MINE, "phone")}
    assert project.answers() == {}


def test_many_questions_need_several_messages(desk, project, telegram):
    desk.pair()
    asked = [project.ask(text=f"{number}: {'long ' * 20}end") for number in range(12)]
    replies = desk.ask_phone("/questions")
    assert max(map(len, replies)) <= 700
    lines = [line for reply in replies for line in reply.splitlines()]
    assert [line.split(" ")[1] for line in lines] == [f"{each}:" for each in asked]
    assert all(line.endswith("end") for line in lines)


def test_stop_records_the_stop(desk, project, add_project, telegram):
    desk.pair(right="operate")
    add_project("books")
    assert desk.ask_phone("/stop trades") == ["Several agents: books/trades, shop/trades."]
    assert desk.ask_phone("/stop nothing") == ["There is no agent nothing."]
    assert desk.ask_phone("/stop") == ["Send /stop AGENT."]
    assert desk.ask_phone("/stop shop/trades") == ["shop/trades was not running. It stays stopped."]
    assert project.store.read("trades").projection.run.desired == "stopped"


def test_a_message_is_sent_to_an_agent(desk, project, telegram):
    desk.pair(right="operate")
    [reply] = desk.ask_phone("/tell trades use sqlite,\nplease")
    assert reply.startswith("Recorded. shop/trades gets it when you start it")
    assert "1 to" in desk.ask_phone("/tell trades")[0]
    assert desk.ask_phone("/tell nothing x") == ["There is no agent nothing."]
    [sent] = project.store.read("trades").projection.waiting_messages
    assert sent.text == "use sqlite,\nplease"
    assert (sent.by, sent.origin) == (MINE, "phone")


def test_an_answer_that_starts_an_agent_says_how(desk, project, telegram):
    desk.pair()
    project.ask_in_safe_mode(choices=("TEXT", "retry", "stop"), default="stop")
    desk.send()
    telegram.press(ME, "Retry")
    desk.receive()
    [toast] = telegram.toasts()
    assert toast == "Recorded: retry. Start the agent on the computer: rekindle up trades"


def test_a_message_is_closed_when_its_question_is(desk, project, telegram):
    """An answer on the computer removes the buttons on the phone."""
    desk.pair()
    project.ask()
    desk.send()
    with project.store.writer("trades") as writer:
        question = writer.projection.questions["trades-1"]
        answer = make_answer(writer.projection, question, "deny", question.ts)
        writer.append(msgspec.structs.replace(answer, by="ann"))
    desk.send()
    [message] = telegram.messages.values()
    assert message["text"].startswith("trades-1 is closed: it was answered by ann")
    assert "reply_markup" not in message
    calls = len(telegram.calls)
    desk.send()
    assert len(telegram.calls) == calls


def test_an_unreadable_project_keeps_its_questions(desk, project, telegram):
    desk.pair()
    project.ask()
    desk.send()
    manifest = project.path / "rekindle.yaml"
    text = manifest.read_text()
    manifest.write_text("agents: [")
    desk.send()
    desk.restart()
    desk.send()
    manifest.write_text(text)
    desk.restart()
    desk.send()
    assert [method for method, _ in telegram.calls] == ["sendMessage"]
    telegram.press(ME, "Allow once")
    desk.receive()
    assert project.answers() == {"trades-1": ("allow", MINE, "phone")}


class TestFleets:
    @pytest.fixture
    def rows(self, project, monkeypatch):
        """Move the project to a fleet, and return the calls that read it."""
        with (project.path / "rekindle.yaml").open("a") as manifest:
            manifest.write("fleet: {address: '127.0.0.1:9', tls: false}\n")
        trust_checks.accept_folder(project.path)
        calls = []

        def read_rows(home):
            calls.append(home)
            raise EngineError("unreachable", "no answer", hint="try again")

        monkeypatch.setattr(Home, "rows", read_rows)
        return calls

    def test_one_that_cannot_be_reached_is_not_tried_at_once_again(self, rows, monkeypatch):
        """Each attempt delays the questions of all other projects."""
        projects = BridgeProjects(TrustedHomes())
        assert projects.read_questions() == projects.read_questions() == []
        assert len(rows) == 1
        monkeypatch.setattr(bridge_projects, "PHONE_FLEET_SECONDS", 0.0)
        assert projects.read_questions() == []
        assert len(rows) == 2

    def test_it_is_read_even_shortly_after_the_host_has_started(self, rows, monkeypatch):
        monkeypatch.setattr(bridge_projects, "PHONE_FLEET_SECONDS", float("inf"))
        assert BridgeProjects(TrustedHomes()).read_questions() == []
        assert len(rows) == 1


class TestFailures:
    def test_a_busy_service_is_not_called_before_its_time(self, desk, project, telegram):
        desk.pair()
        project.ask()
        telegram.failures = [(429, {"retry_after": 100})]
        desk.send()
        desk.send()
        assert telegram.messages == {}
        assert len(telegram.failures) == 0
        assert "HTTP 429" in desk.told[0]
        desk.bridge._not_before.clear()
        desk.send()
        assert len(telegram.messages) == 1

    @pytest.mark.parametrize("failure", [(502, None), (500, None), (401, None)])
    def test_a_failed_message_is_sent_later_with_the_same_code(
        self, desk, project, telegram, failure
    ):
        desk.pair()
        project.ask()
        telegram.failures = [failure]
        desk.send()
        [code] = desk.files.read_state().questions
        desk.restart()
        desk.send()
        assert telegram.find(ME, "Deny")[1] == f"{code}.1"

    def test_a_service_that_is_gone_is_reported_and_found_again(self, desk, project, telegram):
        desk.pair()
        project.ask()
        port = telegram.port
        telegram.close()
        desk.send()
        assert "no answer: ConnectionRefusedError" in desk.told[0]
        assert "telegram" in PhoneFiles().read_state().problems
        with Telegram(port=port) as again:
            desk.double = again
            desk.bridge._not_before.clear()
            desk.send()
            again.press(ME, "Allow once")
            desk.receive()
        assert project.answers() == {"trades-1": ("allow", MINE, "phone")}
        assert PhoneFiles().read_state().problems == {}
        assert desk.told[-1] == "telegram: works again"

    @pytest.mark.parametrize(
        ("retry_after", "failures", "seconds"),
        [(None, 1, 120.0), (2.0, 1, 2.0), (2.0, 3, 6.0), (2.0, 70, 120.0), (300.0, 5, 300.0)],
    )
    def test_waits_grow_but_never_ignore_the_service(self, retry_after, failures, seconds):
        error = PhoneError("telegram", "x", retry_after=retry_after)
        assert bridges._find_wait(error, failures) == seconds

    def test_after_a_weekend_open_questions_are_asked_again(self, desk, project, telegram):
        """Telegram keeps presses for a day. The old message still counts."""
        desk.pair()
        project.ask()
        desk.send()
        old, _ = telegram.find(ME, "Allow once")
        telegram.say(ME, "/help")
        desk.receive()
        desk.files.change_state(
            lambda state: msgspec.structs.replace(
                state, heard={name: at.replace(year=2020) for name, at in state.heard.items()}
            )
        )
        telegram.press(ME, "Allow once", message=old)
        desk.restart()
        desk.send()
        desk.receive()
        assert project.answers() == {"trades-1": ("allow", MINE, "phone")}
        assert sum("asks (trades-1)" in text for text in telegram.texts(ME)) == 1
        assert all(sent.is_due for sent in desk.files.read_state().questions.values())


class TestKills:
    """The bridge is killed at each point of sending and receiving."""

    def test_while_it_sends(self, desk, project, telegram, monkeypatch):
        """The message arrived, but the bridge does not know it: only the newest copy counts."""
        desk.pair()
        project.ask()
        change = PhoneFiles.change_state

        def kill_after_sending(files, changing):
            if telegram.messages:
                raise KilledError
            return change(files, changing)

        monkeypatch.setattr(PhoneFiles, "change_state", kill_after_sending)
        with pytest.raises(KilledError):
            desk.send()
        monkeypatch.undo()
        first, _ = telegram.find(ME, "Allow once")
        desk.restart()
        desk.send()
        second, _ = telegram.find(ME, "Allow once")
        assert second != first
        telegram.press(ME, "Allow once", message=first)
        desk.receive()
        assert project.answers() == {}
        telegram.press(ME, "Deny", message=second)
        telegram.press(ME, "Allow once", message=second)
        desk.receive()
        assert project.answers() == {"trades-1": ("deny", MINE, "phone")}

    @pytest.mark.parametrize("point", ["before", "after"])
    def test_while_it_handles_a_press(self, desk, project, telegram, monkeypatch, point):
        """Before the answer is recorded, or after that but before the cursor is stored."""
        desk.pair()
        project.ask()
        desk.send()
        telegram.press(ME, "Allow once")
        target = "rekindle.phone.run_commands.record_answer"
        if point == "after":
            target = "rekindle.phone.bridge.mark_handled"

        def kill(*_, **__):
            raise KilledError

        monkeypatch.setattr(target, kill)
        with pytest.raises(KilledError):
            desk.receive()
        monkeypatch.undo()
        desk.restart()
        telegram.press(ME, "Deny")
        desk.receive()
        assert project.answers() == {"trades-1": ("allow", MINE, "phone")}
        assert len(telegram.toasts()) == (3 if point == "after" else 2)
        assert telegram.toasts()[-1].startswith("Too late")

    def test_while_it_sends_a_message_to_an_agent(self, desk, project, telegram, monkeypatch):
        """The person is told to check, because a message must not arrive twice."""
        desk.pair(right="operate")
        telegram.say(ME, "/tell trades use sqlite")

        def kill(*_, **__):
            raise KilledError

        monkeypatch.setattr("rekindle.phone.bridge.mark_handled", kill)
        with pytest.raises(KilledError):
            desk.receive()
        monkeypatch.undo()
        desk.restart()
        desk.receive()
        assert "interrupted" in telegram.texts(ME)[-1]
        assert len(project.store.read("trades").projection.waiting_messages) == 1


def test_updates_are_confirmed_once(desk, project, telegram):
    """After a week without updates, Telegram's ids may be lower than the last cursor."""
    desk.pair()
    for _ in range(2):
        telegram.say(ME, "/help")
        desk.receive()
    threading.Timer(0.05, telegram.say, (ME, "/help")).start()
    channel = desk.bridge._find_channel("telegram")
    cursor = desk.files.read_state().cursors["telegram"]
    telegram.updates.clear()
    list(channel.receive(cursor))
    assert telegram.offsets[-1] == int(cursor)
    list(channel.receive(cursor))
    assert telegram.offsets[-1] == 0


def test_the_threads_serve_a_whole_conversation(desk, project, telegram):
    """Sending and receiving run at the same time, and end together."""
    desk.pair()
    for _ in range(3):
        project.ask()
    desk.bridge.start_receiving()
    desk.bridge.start_receiving()
    desk.send()
    for message in list(telegram.messages.values()):
        telegram.press(ME, "Allow once", message=message, times=2)
    telegram.wait_until_handled()
    desk.bridge.end()
    telegram.say(ME, "/help")
    for thread in desk.bridge._threads.values():
        thread.join(120)
        assert not thread.is_alive()
    assert {choice for choice, *_ in project.answers().values()} == {"allow"}
    assert len(project.answers()) == 3
