"""Run the commands behind the buttons of the pages.

Each action is one `rekindle` command, which the page shows before it is run. The command runs in
its own process in the project's folder, with the same checks as in a terminal.
"""

import asyncio
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from rekindle.errors import UsageError
from rekindle.thresholds.web_limits import UI_ACTION_SECONDS, UI_ACTIONS_KEPT
from rekindle.web.project_rows import WebProjects

ActionName = Literal[
    "answer", "tell", "hand off", "stop", "restart", "fresh restart", "start",
    "resolve", "edit relay", "raise budget",
]  # fmt: skip


class ActionRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request to run an action."""

    id: str
    """Random id, which is the same if the request is sent twice."""
    project: str
    agent: str
    action: ActionName
    target: str = ""
    """Id of a question or an open loop."""
    text: str = ""
    """Answer, message, reason, relay or amount."""
    base: str = ""
    """Hash of the relay that was edited."""


class ActionResult(msgspec.Struct, frozen=True):
    """The result of an action."""

    command: str
    code: int
    output: str


class ActionCommand(NamedTuple):
    """How to run an action."""

    words: Callable[[ActionRequest], list[str]]
    needs_text: bool = False
    reads_text: bool = False
    """Whether the command reads the text from its standard input."""


def _name_target(request: ActionRequest) -> str:
    return request.target or request.agent


ACTIONS: dict[ActionName, ActionCommand] = {
    "answer": ActionCommand(
        lambda request: ["answer", "--", _name_target(request), request.text], needs_text=True
    ),
    "tell": ActionCommand(
        lambda request: ["tell", "--", request.agent, request.text], needs_text=True
    ),
    "hand off": ActionCommand(lambda request: ["handoff", "--", request.agent]),
    "stop": ActionCommand(lambda request: ["stop", "--", request.agent]),
    "restart": ActionCommand(lambda request: ["restart", "--", request.agent]),
    "fresh restart": ActionCommand(lambda request: ["restart", "--fresh", "--", request.agent]),
    "start": ActionCommand(lambda request: ["up", "--", request.agent]),
    "resolve": ActionCommand(
        lambda request: [
            *("resolve", "--agent", request.agent, "--", request.target, request.text)
        ],
        needs_text=True,
    ),
    "raise budget": ActionCommand(
        lambda request: ["budget", "--usd", request.text.strip(), "--", request.agent],
        needs_text=True,
    ),
    "edit relay": ActionCommand(
        lambda request: [
            *("relay", "set", "--agent", request.agent),
            *(("--base", request.base) if request.base else ()),
            *("--", "-"),
        ],
        needs_text=True,
        reads_text=True,
    ),
}


def describe_commands() -> dict[str, list[str]]:
    """Return the words of each action's command, with placeholders in capital letters."""
    names = {"agent": "AGENT", "target": "ID", "text": "TEXT", "base": "SHA256"}
    return {
        name: _list_typed(action.words(ActionRequest(id="", project="", action=name, **names)))
        for name, action in ACTIONS.items()
    }


def _list_typed(words: list[str]) -> list[str]:
    """Return the words that a person would type."""
    return [word for word in words if word != "--"]


class PageActions:
    """Runs actions, each id once."""

    def __init__(self, projects: WebProjects) -> None:
        self._projects = projects
        self._tasks: dict[str, asyncio.Task[ActionResult]] = {}

    async def run(self, request: ActionRequest) -> ActionResult:
        """Run an action, or return the result of the earlier request with the same id."""
        if request.id not in self._tasks:
            while len(self._tasks) >= UI_ACTIONS_KEPT:
                self._tasks.pop(next(iter(self._tasks)))
            self._tasks[request.id] = asyncio.create_task(self._run_once(request))
        # If the page is closed, the command continues.
        return await asyncio.shield(self._tasks[request.id])

    async def _run_once(self, request: ActionRequest) -> ActionResult:
        """Run an action, and forget its id if it fails: the user can correct it and try again."""
        is_done = False
        try:
            result = await self._run(request)
            is_done = result.code == 0
            return result
        finally:
            if not is_done:
                self._tasks.pop(request.id, None)

    async def _run(self, request: ActionRequest) -> ActionResult:
        action = ACTIONS[request.action]
        if action.needs_text and not request.text.strip():
            raise UsageError("a text is missing", hint="fill in the text, then repeat the action")
        home = await asyncio.to_thread(self._projects.find, request.project)
        await asyncio.to_thread(home.agent, request.agent)
        words = action.words(request)
        text = request.text if action.reads_text else ""
        try:
            code, output = await run_command(home.path, words, text)
        except (OSError, ValueError) as error:  # a text that is too long or contains a NUL
            raise UsageError(
                f"the command cannot be started: {getattr(error, 'strerror', None) or error}",
                hint="shorten the text, and remove control characters",
            ) from error
        return ActionResult(_render(words), code, output)


def _render(words: list[str]) -> str:
    return shlex.join(["rekindle", *_list_typed(words)])


async def run_command(folder: Path, words: list[str], text: str = "") -> tuple[int, str]:
    """Run a `rekindle` command in a project, and return its exit code and its output."""
    process = await asyncio.create_subprocess_exec(
        # -P keeps Python from importing modules in the project's folder.
        *(sys.executable, "-P", "-m", "rekindle", *words),
        cwd=folder,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(text.encode()), UI_ACTION_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        output = b"the command took too long; check the agent's state"
    return process.returncode or 0, output.decode("utf-8", "replace")
