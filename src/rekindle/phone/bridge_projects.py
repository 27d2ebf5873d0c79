"""Read the open questions of all projects that the user trusts."""

import time
from threading import Lock
from typing import NamedTuple

from rekindle.api.agent_store import read_known
from rekindle.api.home import Home
from rekindle.api.trusted_homes import TrustedHomes
from rekindle.errors import NotFoundError, RekindleError
from rekindle.policy.operator.answers import explain_closed
from rekindle.policy.operator.questions import list_open_questions
from rekindle.policy.phone.question_messages import OpenQuestion
from rekindle.policy.redact.redaction import Redaction
from rekindle.stores.folders.private_files import render_path
from rekindle.system import clock
from rekindle.thresholds.phone_limits import PHONE_FLEET_SECONDS


class ProjectQuestions(NamedTuple):
    """The open questions of one project."""

    path: str
    questions: list[OpenQuestion]


class BridgeProjects:
    """The trusted projects. All methods can be called from several threads."""

    def __init__(self, homes: TrustedHomes) -> None:
        self._homes = homes
        self._lock = Lock()
        self._fleets: dict[str, tuple[float, ProjectQuestions | RekindleError]] = {}

    def list_homes(self) -> dict[str, Home]:
        """Return the projects that can be opened, by name."""
        homes = {}
        with self._lock:
            for name in self._homes.list_names():
                try:
                    homes[name] = self._homes.find(name)
                except RekindleError:
                    continue  # `rekindle status` explains what is wrong with its manifest
        return homes

    def read_questions(self) -> list[ProjectQuestions]:
        """Return the open questions of each project that can be read."""
        readings = []
        for name, home in self.list_homes().items():
            try:
                is_fleet = home.project.settings.fleet is not None
                read = self._read_fleet if is_fleet else _read_project
                readings.append(read(name, home))
            except RekindleError:
                continue  # as above; the next check may succeed
        return readings

    def find_home(self, path: str) -> Home:
        """Return a project by its path.

        Raises:
            NotFoundError: The user no longer trusts the folder, or it cannot be opened.
        """
        for home in self.list_homes().values():
            if render_path(home.path) == path:
                return home
        raise NotFoundError("the project cannot be opened", hint="`rekindle status --all`")

    def explain_closed(self, path: str, agent: str, question: str) -> str:
        """Explain why a question does not accept an answer anymore."""
        known = read_known(self.find_home(path).store, agent)
        asked = known.questions.get(question)
        if asked is None:
            return "it is not in the log anymore"
        return explain_closed(known, asked, clock.read_clock()) or "it was asked again"

    def _read_fleet(self, name: str, home: Home) -> ProjectQuestions:
        """Return the open questions, or the result of the last attempt if it is recent.

        An attempt that fails can take long, and the other projects wait for it.
        """
        path = render_path(home.path)
        at, result = self._fleets.get(path, (0.0, None))
        if result is None or time.monotonic() - at >= PHONE_FLEET_SECONDS:
            try:
                result = _read_project(name, home)
            except RekindleError as error:
                result = error
            self._fleets[path] = time.monotonic(), result
        if isinstance(result, RekindleError):
            raise result
        return result


def _read_project(name: str, home: Home) -> ProjectQuestions:
    path, now, redaction = render_path(home.path), clock.read_clock(), find_redaction(home)
    return ProjectQuestions(
        path,
        [
            OpenQuestion(path, name, row.agent, question, redaction)
            for row in home.rows()
            if row.open_questions
            for question in list_open_questions(read_known(home.store, row.agent), now)
        ],
    )


def find_redaction(home: Home) -> Redaction:
    """Return the rules by which a project's texts are redacted."""
    return Redaction(tuple(home.project.manifest.redact.allow))
