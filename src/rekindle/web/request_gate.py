"""Check every request before a route sees it, and add the security headers to every response.

The address 127.0.0.1 protects nothing by itself. A website can send requests to it from the user's
browser, and every user of the host can connect to it. The gate therefore checks in this order:

1. The Host header must name this server, so that a foreign name that resolves to 127.0.0.1 fails.
2. A write must come from one of our pages (Origin and Sec-Fetch-Site) and contain JSON.
3. All data needs a session token in the Authorization header. There is no cookie, because a browser
   sends a cookie to every port of a host.
"""

from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rekindle.web.page_links import PageSessions

API = "/api/"
OPEN_SESSION = "/api/session"
METRICS = "/metrics"
_READS = frozenset({"GET", "HEAD"})
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every response."""


class RequestGate:
    """ASGI middleware that refuses requests that do not come from our own pages."""

    def __init__(
        self, app: ASGIApp, *, origins: Iterable[str], sessions: PageSessions, read_only: bool
    ) -> None:
        """Create a gate for pages at `origins`, such as `http://127.0.0.1:8377`."""
        self._app, self._sessions, self._read_only = app, sessions, read_only
        self._origins = {origin.partition("://")[2]: origin for origin in origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        app = self._find_refusal(scope["method"], scope["path"], Headers(scope=scope)) or self._app
        await app(scope, receive, send_with_headers)

    def _find_refusal(self, method: str, path: str, headers: Headers) -> JSONResponse | None:
        hosts, is_write = headers.getlist("host"), method not in _READS
        if len(hosts) != 1 or hosts[0] not in self._origins:
            return refuse(421, "this server has another name", "use the link of `rekindle ui`")
        if is_write and (refusal := self._find_foreign(self._origins[hosts[0]], headers)):
            return refusal
        is_page = not is_write and not path.startswith((API, METRICS))  # it contains no data
        if is_page or (is_write and path == OPEN_SESSION):
            return None
        accepts = self._sessions.accepts_metrics if path == METRICS else self._sessions.accepts
        if not accepts(headers.get("authorization", "")):
            return refuse(401, "the page needs a new link", "run `rekindle ui --link`")
        if is_write and self._read_only:
            return refuse(403, "the server is read-only", "start `rekindle ui` without --read-only")
        return None

    @staticmethod
    def _find_foreign(origin: str, headers: Headers) -> JSONResponse | None:
        """Return a refusal if a write does not come from a page at `origin`."""
        is_own = headers.get("sec-fetch-site") == "same-origin"
        if headers.get("origin") != origin or not is_own:
            return refuse(403, "the request does not come from our own page")
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return refuse(415, "the request does not contain JSON")
        return None


def refuse(status: int, message: str, hint: str = "") -> JSONResponse:
    """Return a response with an error message."""
    return JSONResponse({"error": message, "hint": hint}, status)
