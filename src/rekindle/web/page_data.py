"""Read the data of the pages: one agent, its night, search results, the morning and runs."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec

from rekindle.api.agent import Agent
from rekindle.api.agent_store import read_known
from rekindle.api.home import Home
from rekindle.documents.events import QuestionAsked
from rekindle.documents.screens.agent_night import AgentNight
from rekindle.errors import NotFoundError, RekindleError
from rekindle.policy.operator.questions import list_open_questions
from rekindle.policy.redact.redaction import Redaction
from rekindle.stores.files import FileStore
from rekindle.system import clock
from rekindle.thresholds.web_limits import UI_HITS
from rekindle.web.project_rows import WebProjects, find_redaction
from rekindle.wiring.pipelines.read_runs import RunReader


def read_agent(agent: Agent) -> dict[str, Any]:
    """Return an agent's state, open questions and documents."""
    known = read_known(agent.home.store, agent.name)
    asked = list_open_questions(known, clock.read_clock())
    return {
        "row": agent.row(),
        "questions": [_describe_question(question) for question in asked],
        "relay": _read_relay(agent),
        "loops": agent.loops.list(),
        "resolved": agent.loops.resolved(),
        "decisions": [entry.decision.text for entry in agent.decisions.list()],
    }


def _describe_question(question: QuestionAsked) -> dict[str, Any]:
    request = msgspec.json.encode(question.request).decode() if question.request else ""
    return {
        "id": question.question,
        "text": question.text,
        "request": request,
        "choices": question.choices,
        "default": question.default,
        "deadline": question.deadline,
    }


def _read_relay(agent: Agent) -> dict[str, Any]:
    # Read the hash first. If a relay is committed in between, an edit of the old text is refused.
    base = agent.relay.base()
    try:
        text = agent.relay.text()
    except NotFoundError:
        return {"text": "", "base": "", "revisions": []}
    revisions = agent.relay.revisions() if isinstance(agent.home.store, FileStore) else []
    return {
        "text": text,
        "base": base,
        "revisions": [{"seq": one.seq, "ts": one.ts, "by": one.by} for one in revisions],
    }


def read_agent_night(agent: Agent, hours: float) -> AgentNight:
    """Return what happened to an agent in the last hours."""
    return agent.night(clock.read_clock() - timedelta(hours=hours))


def search_home(home: Home, words: str, file: str, agent: str) -> dict[str, Any]:
    """Return the turns, relays and decisions that contain all words."""
    agents = [home.project.require_agent(agent)] if agent else []
    hits = home.search(words.split(), file=file, agents=agents, most=UI_HITS).hits
    return {"hits": hits}


def read_mornings(projects: WebProjects) -> list[dict[str, Any]]:
    """Return the morning page of each project, or why it cannot be read. All are redacted."""
    pages: list[dict[str, Any]] = []
    for name in projects.list_names():
        try:
            home = projects.find(name)
            page = _redact(home.morning(), find_redaction(home))
            pages.append({"name": name, "page": page})
        except RekindleError as error:
            pages.append({"name": name, "error": str(error), "hint": error.hint})
    return pages


def read_runs(projects: WebProjects) -> list[dict[str, Any]]:
    """Return the pipeline runs of all projects, or why one cannot be read. All are redacted."""
    return [run for name in projects.list_names() for run in _list_runs(name, projects)]


def _list_runs(name: str, projects: WebProjects) -> Iterator[dict[str, Any]]:
    """Yield the runs of one project, newest first."""
    try:
        home = projects.find(name)
        if not home.project.manifest.pipelines or not isinstance(home.store, FileStore):
            return
        reader, redaction = RunReader(home.project, home.store), find_redaction(home)
    except RekindleError:
        return  # the list of agents shows the error
    for folder in reversed(reader.list_folders()):
        run = {"project": name, "name": f"{folder.pipeline} {folder.run}"}
        try:
            yield {**run, "row": _redact(reader.read(folder).row, redaction)}
        except RekindleError as error:
            yield {**run, "error": redaction.text(str(error))}


def _redact(value: Any, redaction: Redaction) -> Any:
    return msgspec.json.decode(redaction.json(msgspec.json.encode(value)))
