"""The recorded night on the pages of `rekindle ui`, on a phone, a tablet and a desk."""

import pytest

from browser.test_attacks import list_answers, open_agents
from loopback import install
from prerequisites import refuse
from recorded_night import ask_permission
from rekindle.api.home import Home
from rekindle.documents import events
from ui_server import serve_pages

WIDTHS = (375, 768, 1440)
AGENT = "/a/shop/trades"
PAGES = {
    "/": "tr[data-key='shop/trades']",
    f"{AGENT}#relay": "#panel pre",
    f"{AGENT}#loops": "#panel strong",
    f"{AGENT}#output": "#panel pre.output",
    "/search?q=validation": ".hits pre",
    "/morning": "article",
    "/runs": "h1",
}
"""Addresses, and a part that shows that the page is complete."""
RULES = """
async (more) => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"], ...more });
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
}
"""


SCHEMES = {"light": {}, "dark": {"runOnly": ["color-contrast"]}}
"""Color schemes, and the checks to run. Only the contrast depends on the colors."""


@pytest.fixture(scope="module")
def axe():
    """Return the source of the accessibility checks."""
    try:
        return install.program(install.AXE).read_text()
    except install.UnavailableError as error:
        refuse(str(error))


def load_page(page, address, part):
    """Open an address, and wait for a part of the page."""
    page.goto("about:blank")  # an address that differs only in its fragment loads nothing
    page.goto(address)
    page.wait_for_selector(part)


def check_page(page, axe, checks=None):
    """Return what is wrong with a page at any width."""
    found = []
    page.evaluate(axe)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        found += [f"{width} px: {one}" for one in page.evaluate(RULES, checks or {})]
        wide = page.evaluate("document.documentElement.scrollWidth")
        found += [f"{width} px: {wide} px wide"] if wide > width else []
    return found


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_page_is_accessible(ui, visit, axe, scheme):
    """The checks find nothing at any width, no page scrolls sideways, and no console has errors."""
    visitor = visit(color_scheme=scheme)
    page = open_agents(visitor, ui)
    found = {}
    for path, part in PAGES.items():
        load_page(page, f"{ui.origin}{path}", part)
        found[path] = check_page(page, axe, SCHEMES[scheme])
    page.goto(f"{ui.origin}/")
    page.click("button[data-action=answer]")
    found["dialog"] = check_page(page, axe, SCHEMES[scheme])
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert visitor.errors == []


def test_the_checks_find_mistakes(plain, visit, axe):
    plain.page = b"<!doctype html><p style='width: 2000px; color: #eee'>low<img src='data:,'>"
    found = "\n".join(check_page(visit().open(plain.origin), axe))
    for name in ("color-contrast", "image-alt", "375 px: 20"):
        assert name in found


def test_a_permission_is_given_and_a_message_sent_in_the_browser(night, visit):
    """The list shows that an agent asks while it works; its page has a button for each choice."""
    ask_permission(night, "docs")
    with serve_pages(night) as server:
        visitor = visit(viewport={"width": 375, "height": 800})
        page = open_agents(visitor, server)
        page.click("li.need:has-text('docs') a:has-text('see it and answer')")
        page.click("section.question:has-text('git push') button:has-text('allow')")
        assert "rekindle answer docs-1 allow" in page.inner_text("pre.command")
        page.click("dialog button[type=submit]")
        page.wait_for_selector("section.question:has-text('git push')", state="detached")
        page.click("button[data-action=tell]")
        page.fill("#action-text", "Ten an hour")
        assert "rekindle tell docs 'Ten an hour'" in page.inner_text("pre.command")
        page.click("dialog button[type=submit]")
        page.wait_for_selector("dialog", state="hidden")
        recorded = [*Home(night).agent("docs").events()]
        answers = [one for one in recorded if isinstance(one, events.QuestionAnswered)]
        assert [one.choice for one in answers if one.question == "docs-1"] == ["allow"]
        assert [one.text for one in recorded if isinstance(one, events.MessageSent)] == [
            "Ten an hour"
        ]
        assert visitor.errors == []


def test_a_question_is_answered_in_the_browser(night, visit):
    """The page shows the command, and the answer is in the log."""
    with serve_pages(night) as server:
        visitor = visit(viewport={"width": 375, "height": 800})
        page = open_agents(visitor, server)
        page.click("li.need:has-text('trades') button[data-action=answer]")
        page.fill("#action-text", "Ten an hour, as agreed")
        assert "rekindle answer trades 'Ten an hour, as agreed'" in page.inner_text("pre.command")
        page.click("dialog button[type=submit]")
        page.wait_for_selector("dialog", state="hidden")
        page.wait_for_selector("li.need:has-text('trades')", state="detached")
        assert list_answers(night)[-1] == "Ten an hour, as agreed"
        assert visitor.errors == []


def test_a_read_only_server_shows_no_actions(night, visit):
    """The same pages have no buttons, keys do nothing, and a request is refused."""
    with serve_pages(night, "--read-only") as server:
        visitor = visit()
        page = open_agents(visitor, server)
        page.focus("tr[data-key='shop/docs'] a")
        page.keyboard.press("s")
        for path in ("/", AGENT, f"{AGENT}#loops"):
            load_page(page, f"{server.origin}{path}", PAGES.get(path, ".lines li"))
            assert page.locator("[data-action]").count() == 0
            assert page.locator("dialog[open]").count() == 0
        headers = server.own_headers(server.open_session())
        body = '{"id": "1", "project": "shop", "agent": "docs", "action": "stop"}'
        assert server.request("/api/act", body, headers=headers).status == 403
        assert Home(night).agent("docs").row().state == "running"
