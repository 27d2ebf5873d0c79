"""Attacks on `rekindle ui` from a real browser and from the same host.

Each test first shows that the attack works against a server without protection.
"""

import json
import os
import stat

import pytest

from chromium import FOREIGN
from rekindle.api.home import Home
from rekindle.documents import events
from rekindle.system.files import user_folder
from rekindle.web.web_app import WebApp

ANSWER = {"project": "shop", "agent": "trades", "action": "answer"}
PAGES = ("/", "/open", "/static/app.js", "/a/shop/trades")
ATTACKERS = ("127.0.0.1", "localhost", FOREIGN)
"""Names of the attacker's page, which is on another port."""
SEND = """
async ([address, type, body, headers]) => {
  const options = body === null ? {} : { method: "POST", body };
  const sent = type ? { ...headers, "Content-Type": type } : headers;
  try {
    const response = await fetch(address, { ...options, headers: sent, mode: options.method && !headers.Authorization ? "no-cors" : "cors" });
    return [response.status, await response.text()];
  } catch (error) {
    return [-1, String(error)];
  }
}
"""  # noqa: E501
STORED = 'localStorage.getItem("rekindle.session")'


def send(page, address, *, body=None, content_type="", headers=None):
    """Send a request from a page; the status is 0 or -1 if the page may not read the answer."""
    return page.evaluate(SEND, [address, content_type, body, headers or {}])


def make_answer(text="attacker"):
    return json.dumps({"id": text, **ANSWER, "text": text})


def list_answers(project):
    """Return the answers in the log of the agent that asks."""
    recorded = Home(project).agent("trades").events()
    return [one.text for one in recorded if isinstance(one, events.QuestionAnswered)]


def list_paths(*, writes):
    """Return the paths of all routes that read, or write, data."""
    routes = WebApp(None, None, read_only=False).make_routes()
    found = [one for one in routes if one.path.startswith("/api/")]
    return sorted(one.path for one in found if ("POST" in one.methods) == writes)


def open_agents(visitor, server):
    """Open the list of agents with a new link, and wait for a row."""
    page = visitor.open(server.make_link())
    page.wait_for_selector("tr[data-key='shop/trades']")
    return page


def test_a_rebound_name_is_refused(ui, plain, visit):
    """A foreign name that resolves to 127.0.0.1 gets no page, no data and no session."""
    visitor = visit()
    assert visitor.open(f"{plain.name_origin(FOREIGN)}/").inner_text("p") == "plain"
    page, link = visitor.context.new_page(), ui.make_link()
    for path in PAGES:
        response = page.goto(f"http://{FOREIGN}:{ui.port}{path}")
        assert (response.status, "another name" in response.text()) == (421, True)
    for path in list_paths(writes=False):
        assert send(page, path)[0] == 421
    opened = json.dumps({"link": link.partition("#")[2]})
    headers = {"Authorization": f"Bearer {ui.open_session()}"}
    for body in (opened, make_answer()):
        for path in list_paths(writes=True):
            reply = send(page, path, body=body, content_type="application/json", headers=headers)
            assert reply[0] == 421
    assert "attacker" not in list_answers(ui.project)
    assert ui.open_session(link), "the refused requests have not used the link"


@pytest.mark.parametrize("name", ATTACKERS)
def test_a_page_of_another_server_cannot_write(ui, plain, visit, name):
    """A page on another port cannot answer a question, with a script or with a form."""
    visitor = visit()
    page = visitor.open(f"{plain.name_origin(name)}/")
    send(page, f"{plain.origin}/", body=make_answer(), content_type="text/plain")
    assert json.loads(plain.posts[-1])["text"] == "attacker", "a server without protection accepts"
    for path in list_paths(writes=True):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json"):
            send(page, f"{ui.origin}{path}", body=make_answer(), content_type=kind)
    page.evaluate(
        """([action, value]) => {
          const form = Object.assign(document.createElement("form"), { action, method: "post", enctype: "text/plain" });
          const input = Object.assign(document.createElement("input"), { name: value.slice(0, -1) + ', "x": "', value: '"}' });
          form.append(input);
          document.body.append(form);
          form.submit();
        }""",  # noqa: E501
        [f"{ui.origin}/api/act", make_answer()],
    )
    page.wait_for_url(f"{ui.origin}/api/act")
    assert "does not come from our own page" in page.content()
    assert "attacker" not in list_answers(ui.project)


def test_a_token_alone_is_not_enough_to_write(ui):
    """A write with a valid token is refused if another page sends it."""
    own = ui.own_headers(ui.open_session())
    foreign = f"http://{FOREIGN}:{ui.port}"
    for origin in (foreign, "http://127.0.0.1:1", "http://localhost", "null", ""):
        assert ui.request("/api/act", "{}", headers={**own, "Origin": origin}).status == 403
    for site in ("same-site", "cross-site", "none", ""):
        assert ui.request("/api/act", "{}", headers={**own, "Sec-Fetch-Site": site}).status == 403
    assert ui.request("/api/act", "{}", headers=own).status == 400, "it has no other fault"


@pytest.mark.parametrize("name", ATTACKERS)
def test_a_page_of_another_server_cannot_read(ui, plain, visit, name):
    """A page on another port gets no data, no token, no script and no frame."""
    visitor = visit()
    own = open_agents(visitor, ui)
    token = own.evaluate(STORED)
    assert token
    assert visitor.context.cookies() == []
    page = visitor.open(f"{plain.name_origin(name)}/")
    assert page.evaluate(STORED) is None
    plain.headers = {"Access-Control-Allow-Origin": "*"}
    assert send(page, f"{plain.origin}/") == [200, plain.page.decode()]
    for path in (*PAGES, *list_paths(writes=False)):
        for headers in ({}, {"Authorization": f"Bearer {token}"}):
            assert send(page, f"{ui.origin}{path}", headers=headers)[0] == -1
    load = """(address) => new Promise((done) => {
      const script = Object.assign(document.createElement("script"), { src: address });
      script.onload = () => done(true);
      script.onerror = () => done(false);
      document.body.append(script);
    })"""
    assert page.evaluate(load, f"{plain.origin}/app.js") is True
    assert page.evaluate(load, f"{ui.origin}/static/uplot.js") is False
    frame = """(address) => new Promise((done) => {
      const frame = Object.assign(document.createElement("iframe"), { src: address });
      frame.onload = () => done();
      document.body.append(frame);
    })"""
    page.evaluate(frame, f"{plain.origin}/?framed")
    page.evaluate(frame, f"{ui.origin}/")
    framed = {one.url: one.content() for one in page.frames if one != page.main_frame}
    assert "plain" in framed.pop(f"{plain.origin}/?framed")
    assert not any("<main" in content for content in framed.values())


def test_another_user_can_read_nothing(ui):
    """A client on this host without a token gets pages without data, and nothing else."""
    session = ui.open_session()
    given = ui.request("/api/server", headers={"Authorization": f"Bearer {session}"})
    assert given.status == 200, "with the token, the data can be read"
    tokens = ("", "Bearer ", "Bearer x", f"Basic {session}", session, f"bearer {session}")
    for path in list_paths(writes=False):
        for token in tokens:
            assert ui.request(path, headers={"Authorization": token}).status == 401
        for query in ("?project=shop&agent=trades", f"?token={session}", f"?session={session}"):
            assert ui.request(path + query, headers={}).status == 401
        cookie = {"Cookie": f"session={session}; rekindle.session={session}"}
        assert ui.request(path, headers=cookie).status == 401
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert ui.request("/api/act", method=method, headers=ui.own_headers()).status == 401
    forged = ui.request("/api/act", make_answer(), headers=ui.own_headers())
    assert forged.status == 401
    assert "attacker" not in list_answers(ui.project)
    for path in PAGES:
        page = ui.request(path, headers={})
        assert (page.status, b"trades" in page.body) == (200, False)


def test_another_user_cannot_find_a_link(ui):
    ui.make_link()
    folder = user_folder.make_user_folder("ui", str(ui.port))
    assert len(list(folder.iterdir())) > 1, "there is a link besides the lock"
    for path in (folder, *folder.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_text_that_is_not_json_is_refused(ui, visit):
    """Even our own page can send only JSON."""
    page = open_agents(visit(), ui)
    headers = {"Authorization": f"Bearer {page.evaluate(STORED)}"}
    for kind in ("text/plain", "application/x-www-form-urlencoded", "text/json", "*/*"):
        reply = send(page, "/api/act", body=make_answer(), content_type=kind, headers=headers)
        assert reply[0] == 415
    assert "attacker" not in list_answers(ui.project)
    body, kind = make_answer("ten"), "application/json"
    assert send(page, "/api/act", body=body, content_type=kind, headers=headers)[0] == 200
    assert "ten" in list_answers(ui.project), "as JSON, such a request is accepted"


def test_a_link_opens_the_pages_once(ui, visit):
    link = ui.make_link()
    first = visit().open(link)
    first.wait_for_selector("tr[data-key]")
    assert first.url == f"{ui.origin}/", "the token is not in the address"
    second = visit().open(link)
    second.wait_for_selector("h1:text('This page needs a new link')")
    assert second.evaluate(STORED) is None
    first.reload()
    first.wait_for_selector("tr[data-key]")


def test_an_expired_link_does_not_open_the_pages(ui, visit):
    """A link that is older than a minute is refused, and cannot be used later."""
    folder = user_folder.make_user_folder("ui", str(ui.port))
    before = set(folder.iterdir())
    link = ui.make_link()
    [created] = set(folder.iterdir()) - before
    status = created.stat()
    os.utime(created, (status.st_atime, status.st_mtime - 62))
    page = visit().open(link)
    page.wait_for_selector("p:text('The link has expired or was already used.')")
    assert not created.exists()


def test_a_session_ends_with_the_server(ui, visit):
    """A token of an earlier server opens nothing."""
    page = open_agents(visit(), ui)
    page.evaluate("localStorage.setItem('rekindle.session', 'of an earlier server')")
    page.goto(f"{ui.origin}/a/shop/trades")
    page.wait_for_selector("h1:text('This page needs a new link')")
    page.wait_for_load_state()
    assert "Ten or a hundred" not in page.content()
