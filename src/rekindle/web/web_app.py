"""The routes of `rekindle ui`: the pages, their data and their actions."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from rekindle import __version__
from rekindle.api.agent import Agent
from rekindle.documents.screens.agent_night import AgentNight
from rekindle.errors import NotFoundError, RekindleError, UsageError
from rekindle.policy.redact.redaction import Redaction
from rekindle.thresholds.web_limits import UI_BODY_BYTES, UI_NIGHT_HOURS, UI_OUTPUT_LINES
from rekindle.web import page_data
from rekindle.web.page_actions import (
    ActionRequest,
    PageActions,
    describe_commands,
)
from rekindle.web.page_links import PageLinks, PageSessions
from rekindle.web.project_metrics import WebMetrics
from rekindle.web.project_rows import WebProjects, find_redaction
from rekindle.web.request_gate import METRICS, RequestGate, refuse
from rekindle.web.row_hub import RowHub
from rekindle.web.web_row import encode_answer

_STATIC = Path(__file__).parent / "static"
_PAGES = ("/", "/open", "/a/{rest:path}", "/search", "/morning", "/runs")


class SessionRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A request for a session token."""

    link: str


class WebApp:
    """The data behind the pages of one server."""

    def __init__(self, projects: WebProjects, sessions: PageSessions, *, read_only: bool) -> None:
        self._projects, self._sessions, self._read_only = projects, sessions, read_only
        self._hub = RowHub(projects, secrets.token_hex(4))
        self._actions = PageActions(projects)
        self._metrics = WebMetrics(projects)

    def make_routes(self) -> list[Route | Mount]:
        return [
            *(Route(path, self._show_page) for path in _PAGES),
            Mount("/static", StaticFiles(directory=_STATIC)),
            Route("/api/session", self._open_session, methods=["POST"]),
            Route("/api/server", self._describe),
            Route("/api/stream", self._stream),
            Route("/api/agent", self._of_agent(lambda agent, _: page_data.read_agent(agent))),
            Route("/api/night", self._of_agent(_read_night)),
            Route("/api/diff", self._of_agent(_read_diff)),
            Route("/api/output", self._of_agent(_read_output)),
            Route("/api/search", self._search),
            Route("/api/morning", self._read_morning),
            Route("/api/runs", self._read_runs),
            Route("/api/act", self._act, methods=["POST"]),
            Route(METRICS, self._read_metrics),
        ]

    def _of_agent(
        self, read: Callable[[Agent, QueryParams], Any]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return a route that reads something about one agent."""

        def read_answer(query: QueryParams) -> bytes:
            home = self._projects.find(query.get("project", ""))
            value = read(home.agent(query.get("agent", "")), query)
            return encode_answer(value, find_redaction(home))

        async def answer(request: Request) -> Response:
            return _pack(await asyncio.to_thread(read_answer, request.query_params))

        return answer

    @asynccontextmanager
    async def live(self, _app: Starlette) -> AsyncIterator[None]:
        """Look for changes as long as the server runs."""
        checking = asyncio.create_task(self._hub.check())
        try:
            yield
        finally:
            checking.cancel()
            with suppress(asyncio.CancelledError):
                await checking

    async def _show_page(self, _request: Request) -> Response:
        return FileResponse(_STATIC / "shell.html")

    async def _open_session(self, request: Request) -> Response:
        asked = msgspec.json.decode(await read_body(request), type=SessionRequest)
        token = await asyncio.to_thread(self._sessions.open, asked.link)
        if token is None:
            return refuse(401, "the link has expired", "run `rekindle ui --link`")
        return JSONResponse({"session": token})

    async def _describe(self, _request: Request) -> Response:
        facts = {
            "version": __version__,
            "read_only": self._read_only,
            "actions": describe_commands(),
        }
        return JSONResponse(facts)

    async def _read_metrics(self, _request: Request) -> Response:
        text = await asyncio.to_thread(self._metrics.render)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def _stream(self, request: Request) -> Response:
        events = self._hub.stream(request.headers.get("last-event-id", ""))
        return StreamingResponse(events, media_type="text/event-stream")

    async def _search(self, request: Request) -> Response:
        def search(query: QueryParams) -> bytes:
            home = self._projects.find(query.get("project", ""))
            named = [query.get(key, "") for key in ("words", "file", "agent")]
            return encode_answer(page_data.search_home(home, *named), find_redaction(home))

        return _pack(await asyncio.to_thread(search, request.query_params))

    async def _read_morning(self, _request: Request) -> Response:
        pages = await asyncio.to_thread(page_data.read_mornings, self._projects)
        return _pack(msgspec.json.encode({"pages": pages}))

    async def _read_runs(self, _request: Request) -> Response:
        runs = await asyncio.to_thread(page_data.read_runs, self._projects)
        return _pack(msgspec.json.encode({"runs": runs}))

    async def _act(self, request: Request) -> Response:
        asked = msgspec.json.decode(await read_body(request), type=ActionRequest)
        result = await self._actions.run(asked)
        self._hub.check_soon()
        home = await asyncio.to_thread(self._projects.find, asked.project)
        return _pack(encode_answer(result, find_redaction(home)))


def _read_night(agent: Agent, query: QueryParams) -> AgentNight:
    return page_data.read_agent_night(agent, _parse_number(query.get("hours"), UI_NIGHT_HOURS))


def _read_diff(agent: Agent, query: QueryParams) -> dict[str, Any]:
    older, newer = (_parse_number(query.get(key)) for key in ("older", "newer"))
    return {"diff": agent.relay.diff(older, newer)}


def _read_output(agent: Agent, _query: QueryParams) -> dict[str, Any]:
    return {"lines": agent.output(UI_OUTPUT_LINES)}


def _parse_number(text: str | None, most: int | None = None) -> int:
    try:
        number = int(text or "")  # thousands of digits are a ValueError too
    except ValueError:
        number = -1
    if number < 0:
        raise UsageError("a number is missing or not valid", hint="reload the page")
    return min(number, most) if most else number


def make_app(
    projects: WebProjects, links: PageLinks, origins: Iterable[str], *, read_only: bool
) -> ASGIApp:
    """Return the application, behind its gate."""
    sessions = PageSessions(links)
    web = WebApp(projects, sessions, read_only=read_only)
    app = Starlette(
        routes=web.make_routes(),
        lifespan=web.live,
        exception_handlers={
            RekindleError: _explain_error,
            msgspec.MsgspecError: _explain_body,
            Exception: _explain_failure,
        },
    )
    return RequestGate(app, origins=origins, sessions=sessions, read_only=read_only)


async def read_body(request: Request) -> bytes:
    """Return the body of a request, or refuse it if it is too large."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > UI_BODY_BYTES:
            raise UsageError("the text is too long", hint="shorten it")
    return body


def _pack(data: bytes) -> Response:
    return Response(data, media_type="application/json")


async def _explain_error(_request: Request, error: Exception) -> Response:
    status = 404 if isinstance(error, NotFoundError) else 400
    hint = error.hint if isinstance(error, RekindleError) else ""
    redacted = Redaction()
    return refuse(status, redacted.text(str(error)), redacted.text(hint))


async def _explain_body(_request: Request, _error: Exception) -> Response:
    return refuse(400, "the request is not valid", "reload the page")


async def _explain_failure(_request: Request, error: Exception) -> Response:
    """Tell the page about a bug. The server prints its details in the terminal."""
    message = f"the server failed: {type(error).__name__}"
    return refuse(500, message, "the terminal of `rekindle ui` shows the details")
