"""Call a service over HTTP. Errors never contain addresses, because these may contain tokens."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from typing import IO, Any, cast
from urllib.parse import urlsplit

from rekindle.errors import PhoneError, UsageError
from rekindle.thresholds.phone_limits import (
    PHONE_ANSWER_BYTES,
    PHONE_CALL_SECONDS,
    PHONE_RETRY_SECONDS,
)

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class _RefuseRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which would send the token to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_RefuseRedirects)


class ServiceError(Exception):
    """Raised when a service answers with an error. Each service explains its own errors."""

    def __init__(self, code: int, answer: dict[str, Any]) -> None:
        super().__init__(f"HTTP {code}")
        self.code, self.answer = code, answer


def require_server(address: str) -> str:
    """Return a server's address without a trailing slash.

    Raises:
        UsageError: It is not an address, or it would send the token unencrypted.
    """
    if not _is_safe(address):
        raise UsageError(
            "the server's address cannot be used",
            hint="use https://HOST, because other addresses would show the token to the network",
        )
    return address.rstrip("/")


def _is_safe(address: str) -> bool:
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises ValueError if it is not a number
    except ValueError:
        return False
    is_private = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    return is_private and bool(parts.hostname) and not parts.query and not parts.username


@contextmanager
def open_call(
    service: str,
    url: str,
    body: object = None,
    headers: Mapping[str, str] | None = None,
    *,
    seconds: float = PHONE_CALL_SECONDS,
) -> Iterator[IO[bytes]]:
    """Call a service, and yield its answer for reading.

    Raises:
        ServiceError: The service answered with an error.
        PhoneError: The service could not be reached, or stopped answering.
    """
    data = None if body is None else json.dumps(body).encode()
    extra = {} if body is None else {"Content-Type": "application/json"}
    try:
        request = urllib.request.Request(url, data, {**(headers or {}), **extra})  # noqa: S310 - require_server checked the scheme
        with cast(HTTPResponse, _OPENER.open(request, timeout=seconds)) as answer:
            yield answer
    except urllib.error.HTTPError as error:
        with error:
            raise ServiceError(error.code, _read_error(error)) from None
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise PhoneError(
            service, f"no answer: {type(reason).__name__}", retry_after=PHONE_RETRY_SECONDS
        ) from None


def call(
    service: str,
    url: str,
    body: object = None,
    headers: Mapping[str, str] | None = None,
    *,
    seconds: float = PHONE_CALL_SECONDS,
) -> Any:
    """Call a service, and return its answer as JSON.

    Raises:
        ServiceError: The service answered with an error.
        PhoneError: The service could not be reached, or its answer is not valid.
    """
    with open_call(service, url, body, headers, seconds=seconds) as answer:
        data = answer.read(PHONE_ANSWER_BYTES)  # a longer answer is cut, and then not valid
    try:
        return json.loads(data)
    except ValueError:
        raise PhoneError(
            service, "its answer is not valid", retry_after=PHONE_RETRY_SECONDS
        ) from None


def _read_error(error: urllib.error.HTTPError) -> dict[str, Any]:
    try:
        answer = json.loads(error.read(PHONE_ANSWER_BYTES))
    except (OSError, HTTPException, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}
