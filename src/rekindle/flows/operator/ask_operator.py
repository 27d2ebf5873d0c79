"""Ask the operator questions, and apply the default answers when they time out."""

from collections.abc import Collection, Sequence

import msgspec

from rekindle.documents import events
from rekindle.documents.launches.launch_types import RefusedCall
from rekindle.documents.screens.agent_row import render_command
from rekindle.flows.supervisor_ports import AgentSpec, RefusedCallReport, SupervisorPorts
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.exits import stop_reasons
from rekindle.policy.exits.stop_reasons import RETRY, StopReason
from rekindle.policy.operator import answers, questions
from rekindle.policy.operator.build_row import RowInputs, build_row
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import STOP_SECONDS
from rekindle.system import host
from rekindle.thresholds.texts import ABOUT_CHARACTERS


class QuestionAsker:
    def __init__(self, agent: AgentSpec, world: SupervisorPorts) -> None:
        self._agent, self._ports = agent, world

    def with_questions(
        self, projection: Projection, new: Sequence[events.AnyEvent]
    ) -> list[events.AnyEvent]:
        """Return the events, with a question after each event that needs the operator."""
        return questions.add_questions(projection, new, self.make_question_terms())

    def ask_about_refused_calls(
        self, projection: Projection, refused: Sequence[RefusedCall], launch: str
    ) -> list[events.QuestionAsked]:
        """Return questions about refused calls, and notify the operator."""
        new_questions = questions.ask_about_calls(
            projection, refused, launch, self.make_question_terms()
        )
        if new_questions:
            # Reserve the number first, so that no other question gets the same id after a crash.
            self._ports.store.keep_question_number(self._agent.name, new_questions[-1].number)
            self.notify_calls(new_questions)
        return new_questions

    def notify_calls(self, new_questions: Sequence[events.QuestionAsked]) -> None:
        """Notify the operator of questions about calls."""
        lines = [
            f"{_find_call(question)}\n→ {_find_command(question)}" for question in new_questions
        ]
        if lines:
            self._ports.notify("permission", "\n".join(lines))

    def ask_proposed_questions(self, projection: Projection) -> None:
        """Ask what the agent proposed to ask, and notify the operator."""
        terms = self.make_question_terms()
        if not questions.ask_proposed(projection, terms):
            return
        with self._ports.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            new_questions = questions.ask_proposed(writer.projection, terms)
            if not new_questions:
                return
            # Reserve the number first, so that no other question gets the same id after a crash.
            self._ports.store.keep_question_number(self._agent.name, new_questions[-1].number)
            writer.append(*new_questions)
        lines = [f"{question.text}\n→ {_find_command(question)}" for question in new_questions]
        self._ports.notify("question", "\n".join(lines))

    def report_refused_calls(
        self,
        refused: Sequence[RefusedCall],
        new_questions: Sequence[events.QuestionAsked],
        reported_words: Collection[str],
    ) -> None:
        """Report the refused calls that were not already reported during the launch."""
        commands = {_find_call(question): _find_command(question) for question in new_questions}
        for call in refused:
            words = f"{call.tool} {to_one_line(call.about, ABOUT_CHARACTERS)}"
            command = commands.pop(words, "")
            if words not in reported_words or command:
                self._ports.tell(
                    RefusedCallReport(words, command, is_repeated=words in reported_words)
                )

    def ask_about_current_safe_mode(self) -> None:
        """Ask what to do about safe mode, unless a question about it is already open."""
        if (
            questions.ask_about_safe_mode(self._read_projection(), self.make_question_terms())
            is None
        ):
            return
        with self._ports.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            if question := questions.ask_about_safe_mode(
                writer.projection, self.make_question_terms()
            ):
                writer.append(question)

    def apply_defaults(self) -> None:
        """Record the default answer to each question that has timed out."""
        if not answers.apply_defaults(self._read_projection(), self._ports.clock()):
            return
        with self._ports.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            # Check again under the lock, in case an answer has just arrived.
            writer.append(*answers.apply_defaults(writer.projection, self._ports.clock()))

    def continue_unasked(self) -> None:
        """Record that nothing blocks the agent anymore, unless the question was just answered."""
        with self._ports.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            if writer.projection.run.is_safe:
                writer.append(events.RestartRequested(ts=self._ports.clock(), once=True))

    def answer_at_terminal(self) -> None:
        """Record that the user pressed Enter, if that answers the question."""
        with self._ports.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            projection, now = writer.projection, self._ports.clock()
            question = questions.find_blocking_question(projection, now)
            if question is None or not answers.accepts_enter(question):
                return
            answer = answers.make_answer(projection, question, RETRY, now)
            by, here = host.identify_user(), host.identify_host()
            writer.append(msgspec.structs.replace(answer, by=by, host=here, origin="terminal"))

    def notify(self, what: StopReason) -> None:
        """Notify the operator of the agent's state, using the text of its status row."""
        projection, now = self._read_projection(), self._ports.clock()
        # The supervisor is running, so only recorded facts matter for this row.
        row = build_row(projection, RowInputs(now=now, budget=self._agent.budget))
        is_asked = questions.find_blocking_question(projection, now) is not None
        self._ports.notify(what, f"{row.reason}\n→ {row.next_step}" if is_asked else row.reason)

    def notify_wait(self, wait: events.WaitStarted) -> None:
        """Notify the operator of a wait before the wait is recorded."""
        projection = self._read_projection()
        projection = fold_events(
            projection, [msgspec.structs.replace(wait, seq=projection.seq + 1)]
        )
        row = build_row(projection, RowInputs(now=self._ports.clock(), is_supervised=True))
        self._ports.notify(stop_reasons.parse_reason(wait.why), row.reason)

    def blocking(self) -> events.QuestionAsked | None:
        """Return the question that blocks the agent, or None if there is none."""
        return questions.find_blocking_question(self._read_projection(), self._ports.clock())

    def _read_projection(self) -> Projection:
        return self._ports.store.read(self._agent.name).projection

    def make_question_terms(self) -> questions.QuestionTerms:
        """Return the terms of a question that is asked now."""
        seconds = self._ports.settings.runtime.questions.deadline
        return questions.QuestionTerms(
            self._ports.clock(),
            seconds,
            self._agent.budget,
            last_number=lambda: self._ports.store.last_question(self._agent.name),
        )


def _find_call(question: events.QuestionAsked) -> str:
    words = question.text.removeprefix(questions.WAITING_CALL_PREFIX)
    return words.removeprefix(questions.REFUSED_CALL_PREFIX)


def _find_command(question: events.QuestionAsked) -> str:
    return render_command(
        answers.render_answer_command(question), answers.list_other_answers(question)
    )
