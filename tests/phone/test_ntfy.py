"""Questions by ntfy: only one-time codes count, because the service does not know senders."""

from datetime import UTC, datetime

import pytest

from phone.ntfy_double import Ntfy
from phone.phone_world import Desk
from rekindle.documents.phone.phone_records import PairedChat, PhoneSettings
from rekindle.errors import PhoneError, UsageError
from rekindle.phone.set_up import set_up_service

NTFY_TOKEN = "tk_" + "a" * 20


@pytest.fixture
def ntfy():
    tokens = {NTFY_TOKEN: {"news": "rw", "replies": "rw"}}
    with Ntfy(tokens, {"replies": "w"}, keepalive=0.05) as double:
        yield double


@pytest.fixture
def asked(ntfy, project):
    """Send one question to a topic."""
    desk = Desk(ntfy)
    settings = {
        "token": NTFY_TOKEN,
        "server": ntfy.url,
        "topic": "news",
        "reply_topic": "replies",
    }
    topic = PairedChat("ntfy", "news", "", "answer", datetime.now(UTC))
    desk.files.change_settings(lambda _: PhoneSettings(channels={"ntfy": settings}, chats=(topic,)))
    project.ask()
    desk.send()
    return desk


def receive(desk):
    desk.bridge._receive("ntfy", desk.bridge._find_channel("ntfy"))


def test_a_button_posts_its_code_to_the_reply_topic(asked, project, ntfy):
    """The phone needs no token, and gets none."""
    assert ntfy.press("news", "Allow once") == 200
    receive(asked)
    assert project.answers() == {"trades-1": ("allow", "ntfy:news", "phone")}
    assert ntfy.messages["news"][-1]["message"] == "Recorded: allow."
    assert NTFY_TOKEN not in str(ntfy.messages)


def test_a_replay_and_a_second_button_have_no_effect(asked, project, ntfy):
    ntfy.press("news", "Deny")
    ntfy.press("news", "Deny")
    ntfy.press("news", "Allow once")
    receive(asked)
    asked.restart()
    asked.files.change_state(lambda state: type(state)(questions=state.questions))
    receive(asked)
    assert project.answers() == {"trades-1": ("deny", "ntfy:news", "phone")}


def test_without_a_code_nothing_counts_and_nothing_is_sent(asked, project, ntfy):
    """Everyone may write to the reply topic."""
    before = len(ntfy.messages["news"])
    for text in ("allow", "/stop trades", "/pair abc", "A" * 16 + ".0", "trades-1 allow", ""):
        ntfy.post(f"{ntfy.url}/replies", text)
    receive(asked)
    assert project.answers() == {}
    assert len(ntfy.messages["news"]) == before


def test_a_code_can_carry_words(asked, project, ntfy):
    project.ask_in_safe_mode("docs", choices=("TEXT", "stop"), default="stop")
    asked.send()
    code = ntfy.find_action("news", "Stop")["body"].partition(".")[0]
    ntfy.post(f"{ntfy.url}/replies", f"{code} use sqlite")
    receive(asked)
    assert project.answers("docs") == {"docs-1": ("use sqlite", "ntfy:news", "phone")}


def test_choices_without_a_button_are_named(asked, project, ntfy):
    """The service shows three buttons."""
    choices = ("MySQL", "PostgreSQL", "SQLite", "DuckDB", "TEXT", "skip")
    project.ask("docs", about="asked", choices=choices, default="skip")
    asked.send()
    message = ntfy.messages["news"][-1]
    assert [each["label"] for each in message["actions"]] == ["MySQL", "PostgreSQL", "SQLite"]
    assert message["message"].endswith("\nOther choices, on the computer: DuckDB, Skip.")
    assert "Reply" not in message["message"]


def test_it_continues_after_the_last_reply(asked, project, ntfy):
    project.ask("docs")
    asked.send()
    ntfy.press("news", "Deny")
    receive(asked)
    asked.restart()
    [first, *_] = ntfy.messages["news"]
    ntfy.post(first["actions"][0]["url"], first["actions"][0]["body"])
    receive(asked)
    assert project.answers() == {"trades-1": ("allow", "ntfy:news", "phone")}
    assert asked.files.read_state().cursors == {"ntfy": ntfy.messages["replies"][-1]["id"]}


@pytest.mark.parametrize(
    ("code", "is_temporary"), [(429, True), (503, True), (403, False), (400, False)]
)
def test_errors_are_explained(asked, project, ntfy, code, is_temporary):
    project.ask("docs")
    ntfy.failures = [code]
    asked.send()
    assert f"ntfy: HTTP {code}" in asked.told[0]
    channel = asked.bridge._find_channel("ntfy")
    ntfy.failures = [code]
    with pytest.raises(PhoneError) as failed:
        channel.acknowledge(next(iter([_Received])), "text")
    assert (failed.value.retry_after is not None) == is_temporary


class _Received:
    chat = "news"


class TestSetup:
    def test_topics_are_random_and_kept(self, ntfy):
        ntfy.everyone = _Everything()
        first = set_up_service("ntfy", NTFY_TOKEN, ntfy.url)
        again = set_up_service("ntfy", NTFY_TOKEN, ntfy.url)
        assert first == again
        topics = {first.settings["topic"], first.settings["reply_topic"]}
        assert len(topics) == 2
        assert {len(topic) for topic in topics} == {len("rekindle-") + 24}

    @pytest.mark.parametrize(
        "server",
        [None, "https://ntfy.sh/", "https://NTFY.sh", "https://ntfy.sh:443", "https://ntfy.sh."],
    )
    def test_the_public_server_needs_a_token(self, server):
        with pytest.raises(UsageError, match="everyone who learns a topic's name"):
            set_up_service("ntfy", "", server)

    def test_a_refused_token_is_not_stored(self, ntfy):
        with pytest.raises(PhoneError, match="HTTP 403"):
            set_up_service("ntfy", "tk_wrong", ntfy.url)
        assert Desk(ntfy).files.read_settings() == PhoneSettings()


class _Everything:
    def get(self, topic, default):
        return "rw"
