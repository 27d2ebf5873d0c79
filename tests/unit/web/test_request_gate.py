"""The gate refuses every request that does not come from our own page with a valid token."""

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from rekindle.web.page_links import PageLinks, PageSessions
from rekindle.web.request_gate import HEADERS, RequestGate

PORT = 18378
OWN = f"http://127.0.0.1:{PORT}"
WRITE = {
    "Origin": OWN,
    "Sec-Fetch-Site": "same-origin",
    "Content-Type": "application/json",
}


async def answer(request):
    return PlainTextResponse("reached")


ROUTES = [Route("/{rest:path}", answer, methods=["GET", "POST", "PUT", "DELETE"])]


@pytest.fixture
def sessions():
    return PageSessions(PageLinks(PORT))


@pytest.fixture
def token(sessions):
    return sessions.open(sessions._links.make_link().partition("#")[2])


def make_client(sessions, *, read_only=False):
    gate = RequestGate(
        Starlette(routes=ROUTES),
        origins=[OWN, "https://agents.example"],
        sessions=sessions,
        read_only=read_only,
    )
    return TestClient(gate, base_url=OWN)


@pytest.fixture
def client(sessions, token):
    client = make_client(sessions)
    client.headers["Authorization"] = f"Bearer {token}"
    return client


@pytest.mark.parametrize(
    "host",
    ["evil.test", f"evil.test:{PORT}", "127.0.0.1", "127.0.0.1:1", "", f"127.0.0.1.evil:{PORT}"],
)
@pytest.mark.parametrize("path", ["/", "/static/app.js", "/api/stream", "/api/session"])
def test_a_foreign_host_is_refused_on_every_route(client, host, path):
    assert client.get(path, headers={"Host": host}).status_code == 421
    assert client.post(path, headers={**WRITE, "Host": host}).status_code == 421


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", "agents.example"])
def test_our_own_hosts_are_accepted(client, host):
    assert client.get("/api/stream", headers={"Host": host}).text == "reached"


def test_pages_need_no_token_and_data_does(sessions):
    client = make_client(sessions)
    for path in ("/", "/a/shop/trades", "/static/app.js"):
        assert client.get(path).text == "reached"
    for path in ("/api/stream", "/api/agent", "/api/session"):
        assert client.get(path).status_code == 401
    assert client.post("/api/act", headers=WRITE).status_code == 401
    assert client.post("/", headers=WRITE).status_code == 401
    assert client.post("/api/session", headers=WRITE).text == "reached"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 200),
        ({"Origin": "https://evil.test"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": None}, 403),
        ({"Origin": "https://agents.example"}, 403),
        ({"Origin": "http://agents.example", "Host": "agents.example"}, 403),
        ({"Origin": "https://agents.example", "Host": "agents.example"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Sec-Fetch-Site": None}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": None}, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
    ],
)
def test_a_write_must_come_from_our_own_page(client, method, change, status):
    headers = {name: value for name, value in {**WRITE, **change}.items() if value is not None}
    assert client.request(method, "/api/act", headers=headers).status_code == status


def test_a_read_only_server_refuses_writes(sessions, token):
    client = make_client(sessions, read_only=True)
    client.headers["Authorization"] = f"Bearer {token}"
    assert client.get("/api/stream").text == "reached"
    assert client.post("/api/act", headers=WRITE).status_code == 403
    assert client.post("/api/session", headers=WRITE).text == "reached"


@pytest.mark.parametrize("path", ["/", "/api/stream"])
@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", "evil.test"])
def test_every_response_has_the_security_headers_and_no_cookie(sessions, path, host):
    response = make_client(sessions).get(path, headers={"Host": host})
    for name, value in HEADERS.items():
        assert response.headers[name] == value
    assert "set-cookie" not in response.headers
    assert "unsafe" not in response.headers["content-security-policy"]


def test_there_are_no_websockets(client):
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/api/stream"):
        pass
