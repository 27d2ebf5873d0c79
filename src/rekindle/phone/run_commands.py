"""Run the commands that a paired chat sends."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec

from rekindle.api.agent_store import read_known
from rekindle.api.answer_questions import SelectedQuestion, record_answer
from rekindle.api.home import Home
from rekindle.api.operator import Operator
from rekindle.api.tell_agent import tell_agent
from rekindle.documents.phone.phone_records import PairedChat
from rekindle.documents.screens import morning_page
from rekindle.errors import ClosedQuestionError, RekindleError
from rekindle.formats.identifiers import strip_invisible
from rekindle.phone.bridge_projects import BridgeProjects, find_redaction
from rekindle.policy.phone import chat_rights, phone_commands
from rekindle.policy.phone.phone_commands import PhoneCommand
from rekindle.policy.phone.question_messages import (
    cut_text,
    digest_question,
    explain_refused_words,
    join_lines,
    render_open_question,
)
from rekindle.thresholds.phone_limits import PHONE_MESSAGES

_REPLACED = "This question was replaced by another one. /questions lists the open questions."


class AnsweredQuestion(NamedTuple):
    """A question that a person answers, as it was shown to them."""

    path: str
    agent: str
    question: str
    digest: str


class FoundAgent(NamedTuple):
    """An agent of one of the trusted projects."""

    home: Home
    agent: str
    name: str
    """Name of the agent with its project."""


class CommandRunner:
    """Runs commands and answers questions in the trusted projects."""

    def __init__(self, projects: BridgeProjects) -> None:
        self._projects = projects

    def run(self, command: PhoneCommand, chat: PairedChat) -> list[str]:
        """Run a command, and return the replies to it."""
        row = phone_commands.COMMANDS[command.name]
        if not chat_rights.has_right(chat, row.right):
            return [f"This chat may only {chat.right}."]
        if row.arguments and not command.words:
            return [f"Send /{command.name} {row.arguments}."]
        actions: dict[str, Callable[[], list[str]]] = {
            "status": self._show_status,
            "questions": self._list_questions,
            "morning": self._show_morning,
            "answer": partial(self._answer_by_id, command.words, chat),
            "stop": partial(self._stop, command.words),
            "tell": partial(self._tell, command.words, chat),
            "help": lambda: [phone_commands.render_help(chat)],
        }
        return [cut_text(text) for text in actions[command.name]()[:PHONE_MESSAGES]]

    def answer(self, asked: AnsweredQuestion, words: str, chat: PairedChat) -> str:
        """Answer a question for a chat, and return the reply. The first answer counts."""
        home = self._projects.find_home(asked.path)
        known = read_known(home.store, asked.agent)
        question = known.questions.get(asked.question)
        if question is None or digest_question(question) != asked.digest:
            return _REPLACED
        if refused := explain_refused_words(question, words, chat):
            return refused
        selected = SelectedQuestion(home.project, home.store, asked.agent, known, question)
        try:
            recorded = record_answer(selected, question, words, _make_operator(home, chat))
        except ClosedQuestionError as error:
            return f"Too late: {error.reason}."
        reply = f"{'Recorded' if recorded.seq else 'Saved'}: {recorded.choice or 'your answer'}."
        if recorded.effect in {"restart", "continue"} and not home.store.is_supervised(asked.agent):
            reply += f" Start the agent on the computer: rekindle up {asked.agent}"
        return reply

    def _answer_by_id(self, words: str, chat: PairedChat) -> list[str]:
        name, _, answer = words.partition(" ")
        asked = [
            AnsweredQuestion(
                each.path, each.agent, each.question.question, digest_question(each.question)
            )
            for project in self._projects.read_questions()
            for each in project.questions
            if name in {each.question.question, f"{each.project}/{each.question.question}"}
        ]
        if not answer.strip():
            return ["Send /answer ID TEXT."]
        if len(asked) != 1:
            several = "Several projects have this question. Reply to its message."
            return [several if asked else f"There is no open question {name}."]
        return [self.answer(asked[0], answer, chat)]

    def _show_status(self) -> list[str]:
        return self._for_each(_render_rows) or ["There are no agents."]

    def _show_morning(self) -> list[str]:
        return self._for_each(_render_morning) or ["There are no agents."]

    def _for_each(self, render: Callable[[str, Home], list[str]]) -> list[str]:
        texts = []
        for name, home in self._projects.list_homes().items():
            try:
                redaction = find_redaction(home)
                texts += [redaction.text(strip_invisible(text)) for text in render(name, home)]
            except RekindleError as error:
                texts.append(f"{name}: {error}")
        return texts

    def _list_questions(self) -> list[str]:
        lines = [
            render_open_question(each)
            for project in self._projects.read_questions()
            for each in project.questions
        ]
        return join_lines(lines) or ["No open questions."]

    def _stop(self, words: str) -> list[str]:
        found = self._find_agent(words)
        if isinstance(found, str):
            return [found]
        if found.home.agent(found.agent).stop():
            return [f"Stopped {found.name}."]
        return [f"{found.name} was not running. It stays stopped."]

    def _tell(self, words: str, chat: PairedChat) -> list[str]:
        name, _, text = words.partition(" ")
        found = self._find_agent(name)
        if isinstance(found, str):
            return [found]
        sent = tell_agent(found.home, found.agent, text, _make_operator(found.home, chat))
        return [f"Recorded. {found.name} gets it {sent.arrives}."]

    def _find_agent(self, words: str) -> FoundAgent | str:
        """Return the agent that the words name, or the reason why there is not exactly one."""
        agents = [
            FoundAgent(home, agent, f"{name}/{agent}")
            for name, home in self._projects.list_homes().items()
            for agent in home.agents()
            if words in {agent, f"{name}/{agent}"}
        ]
        if len(agents) == 1:
            return agents[0]
        names = ", ".join(found.name for found in agents)
        return f"Several agents: {names}." if agents else f"There is no agent {words}."


def _make_operator(home: Home, chat: PairedChat) -> Operator:
    by = chat_rights.name_sender(chat)
    return Operator(tell=home.operator.tell, origin="phone", by=by)


def _render_rows(name: str, home: Home) -> list[str]:
    lines = [
        f"{name}/{row.agent}: {row.label}{f' ({row.reason})' if row.reason else ''}"
        for row in home.rows()
    ]
    return ["\n".join(lines)] if lines else []


def _render_morning(name: str, home: Home) -> list[str]:
    page = home.morning()
    return [
        morning_page.render(msgspec.structs.replace(page, project=name, entries=(entry,)))
        for entry in page.entries
    ]
