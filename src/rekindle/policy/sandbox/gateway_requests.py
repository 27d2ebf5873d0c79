"""Check a sandbox's request to the gateway, and rewrite it with the key for its host.

The sandbox asks for `/HOST/PATH`, and the gateway sends `/PATH` to HOST. A request that two servers
could read differently is refused, so that no second request can be hidden in its body. Credentials
of the sandbox's own are dropped, so that an agent cannot use another account of the same host.
"""

import re
from collections.abc import Collection, Iterator
from urllib.parse import unquote

import msgspec

from rekindle.documents.launches.launch_credentials import ModelKey

_REQUEST = re.compile(rb"([A-Z]{1,20}) (/[\x21-\x7e]*) HTTP/1\.1")
_FIELD = re.compile(rb"([A-Za-z0-9!#$%&'*+.^_`|~-]+):[ \t]*((?:[\x21-\x7e\x80-\xff][ \t]*)*)")
_SIZE = re.compile(rb"[0-9a-fA-F]{1,8}")
_LENGTH = re.compile(rb"[0-9]{1,15}")
_REFUSED_METHODS = frozenset((b"CONNECT", b"TRACE"))
"""Methods for tunnels, and for an answer that repeats the request with its key."""
_CREDENTIALS = re.compile(rb"authorization|api-?key|cookie|(^|-)token$|^x-auth", re.IGNORECASE)
_PARAMETERS = frozenset(
    ("key", "$key", "apikey", "api_key", "api-key", "access_token", "oauth_token")
)
"""Query parameters that some hosts accept instead of a header."""
_CONNECTION = frozenset(
    (b"host", b"connection", b"keep-alive", b"te", b"trailer", b"upgrade", b"expect")
)
_FRAMING = frozenset((b"content-length", b"transfer-encoding"))
_END = b"\r\n"


class GatewayRequest(msgspec.Struct, frozen=True):
    """A request that may be sent to its host."""

    host: str
    method: bytes
    path: bytes
    fields: tuple[tuple[bytes, bytes], ...]
    length: int | None
    """Length of the body in bytes; None if it is sent in chunks."""
    expects: bool = False
    """Whether the client waits for permission to send the body."""


class RefusedRequest(msgspec.Struct, frozen=True):
    status: str
    words: str


def parse_request(head: bytes, hosts: Collection[str]) -> GatewayRequest | RefusedRequest:
    """Parse a request's header, which ends with an empty line."""
    if not head.endswith(_END + _END):
        return RefusedRequest("431 Request Header Fields Too Large", "the header is too long")
    first, *lines = head.removesuffix(_END + _END).split(_END)
    request = _REQUEST.fullmatch(first)
    matches = [match for line in lines if (match := _FIELD.fullmatch(line))]
    fields = [(match[1], match[2]) for match in matches]
    if request is None or len(fields) != len(lines):
        return RefusedRequest("400 Bad Request", "this is not a plain HTTP/1.1 request")
    method, target = request.groups()
    if method in _REFUSED_METHODS:
        return RefusedRequest("405 Method Not Allowed", f"{method.decode()} is not allowed")
    named, slash, path = target[1:].partition(b"/")
    host = named.decode("ascii")
    if host not in hosts or not slash:
        return RefusedRequest("403 Forbidden", "this launch has no key for that host")
    length = _find_length(fields)
    if isinstance(length, RefusedRequest):
        return length
    return GatewayRequest(
        host=host,
        method=method,
        path=b"/" + _drop_parameters(path),
        fields=tuple(
            (name, value) for name, value in fields if name.lower() not in _FRAMING | _CONNECTION
        ),
        length=length,
        expects=any(
            name.lower() == b"expect" and value.lower().strip() == b"100-continue"
            for name, value in fields
        ),
    )


def _find_length(fields: Collection[tuple[bytes, bytes]]) -> int | RefusedRequest | None:
    """Return the body's length, None if it comes in chunks, or a refusal if that is not clear."""
    unclear = RefusedRequest("400 Bad Request", "the length of the request is not clear")
    framing = [(name.lower(), value.strip()) for name, value in fields if name.lower() in _FRAMING]
    if not framing:
        return 0
    if len(framing) > 1:
        return unclear
    ((name, value),) = framing
    if name == b"transfer-encoding":
        return None if value.lower() == b"chunked" else unclear
    return int(value) if _LENGTH.fullmatch(value) else unclear


def _drop_parameters(path: bytes) -> bytes:
    path, mark, query = path.partition(b"?")
    kept = [
        part
        for part in query.split(b"&")
        if unquote(part.partition(b"=")[0].decode("ascii")).lower() not in _PARAMETERS
    ]
    return path + mark + b"&".join(kept)


def render_request(request: GatewayRequest, key: ModelKey) -> bytes:
    """Return the header to send to the host. The connection closes after one request."""
    return b"".join(_render_lines(request, key)) + _END


def _render_lines(request: GatewayRequest, key: ModelKey) -> Iterator[bytes]:
    header = key.header.encode()
    yield request.method + b" " + request.path + b" HTTP/1.1" + _END
    yield b"Host: " + request.host.encode() + _END
    for name, value in request.fields:
        if name.lower() != header.lower() and not _CREDENTIALS.search(name):
            yield name + b": " + value + _END
    yield header + b": " + key.value.encode() + _END
    if request.length is None:
        yield b"Transfer-Encoding: chunked" + _END
    elif request.length or request.method not in {b"GET", b"HEAD"}:
        yield b"Content-Length: " + str(request.length).encode() + _END
    yield b"Connection: close" + _END


def rewrite_answer(head: bytes) -> bytes:
    """Return an answer's header with a connection that closes after it."""
    first, *lines = head.removesuffix(_END + _END).split(_END)
    kept = [
        line
        for line in lines
        if line.partition(b":")[0].strip().lower() not in {b"connection", b"keep-alive"}
    ]
    return _END.join([first, *kept, b"Connection: close"]) + _END + _END


def parse_status(head: bytes) -> int:
    """Return an answer's status, or 0 if it has none."""
    words = head.split(b" ", 2)
    is_answer = len(words) > 1 and words[0].startswith(b"HTTP/1.") and words[1][:3].isdigit()
    return int(words[1][:3]) if is_answer else 0


def parse_chunk_size(line: bytes) -> int | None:
    """Return the size in a chunk's first line, or None if it is not valid."""
    digits = line.removesuffix(_END).partition(b";")[0].strip(b" \t")
    return int(digits, 16) if _SIZE.fullmatch(digits) else None
