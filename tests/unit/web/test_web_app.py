"""The routes of `rekindle ui`, called inside this process."""

import gzip
import json
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from rekindle import web
from rekindle.documents.screens.agent_row import STATES, AgentRow, AgentState
from rekindle.policy.redact.redaction import Redaction
from rekindle.web import page_data
from rekindle.web.project_rows import WebProjects
from rekindle.web.web_app import make_app
from rekindle.web.web_row import encode_answer, encode_row

OWN = "http://127.0.0.1:18379"
STATIC = Path(web.__file__).parent / "static"
SECRET = "ghp_" + "R4tX9kQ2mZ7vB1nC8sD3fG6hJ5lP0wY2aE4u"


@pytest.mark.parametrize("path", ["/", "/open", "/a/shop/trades", "/search", "/morning", "/runs"])
def test_every_page_is_the_shell(page, path):
    response = page.get(path)
    assert response.headers["content-type"].startswith("text/html")
    assert "<main" in response.text


def test_a_link_opens_one_session(page, links):
    token = links.make_link().partition("#")[2]
    assert page.post("/api/session", json={"link": token}).status_code == 200
    again = page.post("/api/session", json={"link": token})
    assert (again.status_code, again.json()["hint"]) == (401, "run `rekindle ui --link`")


@pytest.mark.parametrize("body", ["", "{", "[]", '{"link": 3}', '{"other": "x"}'])
def test_a_malformed_request_is_refused(page, body):
    headers = {"Content-Type": "application/json"}
    assert page.post("/api/session", content=body, headers=headers).status_code == 400


def test_a_large_request_is_refused(page):
    response = page.post("/api/session", json={"link": "x" * 2_000_000})
    assert (response.status_code, response.json()["error"]) == (400, "the text is too long")


@pytest.mark.parametrize("hours", ["", "-1", "1e3", "9" * 5000])
def test_a_number_that_cannot_be_read_is_refused(page, hours):
    response = page.get(f"/api/night?project=shop&agent=trades&hours={hours}")
    assert (response.status_code, response.json()["hint"]) == (400, "reload the page")


def test_a_bug_is_explained_on_the_page(project, links, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(page_data, "read_runs", fail)
    app = make_app(WebProjects(project), links, [OWN], read_only=False)
    with TestClient(app, base_url=OWN, raise_server_exceptions=False) as page:
        own = {"Origin": OWN, "Sec-Fetch-Site": "same-origin"}
        token = {"link": links.make_link().partition("#")[2]}
        session = page.post("/api/session", json=token, headers=own).json()["session"]
        response = page.get("/api/runs", headers={"Authorization": f"Bearer {session}"})
    assert response.status_code == 500
    assert response.json()["error"] == "the server failed: ZeroDivisionError"


def test_the_server_describes_itself(page):
    facts = page.get("/api/server").json()
    assert facts["read_only"] is False
    assert facts["actions"]["stop"] == ["stop", "AGENT"]


def read_rows(projects):
    return [json.loads(row) for batch in projects.read() for row in batch.values()]


def test_the_rows_are_those_of_all_agents(project):
    projects = WebProjects(project)
    rows = read_rows(projects)
    assert [(row["project"], row["agent"], row["state"]) for row in rows] == [
        ("shop", "trades", "stopped"),
        ("shop", "docs", "stopped"),
    ]


def test_an_unchanged_row_is_encoded_once(project):
    projects = WebProjects(project)
    [first], [second] = projects.read(), projects.read()
    assert first == second


def test_a_changed_manifest_is_read_again(project):
    projects = WebProjects(project)
    read_rows(projects)
    manifest = project / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace("docs", "books"))
    assert [row["agent"] for row in read_rows(projects)] == ["trades", "books"]


def test_a_broken_manifest_is_one_row_with_the_reason(project):
    (project / "rekindle.yaml").write_text("version: 1\nagents: 3\n")
    [row] = read_rows(WebProjects(project))
    assert (row["agent"], row["state"]) == ("-", "broken")
    assert "agents" in row["why"]


@pytest.mark.parametrize("state", STATES)
def test_a_row_has_the_words_of_every_other_screen(state: AgentState):
    row = json.loads(encode_row("shop", AgentRow(agent="a", state=state), Redaction()))
    assert row["state"] == state
    assert row.get("needs", False) is STATES[state].needs_person


def test_every_state_has_its_colours_and_its_mark():
    style, core = (STATIC / "style.css").read_text(), (STATIC / "core.js").read_text()
    light, _, dark = style.partition("prefers-color-scheme: dark")
    for state, look in STATES.items():
        assert look.light in light
        assert look.dark in dark
        assert f".state-{state.replace(' ', '-')}" in style
        assert re.search(rf'MARKS = .*"?{state}"?: ', core)


def test_no_secret_leaves_the_server():
    row = AgentRow(agent="a", state="running", reason=f"uses {SECRET}", next_action=SECRET)
    assert SECRET.encode() not in encode_row("shop", row, Redaction())
    assert SECRET.encode() not in encode_answer({"lines": [f"token {SECRET}"]}, Redaction())


def test_scripts_and_styles_are_small():
    """They need less than 60 kB, compressed."""
    files = [path for path in STATIC.iterdir() if path.suffix in {".js", ".css"}]
    assert STATIC / "uplot.js" in files
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < 60_000


def test_no_script_can_turn_text_into_elements():
    """The pages set text only as text, and load nothing from elsewhere."""
    unsafe = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|style=")
    for path in STATIC.iterdir():
        text = path.read_text()
        assert not unsafe.search(text), path.name
        if path.name not in {"uplot.js", "core.js"}:
            assert "://" not in text, path.name
        if path.name != "uplot.js":
            assert len(text.splitlines()) <= 400, path.name
