"""Text of agents and people with markup is shown as text on every page of `rekindle ui`."""

import shutil
from urllib.parse import quote

import pytest

from browser.hostile_night import FIELDS, FOLDER, make_markup, write_hostile_night
from rekindle.system.files import user_folder
from ui_server import serve_pages

AGENT = f"/a/{quote(FOLDER, safe='')}/trades"
TABS = {
    "relay": "pre.diff, .relay, pre",
    "loops": "h3",
    "decisions": "li",
    "transcript": ".hits pre",
    "output": "pre.output",
}
"""What each tab of the agent's page shows."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Return a server for a project in which every text contains markup."""
    shutil.rmtree(user_folder.make_user_folder() / "projects", ignore_errors=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REKINDLE_TRUST", "1")
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        with serve_pages(write_hostile_night(tmp_path_factory.mktemp("night"))) as server:
            yield server


def list_executed(page):
    """Return the scripts that ran, and the markup that is part of the page."""
    elements = "document.querySelectorAll('img, b, main script')"
    return page.evaluate(f"[...executed, ...violations, ...{elements}].map(String)")


def test_the_markup_runs_where_it_is_not_escaped(plain, visit):
    """The markup runs on a plain page, and our policy would report it."""
    text = "".join(map(make_markup, FIELDS)) + FOLDER[4:]
    plain.page = f"<!doctype html><title>title</title><main>{text}</main>".encode()
    page = visit().open(plain.origin)
    page.wait_for_function(f"executed.length >= {2 * len(FIELDS) + 1}")
    assert {*FIELDS, "title"} == set(page.evaluate("executed"))
    plain.headers = {"Content-Security-Policy": "default-src 'self'"}
    page.reload()
    page.wait_for_function("violations.length > 0")
    assert len(list_executed(page)) > len(FIELDS)


def test_markup_is_shown_as_text(hostile, visit):
    """No script runs on any page, and the texts are there."""
    visitor = visit()
    page = visitor.open(hostile.make_link())
    page.wait_for_selector("tr[data-key]")
    texts = [page.inner_text("body")]
    assert list_executed(page) == []
    page.click("button[data-action=answer]")
    texts.append(page.inner_text("dialog"))
    page.goto(hostile.origin + AGENT)
    page.wait_for_selector(".lines li")
    texts.append(page.inner_text("body"))
    for tab, part in TABS.items():
        page.click(f"#tab-{tab}")
        if tab == "transcript":
            page.fill("#panel input", "shown")
            page.press("#panel input", "Enter")
        page.wait_for_selector(f"#panel :is({part})")
        texts.append(page.inner_text("#panel"))
        assert list_executed(page) == []
    page.goto(f"{hostile.origin}/search?q=onerror")
    page.wait_for_selector(".hits pre")
    texts.append(page.inner_text("body"))
    assert list_executed(page) == []
    for path in ("/morning", "/runs"):
        page.goto(hostile.origin + path)
        page.wait_for_selector("h1")
        texts.append(page.inner_text("body"))
        assert list_executed(page) == []
    shown = "\n".join(texts)
    hidden = [field for field in FIELDS if f"push('{field}')" not in shown]
    assert hidden == []
    assert FOLDER in shown
    assert visitor.errors == []
