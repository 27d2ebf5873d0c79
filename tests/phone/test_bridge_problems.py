"""The bridge keeps serving if a chat, a bot, a service or the computer has a problem."""

import errno

import msgspec
import pytest

from phone.phone_world import ME, STRANGER
from phone.telegram_double import BOT
from rekindle.phone.set_up import offer_pairing, set_up_service
from rekindle.policy.phone.message_plan import use_bot
from rekindle.stores.folders.phone_files import PhoneFiles, find_phone_folder

MINE = f"telegram:{ME}"


def test_a_paired_chat_gets_the_right_of_a_new_code(desk, project, telegram):
    desk.pair(right="operate")
    assert desk.ask_phone("/pair old")[0].startswith("/status")
    code = offer_pairing("read").code
    assert "not valid" in desk.ask_phone("/pair wrong")[0]
    assert desk.ask_phone(f"/pair {code}") == ["Paired: this chat may read. /help lists all."]
    assert [chat.right for chat in desk.files.read_settings().chats] == ["read"]
    assert desk.ask_phone("/stop trades") == ["This chat may only read."]


def test_another_bot_gets_the_open_questions(desk, project, telegram, monkeypatch):
    """The first bot's cursor would make the second one skip its own updates."""
    set_up_service("telegram", telegram.token, telegram.url)
    desk.pair()
    project.ask()
    desk.send()
    telegram.say(ME, "/help")
    desk.receive()
    set_up_service("telegram", telegram.token, telegram.url)
    desk.send()
    assert sum("asks (trades-1)" in text for text in telegram.texts(ME)) == 1
    telegram.token, telegram.updates = "7:other", []
    monkeypatch.setitem(BOT, "username", "other_bot")
    set_up_service("telegram", telegram.token, telegram.url)
    desk.send()
    assert sum("asks (trades-1)" in text for text in telegram.texts(ME)) == 2
    telegram.press(ME, "Deny")
    desk.receive()
    assert telegram.offsets[-1] == 0
    assert project.answers() == {"trades-1": ("deny", MINE, "phone")}


def test_an_input_of_the_first_bot_does_not_move_the_cursor_of_another(desk, telegram):
    """It may arrive while the settings change."""
    desk.pair()
    telegram.say(ME, "/help")
    channel = desk.bridge._find_channel("telegram")
    [received] = channel.receive("")
    desk.files.change_state(lambda state: use_bot(state, "telegram", "@other"))
    desk.bridge._handle(channel, received, telegram.url)
    assert desk.files.read_state().cursors == {}


@pytest.mark.parametrize("code", [400, 403])
def test_a_chat_that_blocks_the_bot_does_not_delay_the_others(desk, project, telegram, code):
    desk.pair()
    desk.pair(STRANGER)
    telegram.refused[ME] = code
    project.ask()
    for _ in range(2):
        desk.send()
    assert len(telegram.texts(STRANGER)) == 1
    [told] = desk.told
    assert f"chat {ME}: HTTP {code}" in told
    assert f"rekindle phone remove {ME}" in told
    assert [method for method, _ in telegram.calls] == ["sendMessage"] * 2
    telegram.refused.clear()
    telegram.say(ME, "/start")
    desk.receive()
    assert list(PhoneFiles().read_state().problems) == [f"telegram chat {ME}"]
    desk.send()
    assert "asks (trades-1)" in telegram.texts(ME)[-1]
    assert PhoneFiles().read_state().problems == {}


def test_a_wrong_token_is_a_problem_of_the_service(desk, project, telegram):
    desk.pair()
    project.ask()
    telegram.failures = [(401, None)]
    desk.send()
    assert list(PhoneFiles().read_state().problems) == ["telegram"]


def test_the_problem_of_a_removed_chat_is_forgotten(desk, project, telegram):
    desk.pair()
    telegram.refused[ME] = 403
    project.ask()
    desk.send()
    desk.files.change_settings(lambda current: msgspec.structs.replace(current, chats=()))
    desk.send()
    assert PhoneFiles().read_state().problems == {}


def test_a_service_without_its_plugin_does_not_stop_the_others(desk, project, telegram):
    desk.pair()
    [paired] = desk.files.read_settings().chats
    gone = msgspec.structs.replace(paired, channel="pager")
    desk.files.change_settings(
        lambda current: msgspec.structs.replace(
            current, channels=current.channels | {"pager": {}}, chats=(gone, paired)
        )
    )
    project.ask()
    desk.send()
    assert len(telegram.texts(ME)) == 1
    assert "there is no phone service 'pager'" in desk.told[0]


def test_damaged_settings_do_not_end_the_bridge(desk, project, telegram, monkeypatch):
    """A failure is told once, and the bridge tries again."""
    monkeypatch.setattr(desk.bridge, "start_receiving", lambda: None)
    desk.pair()
    project.ask()
    path = find_phone_folder() / "settings.json"
    text = path.read_text()
    path.write_text("{")
    for _ in range(2):
        desk.bridge.work()
    assert len(desk.told) == 1
    assert list(PhoneFiles().read_state().problems) == ["bridge"]
    path.write_text(text)
    desk.bridge.work()
    assert len(telegram.texts(ME)) == 1
    assert PhoneFiles().read_state().problems == {}


def test_a_full_disk_does_not_end_the_bridge(desk, project, telegram, monkeypatch):
    monkeypatch.setattr(desk.bridge, "start_receiving", lambda: None)
    desk.pair()
    project.ask()

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("rekindle.stores.folders.phone_files._write", fail)
        for _ in range(2):
            desk.bridge.work()
    assert desk.told == ["[Errno 28] No space left on device"]
    desk.bridge.work()
    assert len(telegram.texts(ME)) == 1
