"""The requests that the gateway accepts, and what it sends to the host."""

import pytest

from rekindle.documents.launches.launch_credentials import ModelKey
from rekindle.policy.sandbox.gateway_requests import (
    GatewayRequest,
    RefusedRequest,
    parse_chunk_size,
    parse_request,
    parse_status,
    render_request,
    rewrite_answer,
)

HOST = "api.example.com"
KEY = ModelKey("x-api-key", "sk-real")


def parse(*lines: str, first: str = f"POST /{HOST}/v1/messages HTTP/1.1"):
    return parse_request("\r\n".join((first, *lines, "", "")).encode("latin-1"), {HOST})


def send(*lines: str, **first: str) -> list[str]:
    request = parse(*lines, **first)
    assert isinstance(request, GatewayRequest), request
    return render_request(request, KEY).decode().removesuffix("\r\n\r\n").split("\r\n")


def test_the_request_goes_to_the_host_of_its_path_with_the_key():
    assert send("Host: 127.0.0.1:3128", "X-Api-Key: placeholder", "A: b", "Content-Length: 2") == [
        "POST /v1/messages HTTP/1.1",
        "Host: api.example.com",
        "A: b",
        "x-api-key: sk-real",
        "Content-Length: 2",
        "Connection: close",
    ]


@pytest.mark.parametrize(
    "line",
    [
        *("Authorization: Bearer sk-other", "x-api-key: sk-other", "api-key: sk-other"),
        *("x-goog-api-key: sk-other", "Cookie: session=sk-other", "X-Auth-Key: sk-other"),
        *("X-Amz-Security-Token: sk-other", "Proxy-Authorization: Basic sk-other"),
        *("Host: evil.example.org", "Connection: keep-alive", "Upgrade: websocket", "TE: trailers"),
    ],
)
def test_own_credentials_and_the_connection_are_dropped(line):
    name = line.partition(":")[0].lower()
    sent = send(line)
    assert "sk-other" not in str(sent)
    kept = [one for one in sent if one.lower().startswith(f"{name}:")]
    assert line not in kept
    assert len(kept) <= 1


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("?key=sk-other", "?"),
        ("?alt=sse&key=sk-other", "?alt=sse"),
        ("?%6Bey=sk-other&alt=sse", "?alt=sse"),
        ("?access_token=sk-other&KEY=sk-other", "?"),
        ("?keys=a&b=key", "?keys=a&b=key"),
    ],
)
def test_own_credentials_in_the_query_are_dropped(query, kept):
    assert send(first=f"GET /{HOST}/v1/x{query} HTTP/1.1")[0] == f"GET /v1/x{kept} HTTP/1.1"


@pytest.mark.parametrize(
    ("lines", "length"),
    [
        ((), 0),
        (("Content-Length: 12",), 12),
        (("Transfer-Encoding: chunked",), None),
        (("transfer-encoding: Chunked ",), None),
    ],
)
def test_the_length_of_the_body(lines, length):
    assert parse(*lines).length == length


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: 5", "content-length: 5"),
        ("Content-Length: +5",),
        ("Content-Length: -5",),
        ("Content-Length: 5, 5",),
        ("Content-Length: 0x5",),
        ("Content-Length:",),
        ("Content-Length: ٥".encode().decode("latin-1"),),
        ("Transfer-Encoding: gzip, chunked",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
        ("Transfer-Encoding : chunked",),
        ("Content-Length : 5",),
        (" Content-Length: 5",),
        ("A: b", " folded"),
        ("A: b\rX-Api-Key: sk-other",),
        ("A: b\nX-Api-Key: sk-other",),
        ("A: b\0",),
        ("A",),
        (": b",),
    ],
)
def test_a_request_that_servers_could_read_differently_is_refused(lines):
    refused = parse(*lines)
    assert isinstance(refused, RefusedRequest)
    assert refused.status == "400 Bad Request"


@pytest.mark.parametrize(
    ("first", "status"),
    [
        ("GET / HTTP/1.1", "403"),
        (f"GET /{HOST} HTTP/1.1", "403"),
        ("GET /api.example.org/v1 HTTP/1.1", "403"),
        ("GET /API.example.com/v1 HTTP/1.1", "403"),
        (f"GET /{HOST}:443/v1 HTTP/1.1", "403"),
        (f"GET /{HOST}.evil.org/v1 HTTP/1.1", "403"),
        (f"GET /x@{HOST}/v1 HTTP/1.1", "403"),
        (f"GET //{HOST}/v1 HTTP/1.1", "403"),
        (f"GET https://{HOST}/v1 HTTP/1.1", "400"),
        (f"TRACE /{HOST}/v1 HTTP/1.1", "405"),
        (f"CONNECT /{HOST}/v1 HTTP/1.1", "405"),
        (f"GET /{HOST}/v1 HTTP/1.0", "400"),
        (f"GET /{HOST}/v1 HTTP/1.1 x", "400"),
        (f"GET  /{HOST}/v1 HTTP/1.1", "400"),
        (f"GET /{HOST}/a b HTTP/1.1", "400"),
        (f"GET /{HOST}/ä HTTP/1.1", "400"),
        ("", "400"),
    ],
)
def test_other_hosts_and_forms_are_refused(first, status):
    refused = parse(first=first)
    assert isinstance(refused, RefusedRequest)
    assert refused.status.startswith(status)


def test_a_header_without_an_end_is_too_long():
    refused = parse_request(f"GET /{HOST}/v1 HTTP/1.1\r\nA: {'b' * 70_000}".encode(), {HOST})
    assert isinstance(refused, RefusedRequest)
    assert refused.status.startswith("431")


def test_a_client_that_waits_for_permission():
    assert parse("Expect: 100-continue", "Content-Length: 1").expects
    assert not any(line.lower().startswith("expect") for line in send("Expect: 100-continue"))


def test_an_answer_passes_unchanged_except_for_its_connection():
    head = (
        b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 30\r\nConnection: keep-alive\r\n"
        b"anthropic-ratelimit-unified-reset: 1\r\nKeep-Alive: timeout=5\r\n\r\n"
    )
    assert rewrite_answer(head) == (
        b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 30\r\n"
        b"anthropic-ratelimit-unified-reset: 1\r\nConnection: close\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("head", "status"),
    [(b"HTTP/1.1 529 x", 529), (b"HTTP/1.0 200", 200), (b"SSH-2.0 200", 0), (b"", 0)],
)
def test_the_status_of_an_answer(head, status):
    assert parse_status(head) == status


@pytest.mark.parametrize(
    ("line", "size"),
    [
        (b"1a\r\n", 26),
        (b"0;name=value\r\n", 0),
        (b"\r\n", None),
        (b"-1\r\n", None),
        (b"+1\r\n", None),
        (b"0x1\r\n", None),
        (b"1_0\r\n", None),
        (b"123456789\r\n", None),
    ],
)
def test_the_size_of_a_chunk(line, size):
    assert parse_chunk_size(line) == size
