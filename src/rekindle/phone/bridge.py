"""The bridge: sends open questions to phones, and records the answers that come back.

The main thread looks for questions. One thread per service waits for inputs. The bridge can be
killed at any point:

- A question gets its code before it is sent. If the bridge does not know whether the message
  arrived, it sends the question again with the same code.
- An input is handled before its cursor is stored. If it comes again, the agent's log already has
  its answer, and the second one is refused.
"""

import logging
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Event, Lock, Thread

import msgspec

from rekindle.documents.phone.phone_messages import PhoneInput
from rekindle.documents.phone.phone_records import PhoneState, SentQuestion
from rekindle.errors import PhoneError, RekindleError
from rekindle.phone.bridge_projects import BridgeProjects
from rekindle.phone.channels import open_channel
from rekindle.phone.handle_input import InputHandler, mark_handled
from rekindle.phone.run_commands import CommandRunner
from rekindle.policy.phone import message_plan
from rekindle.policy.phone.message_plan import PlannedMessage
from rekindle.policy.phone.question_messages import cut_text, make_question_message
from rekindle.ports import PhoneChannel
from rekindle.stores.folders.phone_files import PhoneFiles
from rekindle.system import clock
from rekindle.thresholds.phone_limits import (
    PHONE_CODE_BYTES,
    PHONE_FORGOTTEN_SECONDS,
    PHONE_RETRY_MOST_SECONDS,
)

_LOG = logging.getLogger("rekindle")
_BRIDGE = "bridge"
"""Name of the problems that are not those of a service."""
_SEPARATOR = " chat "


class Bridge:
    """Carries messages between the trusted projects and the services in the settings."""

    def __init__(
        self,
        files: PhoneFiles,
        projects: BridgeProjects,
        tell: Callable[[str], None] = _LOG.warning,
    ) -> None:
        self._files, self._projects, self._tell = files, projects, tell
        self._handler = InputHandler(files, CommandRunner(projects))
        self._channels: dict[str, tuple[dict[str, str], PhoneChannel]] = {}
        self._threads: dict[str, Thread] = {}
        self._not_before: dict[str, float] = {}
        """For each service, or for one chat of it, when to call it again."""
        self._told: dict[str, str] = {}
        """Problems that were reported, as in the state."""
        self._sending = Lock()
        """Held while a message is sent and not yet recorded."""
        self._ending = Event()

    def work(self) -> None:
        """Receive inputs and send questions. Report a failure, which the next call may not have."""
        try:
            self.start_receiving()
            self.send_questions()
            self._forget_problem(_BRIDGE)
        except Exception as error:  # noqa: BLE001 - such as a full disk or damaged settings
            self._note_problem(_BRIDGE, error)

    def start_receiving(self) -> None:
        """Start a thread for each service that has none yet."""
        for name in self._files.read_settings().channels:
            thread = self._threads.get(name)
            if thread is None or not thread.is_alive():
                thread = Thread(target=self._receive_all, args=(name,), daemon=True, name=name)
                self._threads[name] = thread
                thread.start()

    def end(self) -> None:
        """Make the threads return after the call that they are waiting for."""
        self._ending.set()

    def _find_channel(self, name: str) -> PhoneChannel | None:
        """Return a service with its current settings, or None if it was removed."""
        settings = self._files.read_settings().channels.get(name)
        if settings is None:
            return None
        known = self._channels.get(name)
        if known is None or known[0] != settings:
            known = settings, open_channel(name, settings)
            bot = _name_bot(settings)
            self._files.change_state(lambda state: message_plan.use_bot(state, name, bot))
            self._channels[name] = known
        return known[1]

    def _receive_all(self, name: str) -> None:
        failures = 0
        while not self._ending.is_set():
            try:
                channel = self._find_channel(name)
                if channel is None:
                    return
                self._receive(name, channel)
                failures = 0
            except Exception as error:  # noqa: BLE001 - the bridge must not stop serving the others
                failures += 1
                self._note_problem(name, error)
                self._ending.wait(_find_wait(error, failures))

    def _receive(self, name: str, channel: PhoneChannel) -> None:
        settings, current = self._channels[name]
        state, bot = self._forget_after_silence(name), _name_bot(settings)
        if current is not channel or state.bots.get(name) != bot:
            return  # the settings have changed
        for received in channel.receive(state.cursors.get(name, "")):
            self._handle(channel, received, bot)
        self._note_answer(name)

    def _handle(self, channel: PhoneChannel, received: PhoneInput, bot: str) -> None:
        with self._sending:
            pass  # a press may arrive before the message that has the button is recorded
        try:
            self._handler.handle(channel, received)
        except Exception as error:  # noqa: BLE001 - see below
            # An input that always fails must not keep the next ones from being handled.
            _LOG.exception("an input could not be handled")
            self._tell(f"{received.channel}: an input could not be handled: {error}")
            self._handler.fail(channel, received)
        mark_handled(self._files, received, bot)
        self._not_before.pop(_name_chat(received.channel, received.chat), None)

    def _forget_after_silence(self, name: str) -> PhoneState:
        """Send open questions again if the service may have dropped their answers."""
        now, state = clock.read_clock(), self._files.read_state()
        heard = state.heard.get(name)
        if heard is None or (now - heard).total_seconds() < PHONE_FORGOTTEN_SECONDS:
            return state
        return self._files.change_state(
            lambda current: msgspec.structs.replace(
                message_plan.forget_messages(current, name), heard=current.heard | {name: now}
            )
        )

    def _note_answer(self, name: str) -> None:
        """Record that a service works, at most every few minutes."""
        now = clock.read_clock()

        def note(state: PhoneState) -> PhoneState:
            heard = state.heard.get(name)
            is_recent = heard and 0 <= (now - heard).total_seconds() < PHONE_RETRY_MOST_SECONDS
            if is_recent and name not in state.problems:
                return state
            problems = {key: why for key, why in state.problems.items() if key != name}
            return msgspec.structs.replace(
                state, heard=state.heard | {name: now}, problems=problems
            )

        if self._told.pop(name, "") or name in self._files.read_state().problems:
            self._tell(f"{name}: works again")
        self._files.change_state(note)

    def _note_problem(self, name: str, error: Exception) -> None:
        hint = error.hint if isinstance(error, RekindleError) else ""
        words = f"{error} (→ {hint})" if hint else str(error)
        if self._told.get(name) != words:
            self._told[name] = words
            self._tell(words)
        with suppress(OSError, RekindleError):  # a full disk may be the problem
            self._files.change_state(
                lambda state: msgspec.structs.replace(
                    state, problems=state.problems | {name: words}
                )
            )

    def _forget_problem(self, name: str) -> None:
        self._told.pop(name, None)
        if name in self._files.read_state().problems:
            self._files.change_state(
                lambda state: msgspec.structs.replace(
                    state, problems={key: why for key, why in state.problems.items() if key != name}
                )
            )

    def send_questions(self) -> None:
        """Send the questions that are new, and close the messages of those that are not open."""
        readings = self._projects.read_questions()
        opened = [asked for reading in readings for asked in reading.questions]
        settings = self._files.read_settings()
        for name in settings.channels:
            with suppress(RekindleError):  # the service's thread reports it
                self._find_channel(name)  # another bot makes questions due
        chats = settings.chats
        paired = {_name_chat(chat.channel, chat.chat) for chat in chats}
        for name in self._files.read_state().problems:
            if _SEPARATOR in name and name not in paired:
                self._forget_problem(name)
        for planned in message_plan.plan_messages(self._files.read_state(), chats, opened):
            if self._is_reachable(planned.chat.channel, planned.chat.chat):
                with self._sending:
                    self._send(planned)
        paths = {reading.path for reading in readings}
        for code, sent in message_plan.find_closed(self._files.read_state(), opened, paths):
            if self._is_reachable(sent.channel, sent.chat):
                self._close(code, sent)

    def _is_reachable(self, name: str, chat: str) -> bool:
        waits = (self._not_before.get(key, 0.0) for key in (name, _name_chat(name, chat)))
        return time.monotonic() >= max(waits)

    def _send(self, planned: PlannedMessage) -> None:
        code, chat = planned.code, planned.chat
        if not code:
            code = secrets.token_urlsafe(PHONE_CODE_BYTES)
            self._record(code, message_plan.make_record(planned.asked, chat))
        message = make_question_message(planned.asked, code, chat)
        try:
            channel = self._find_channel(chat.channel)
            if channel is None:
                return
            number = channel.send(chat.chat, message)
        except Exception as error:  # noqa: BLE001 - the other chats and services must get theirs
            self._back_off(chat.channel, chat.chat, error)
            return
        self._change_question(
            code,
            lambda sent: msgspec.structs.replace(
                sent, messages=(*sent.messages, number), is_due=False
            ),
        )
        self._forget_problem(_name_chat(chat.channel, chat.chat))

    def _close(self, code: str, sent: SentQuestion) -> None:
        try:
            why = self._projects.explain_closed(sent.project, sent.agent, sent.question)
        except RekindleError:
            why = "it is over"
        try:
            if channel := self._find_channel(sent.channel):
                for message in sent.messages:
                    channel.close(sent.chat, message, cut_text(f"{sent.question} is closed: {why}"))
        except Exception as error:  # noqa: BLE001 - the other chats and services must get theirs
            if not isinstance(error, PhoneError) or error.retry_after is not None:
                self._back_off(sent.channel, sent.chat, error)
                return
        self._change_question(code, lambda sent: msgspec.structs.replace(sent, is_closed=True))

    def _back_off(self, name: str, chat: str, error: Exception) -> None:
        """Call a service later, or only one chat of it if the service refuses that chat."""
        is_refused = isinstance(error, PhoneError) and error.retry_after is None
        key = _name_chat(name, chat) if is_refused else name
        self._note_problem(key, error)
        self._not_before[key] = time.monotonic() + _find_wait(error, 1)

    def _record(self, code: str, sent: SentQuestion) -> None:
        self._files.change_state(
            lambda state: message_plan.drop_closed(
                msgspec.structs.replace(state, questions=state.questions | {code: sent})
            )
        )

    def _change_question(self, code: str, change: Callable[[SentQuestion], SentQuestion]) -> None:
        self._files.change_state(
            lambda state: msgspec.structs.replace(
                state, questions=state.questions | {code: change(state.questions[code])}
            )
        )


def _name_bot(settings: Mapping[str, str]) -> str:
    """Return the name of the bot or topic, which is unique on its server."""
    return f"{settings.get('bot', '')} {settings.get('server', '')}".strip()


def _name_chat(name: str, chat: str) -> str:
    return f"{name}{_SEPARATOR}{chat}"


def _find_wait(error: Exception, failures: int) -> float:
    """Return how long to wait after the last of several failures in a row."""
    if not isinstance(error, PhoneError) or error.retry_after is None:
        return PHONE_RETRY_MOST_SECONDS
    return max(error.retry_after, min(error.retry_after * failures, PHONE_RETRY_MOST_SECONDS))
