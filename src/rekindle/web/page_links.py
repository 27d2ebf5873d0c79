"""Links that open the pages, and the session tokens that they are exchanged for.

A link contains a token that can be used once, within a minute. Its hash is the name of an empty
file in the user's private folder, so that `rekindle ui --link` can create a link for a running
server, but another user cannot. The page exchanges the link's token for a session token, which
exists only in the memory of the server and of the browser.

Prometheus reads `/metrics` with a token of its own. It is in the same folder, and permits nothing
else.
"""

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rekindle.errors import UsageError
from rekindle.system import clock
from rekindle.system.files import durable_files, file_locks, user_folder
from rekindle.thresholds.web_limits import UI_LINK_SECONDS

_FOLDER = "ui"
_LOCK = "lock"
_FOR_METRICS = "metrics-token"
_TOKEN_BYTES = 32
_FILE_MODE = 0o600


class PageLinks:
    """The unused links of the server on one port."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._folder = user_folder.make_user_folder(_FOLDER, str(port))

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Mark the server as running, and remove the links of earlier servers."""
        with file_locks.hold_lock(self._folder / _LOCK, 0.0) as lock:
            if lock is None:
                raise make_busy_error(self.port)
            for path in self._folder.iterdir():
                if path.name not in {_LOCK, _FOR_METRICS}:
                    durable_files.remove_file(path)
            yield

    def read_metrics_token(self) -> str:
        """Return the token for `/metrics`, which stays the same when the server is restarted."""
        path = self._folder / _FOR_METRICS
        if not durable_files.path_exists(path):
            token = secrets.token_urlsafe(_TOKEN_BYTES)
            durable_files.replace_file(path, token.encode(), mode=_FILE_MODE)
        return (durable_files.read_bytes(path) or b"").decode("ascii", "replace").strip()

    def make_link(self, name: str | None = None) -> str:
        """Return a new address of the pages, at the proxy's name if there is one."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        durable_files.replace_file(self._find_file(token), b"", mode=_FILE_MODE)
        start = f"https://{name}" if name else f"http://127.0.0.1:{self.port}"
        return f"{start}/open#{token}"

    def use(self, token: str) -> bool:
        """Return whether a link's token is valid, and make it invalid."""
        path = self._find_file(token)
        try:
            created = path.lstat().st_mtime
            path.unlink()
        except FileNotFoundError:
            return False
        return 0 <= clock.read_clock().timestamp() - created + 1 <= UI_LINK_SECONDS + 1

    def _find_file(self, token: str) -> Path:
        return self._folder / _hash(token)


class PageSessions:
    """The session tokens of this server. They expire with it."""

    def __init__(self, links: PageLinks) -> None:
        self._links = links
        self._sessions: set[str] = set()
        self._metrics = _hash(links.read_metrics_token())

    def open(self, link: str) -> str | None:
        """Return a session token for a link's token, or None if the link is not valid."""
        if not self._links.use(link):
            return None
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._sessions.add(_hash(token))
        return token

    def accepts(self, authorization: str) -> bool:
        """Return whether an Authorization header contains a session token."""
        return _hash_bearer(authorization) in self._sessions

    def accepts_metrics(self, authorization: str) -> bool:
        """Return whether an Authorization header allows reading the metrics."""
        return _hash_bearer(authorization) == self._metrics or self.accepts(authorization)


def find_running() -> list[int]:
    """Return the ports of the user's running servers."""
    folder = user_folder.make_user_folder(_FOLDER)
    return sorted(
        int(path.name)
        for path in folder.iterdir()
        if path.name.isdigit() and file_locks.is_locked(path / _LOCK)
    )


def make_busy_error(port: int) -> UsageError:
    return UsageError(
        f"port {port} is already in use",
        hint="`rekindle ui --link` prints a link to a running server; use --port for another one",
    )


def _hash_bearer(authorization: str) -> str:
    """Return the hash of the token in an Authorization header, or "" if there is none."""
    # Comparing hashes does not reveal how much of a guessed token is right.
    scheme, _, token = authorization.partition(" ")
    return _hash(token) if scheme == "Bearer" and token else ""


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
