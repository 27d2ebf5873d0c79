"""Ask the operator an agent's questions, and apply default answers after their deadlines."""

from collections.abc import Collection, Sequence

import msgspec

from rekindle.documents import events
from rekindle.documents.launches.launch_types import RefusedCall
from rekindle.documents.screens.agent_row import render_command
from rekindle.flows.supervisor_ports import AgentSpec, RefusedCallReport, SupervisorPorts
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.exits import stop_reasons
from rekindle.policy.exits.stop_reasons import StopReason
from rekindle.policy.operator import answers, questions
from rekindle.policy.operator.answers import RETRY
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
        self, known: Projection, new: Sequence[events.AnyEvent]
    ) -> list[events.AnyEvent]:
        """Return the events, with a question after each event that needs a person."""
        return questions.add_questions(known, new, self._make_question_terms())

    def ask_about_refused_calls(
        self, known: Projection, refused: Sequence[RefusedCall], launch: str
    ) -> list[events.QuestionAsked]:
        """Return questions about the refused calls, and notify the operator of them."""
        asked = questions.ask_about_calls(known, refused, launch, self._make_question_terms())
        lines = [f"{_find_call(question)}\n→ {_find_command(question)}" for question in asked]
        if lines:
            # Reserve the number first, so that another question cannot get the same id after a
            # crash.
            self._ports.store.keep_question_number(self._agent.name, asked[-1].number)
            self._ports.notify("permission", "\n".join(lines))
        return asked

    def report_refused_calls(
        self,
        refused: Sequence[RefusedCall],
        asked: Sequence[events.QuestionAsked],
        told: Collection[str],
    ) -> None:
        """Report the refused calls that were not reported while the launch was running."""
        commands = {_find_call(question): _find_command(question) for question in asked}
        for call in refused:
            words = f"{call.tool} {to_one_line(call.about, ABOUT_CHARACTERS)}"
            command = commands.pop(words, "")
            if words not in told or command:
                self._ports.tell(RefusedCallReport(words, command, is_repeated=words in told))

    def ask_about_current_safe_mode(self) -> None:
        """Ask for a decision about the current safe mode, unless a question is already open."""
        if (
            questions.ask_about_safe_mode(self._read_projection(), self._make_question_terms())
            is None
        ):
            return
        with self._ports.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            if asked := questions.ask_about_safe_mode(
                writer.projection, self._make_question_terms()
            ):
                writer.append(asked)

    def apply_defaults(self) -> None:
        """Record the default answer to each question whose deadline has passed."""
        if not answers.apply_defaults(self._read_projection(), self._ports.clock()):
            return
        with self._ports.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            # Check again while holding the lock, because an answer may have arrived in time.
            writer.append(*answers.apply_defaults(writer.projection, self._ports.clock()))

    def continue_unasked(self) -> None:
        """Record that nothing blocks the agent now, unless the question was answered meanwhile."""
        with self._ports.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
            writer.fold()
            if writer.projection.run.is_safe:
                writer.append(events.RestartRequested(ts=self._ports.clock(), once=True))

    def answer_at_terminal(self) -> None:
        """Record that the person at the terminal pressed Enter, if the question accepts Enter."""
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
        """Notify the operator of the agent's state, with the text of its status row."""
        projection, now = self._read_projection(), self._ports.clock()
        # This supervisor is still running, so the row depends only on recorded facts.
        row = build_row(projection, RowInputs(now=now, budget=self._agent.budget))
        is_asked = questions.find_blocking_question(projection, now) is not None
        self._ports.notify(what, f"{row.reason}\n→ {row.next_step}" if is_asked else row.reason)

    def notify_wait(self, wait: events.WaitStarted) -> None:
        """Notify the operator of a wait that is about to be recorded."""
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

    def _make_question_terms(self) -> questions.QuestionTerms:
        seconds = self._ports.settings.runtime.questions.deadline
        return questions.QuestionTerms(
            self._ports.clock(),
            seconds,
            self._agent.budget,
            last_number=lambda: self._ports.store.last_question(self._agent.name),
        )


def _find_call(asked: events.QuestionAsked) -> str:
    return asked.text.removeprefix(questions.REFUSED_CALL_PREFIX)


def _find_command(asked: events.QuestionAsked) -> str:
    return render_command(answers.render_answer_command(asked), answers.list_other_answers(asked))
