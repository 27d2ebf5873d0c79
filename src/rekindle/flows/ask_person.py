"""Questions of one agent to a person, as its supervisor asks them and applies their defaults."""

from collections.abc import Collection, Sequence

import msgspec

from rekindle.documents import event as events
from rekindle.documents.identity import one_line
from rekindle.documents.launch import RefusedCall
from rekindle.documents.row import with_others
from rekindle.flows.world import Agent, CallRefused, World
from rekindle.policy import questions
from rekindle.policy.fold import Projection, fold
from rekindle.policy.questions import RETRY
from rekindle.policy.row import Around, make_row
from rekindle.policy.settings import STOP_SECONDS
from rekindle.system import host
from rekindle.thresholds.texts import ABOUT_CHARACTERS


class AskPerson:
    def __init__(self, agent: Agent, world: World) -> None:
        self._agent, self._world = agent, world

    def with_questions(
        self, known: Projection, new: Sequence[events.AnyEvent]
    ) -> list[events.AnyEvent]:
        """Return the events with a question behind each that needs a person."""
        return questions.with_questions(known, new, self._asking())

    def about_calls(
        self, known: Projection, refused: Sequence[RefusedCall], launch: str
    ) -> list[events.QuestionAsked]:
        """Return the questions about calls that the CLI refused, and notify the operator."""
        asked = questions.ask_about_calls(known, refused, launch, self._asking())
        lines = [f"{_call_of(one)}\n→ {_command_of(one)}" for one in asked]
        if lines:
            self._world.notify("permission", "\n".join(lines))
        return asked

    def tell_refused(
        self,
        refused: Sequence[RefusedCall],
        asked: Sequence[events.QuestionAsked],
        told: Collection[str],
    ) -> None:
        """Report the refused calls that were not reported while they happened."""
        commands = {_call_of(one): _command_of(one) for one in asked}
        for call in refused:
            words = f"{call.tool} {one_line(call.about, ABOUT_CHARACTERS)}"
            command = commands.pop(words, "")
            if words not in told or command:
                self._world.tell(CallRefused(words, command, is_repeated=words in told))

    def about_safe_mode(self) -> None:
        """Ask for a decision about the safe mode that the agent is in, if no question does."""
        if questions.ask_about_safe_mode(self._known(), self._asking()) is None:
            return
        with self._world.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            if asked := questions.ask_about_safe_mode(writer.projection, self._asking()):
                writer.append(asked)

    def apply_defaults(self) -> None:
        """Record the default of each question whose deadline has passed."""
        if not questions.apply_defaults(self._known(), self._world.clock()):
            return
        with self._world.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            # Looked at under the lock: an answer may have come in time.
            writer.append(*questions.apply_defaults(writer.projection, self._world.clock()))

    def continue_unasked(self) -> None:
        """Record that nothing blocks the agent any more, unless an answer came first."""
        with self._world.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            if writer.projection.run.is_safe:
                writer.append(events.RestartAsked(ts=self._world.clock(), once=True))

    def answer_at_terminal(self) -> None:
        """Record that the person at the terminal pressed Enter, if the question takes it."""
        with self._world.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            known, now = writer.projection, self._world.clock()
            asked = questions.blocking(known, now)
            if asked is None or not questions.takes_enter(asked):
                return
            answer = questions.answer_with(known, asked, RETRY, now)
            by, here = host.identify_user(), host.identify()
            writer.append(msgspec.structs.replace(answer, by=by, host=here, origin="terminal"))

    def notify(self, what: str) -> None:
        """Notify the operator of how the agent is now, in the words of its row."""
        known, now = self._known(), self._world.clock()
        # The supervisor that notifies still runs: what it has recorded is what counts.
        row = make_row(known, Around(now=now, budget=self._agent.budget))
        is_asked = questions.blocking(known, now) is not None
        self._world.notify(what, f"{row.reason}\n→ {row.next_step}" if is_asked else row.reason)

    def notify_wait(self, wait: events.WaitStarted) -> None:
        """Notify the operator of a wait that is about to be recorded."""
        known = self._known()
        known = fold(known, [msgspec.structs.replace(wait, seq=known.seq + 1)])
        row = make_row(known, Around(now=self._world.clock(), is_supervised=True))
        self._world.notify(wait.why, row.reason)

    def blocking(self) -> events.QuestionAsked | None:
        """Return the question that the agent waits for; None: there is none."""
        return questions.blocking(self._known(), self._world.clock())

    def _known(self) -> Projection:
        return self._world.store.read(self._agent.name).projection

    def _asking(self) -> questions.Asking:
        seconds = self._world.settings.runtime.questions.deadline
        return questions.Asking(self._world.clock(), seconds, self._agent.budget)


def _call_of(asked: events.QuestionAsked) -> str:
    return asked.text.removeprefix(questions.REFUSED)


def _command_of(asked: events.QuestionAsked) -> str:
    return with_others(questions.command_line(asked), questions.other_answers(asked))
