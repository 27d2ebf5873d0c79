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
from collections.abc import Callable
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
        self._sending = Lock()
        """Held while a message is sent and not yet recorded."""
        self._ending = Event()

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
            known = self._channels[name] = settings, open_channel(name, settings)
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
            except PhoneError as error:
                failures += 1
                self._note_problem(name, error)
                self._ending.wait(_find_wait(error, failures))
            except Exception as error:  # noqa: BLE001 - the bridge must not stop serving the others
                failures += 1
                self._note_problem(name, error)
                self._ending.wait(PHONE_RETRY_MOST_SECONDS)

    def _receive(self, name: str, channel: PhoneChannel) -> None:
        state = self._forget_after_silence(name)
        for received in channel.receive(state.cursors.get(name, "")):
            self._handle(channel, received)
        self._note_answer(name)

    def _handle(self, channel: PhoneChannel, received: PhoneInput) -> None:
        with self._sending:
            pass  # a press may arrive before the message that has the button is recorded
        try:
            self._handler.handle(channel, received)
        except Exception as error:  # noqa: BLE001 - see below
            # An input that always fails must not keep the next ones from being handled.
            _LOG.exception("an input could not be handled")
            self._tell(f"{received.channel}: an input could not be handled: {error}")
            self._handler.fail(channel, received)
        mark_handled(self._files, received)

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

        if name in self._files.read_state().problems:
            self._tell(f"{name}: works again")
        self._files.change_state(note)

    def _note_problem(self, name: str, error: Exception) -> None:
        hint = error.hint if isinstance(error, RekindleError) else ""
        words = f"{error} (→ {hint})" if hint else str(error)
        if self._files.read_state().problems.get(name) != words:
            self._tell(words)
            self._files.change_state(
                lambda state: msgspec.structs.replace(
                    state, problems=state.problems | {name: words}
                )
            )

    def send_questions(self) -> None:
        """Send the questions that are new, and close the messages of those that are not open."""
        readings = self._projects.read_questions()
        opened = [asked for reading in readings for asked in reading.questions]
        chats = self._files.read_settings().chats
        for planned in message_plan.plan_messages(self._files.read_state(), chats, opened):
            if self._is_reachable(planned.chat.channel):
                with self._sending:
                    self._send(planned)
        paths = {reading.path for reading in readings}
        for code, sent in message_plan.find_closed(self._files.read_state(), opened, paths):
            if self._is_reachable(sent.channel):
                self._close(code, sent)

    def _is_reachable(self, name: str) -> bool:
        return time.monotonic() >= self._not_before.get(name, 0.0)

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
        except PhoneError as error:
            self._back_off(chat.channel, error)
            return
        self._change_question(
            code,
            lambda sent: msgspec.structs.replace(
                sent, messages=(*sent.messages, number), is_due=False
            ),
        )

    def _close(self, code: str, sent: SentQuestion) -> None:
        try:
            why = self._projects.explain_closed(sent.project, sent.agent, sent.question)
        except RekindleError:
            why = "it is over"
        try:
            if channel := self._find_channel(sent.channel):
                for message in sent.messages:
                    channel.close(sent.chat, message, cut_text(f"{sent.question} is closed: {why}"))
        except PhoneError as error:
            if error.retry_after is not None:
                self._back_off(sent.channel, error)
                return
        self._change_question(code, lambda sent: msgspec.structs.replace(sent, is_closed=True))

    def _back_off(self, name: str, error: PhoneError) -> None:
        self._note_problem(name, error)
        self._not_before[name] = time.monotonic() + _find_wait(error, 1)

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


def _find_wait(error: PhoneError, failures: int) -> float:
    """Return how long to wait after the last of several failures in a row."""
    if error.retry_after is None:
        return PHONE_RETRY_MOST_SECONDS
    return max(error.retry_after, min(error.retry_after * failures, PHONE_RETRY_MOST_SECONDS))
