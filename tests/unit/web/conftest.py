"""A server of `rekindle ui` in the process of a test, and a page that uses it."""

import shutil

import pytest
from starlette.testclient import TestClient

from rekindle.system.files import user_folder
from rekindle.web.page_links import PageLinks
from rekindle.web.project_rows import WebProjects
from rekindle.web.web_app import make_app

PORT = 18379
OWN = f"http://127.0.0.1:{PORT}"
MANIFEST = """\
version: 1
agents:
  trades: {harness: command, command: ["true"]}
  docs: {harness: command, command: ["true"]}
"""


@pytest.fixture
def project(tmp_path):
    """Return a project, and hide the projects of other tests from the register."""
    shutil.rmtree(user_folder.make_user_folder() / "projects", ignore_errors=True)
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "rekindle.yaml").write_text(MANIFEST)
    return folder


@pytest.fixture
def links():
    return PageLinks(PORT)


@pytest.fixture
def open_page(project, links):
    """Open a page of a server, with a valid token."""
    opened = []

    def open_one(*, read_only=False):
        app = make_app(WebProjects(project), links, [OWN], read_only=read_only)
        client = TestClient(app, base_url=OWN).__enter__()
        opened.append(client)
        client.headers.update({"Origin": OWN, "Sec-Fetch-Site": "same-origin"})
        token = links.make_link().partition("#")[2]
        session = client.post("/api/session", json={"link": token}).json()["session"]
        client.headers["Authorization"] = f"Bearer {session}"
        return client

    yield open_one
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def page(open_page):
    return open_page()
