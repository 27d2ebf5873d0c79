"""Handle one input from a phone: a press, a reply, a command or a pairing code."""

from contextlib import suppress

import msgspec

from rekindle.documents.phone.phone_messages import PhoneInput, PhoneMessage
from rekindle.documents.phone.phone_records import (
    PairedChat,
    PhoneSettings,
    PhoneState,
    SentQuestion,
)
from rekindle.errors import PhoneError, RekindleError
from rekindle.phone.run_commands import AnsweredQuestion, CommandRunner
from rekindle.policy.phone import chat_rights, pairing, phone_commands, press_verdicts
from rekindle.policy.phone.pairing import PairingResult
from rekindle.policy.phone.phone_commands import PhoneCommand
from rekindle.policy.phone.question_messages import cut_text
from rekindle.ports import PhoneChannel
from rekindle.stores.folders.phone_files import PhoneFiles
from rekindle.system import clock
from rekindle.thresholds.phone_limits import PHONE_AGE_SECONDS

_FORWARDED = "Forwarded messages do not count. Write it yourself."
_LATE = "This came too late, because the bridge was not running. Send it again."
_INTERRUPTED = "The bridge was interrupted. If `rekindle logs` does not show it, send it again."
_UNKNOWN = "Reply to a question, or send /help."
_FAILED = "This failed. `rekindle phone status` on the computer shows more."


class InputHandler:
    """Handles the inputs of all services. Handling an input twice has no further effect."""

    def __init__(self, files: PhoneFiles, runner: CommandRunner) -> None:
        self._files, self._runner = files, runner

    def handle(self, channel: PhoneChannel, received: PhoneInput) -> None:
        """Handle an input, and reply to it. Errors become replies."""
        settings = self._files.read_settings()
        chat = chat_rights.find_chat(settings.chats, received)
        if received.press:
            self._reply(channel, received, self._handle_press(received, chat), chat)
        elif not self._pair(channel, received, settings) and chat is not None:
            for text in self._handle_text(received, chat):
                self._reply(channel, received, text, chat)

    def _handle_press(self, received: PhoneInput, chat: PairedChat | None) -> str:
        verdict = press_verdicts.judge_press(self._files.read_state(), received, chat)
        if chat is None or verdict.question is None:
            return verdict.refused
        return self._answer(verdict.question, verdict.words, chat)

    def _handle_text(self, received: PhoneInput, chat: PairedChat) -> list[str]:
        if received.is_forwarded:
            return [_FORWARDED]
        if sent := press_verdicts.find_replied(self._files.read_state(), received):
            return [self._answer(sent, received.text, chat)]
        command = phone_commands.parse_command(received.text)
        if command is None:
            return [press_verdicts.CHANGED if received.message else _UNKNOWN]
        return self._run(command, received, chat)

    def _run(self, command: PhoneCommand, received: PhoneInput, chat: PairedChat) -> list[str]:
        age = clock.read_clock() - received.at if received.at else None
        if age is not None and age.total_seconds() > PHONE_AGE_SECONDS:
            return [_LATE]
        if phone_commands.COMMANDS[command.name].is_once and not self._begin(received):
            return [_INTERRUPTED]
        try:
            return self._runner.run(command, chat)
        except RekindleError as error:
            return [str(error)]

    def _begin(self, received: PhoneInput) -> bool:
        """Record that a command is about to be run. Return False if it was begun before."""
        begun = self._files.read_state().begun
        if begun.get(received.channel) == received.cursor:
            return False
        self._files.change_state(
            lambda state: msgspec.structs.replace(
                state, begun=state.begun | {received.channel: received.cursor}
            )
        )
        return True

    def _answer(self, sent: SentQuestion, words: str, chat: PairedChat) -> str:
        asked = AnsweredQuestion(sent.project, sent.agent, sent.question, sent.digest)
        try:
            return self._runner.answer(asked, words, chat)
        except RekindleError as error:
            return str(error)

    def _pair(self, channel: PhoneChannel, received: PhoneInput, settings: PhoneSettings) -> bool:
        """Pair a chat if the message contains the right code. Other strangers get no reply.

        A paired chat gets the right of the new code. Return False if this is another message.
        """
        now = clock.read_clock()
        if pairing.judge_pairing(settings, received, now) is None:
            return False
        results: list[PairingResult] = []

        def pair(current: PhoneSettings) -> PhoneSettings:
            # Judge again under the lock: another message may have used the code.
            result = pairing.judge_pairing(current, received, now)
            results.append(result or PairingResult(current, ""))
            return results[-1].settings

        self._files.change_settings(pair)
        if text := results[-1].reply:
            with suppress(PhoneError):
                channel.send(received.chat, PhoneMessage(text))
        return True

    def _reply(
        self, channel: PhoneChannel, received: PhoneInput, text: str, chat: PairedChat | None
    ) -> None:
        if chat is not None and not chat.user and text == press_verdicts.TOO_OLD:
            return  # anybody may write to a reply topic, and would make the bridge send messages
        # The answer is recorded. A reply that is lost must not make the service send it again.
        with suppress(PhoneError):
            channel.acknowledge(received, cut_text(text))

    def fail(self, channel: PhoneChannel, received: PhoneInput) -> None:
        """Tell a paired chat that its input could not be handled."""
        chat = chat_rights.find_chat(self._files.read_settings().chats, received)
        if chat is not None:
            self._reply(channel, received, _FAILED, chat)


def mark_handled(files: PhoneFiles, received: PhoneInput, bot: str) -> None:
    """Store the cursor of an input that was handled, unless another bot is used by now."""

    def mark(state: PhoneState) -> PhoneState:
        if state.bots.get(received.channel) != bot:
            return state
        cursors = state.cursors | {received.channel: received.cursor}
        return msgspec.structs.replace(state, cursors=cursors)

    files.change_state(mark)
