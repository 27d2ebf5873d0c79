"""The morning page: all that was said is text in it, and nothing is loaded."""

import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents.screens import morning_page
from rekindle.documents.screens.morning_page import (
    MorningEntry,
    MorningPage,
    NightLine,
    PersonRequest,
)

HOSTILE = '<img src=//evil.example onerror="x()"></style><script>alert(1)</script>&amp; javascript:'


def page(text=HOSTILE):
    entry = MorningEntry(
        agent="trades",
        state="needs you",
        why=text,
        done=(text, "two"),
        next=text,
        asks=(PersonRequest(text, text), PersonRequest("and?")),
        loops=text,
        night=(NightLine(text, text, "crash"),),
        open_loops=(text,),
        cost=text,
        brief=text,
    )
    return MorningPage(project=text, written=text, entries=(entry,), cost=text)


class Reader(HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


def test_what_was_said_is_text_and_nothing_else():
    plain = Reader(morning_page.render_html(page("words")))
    hostile = Reader(morning_page.render_html(page()))
    assert hostile.tags == plain.tags
    assert hostile.attributes == plain.attributes
    assert HOSTILE in hostile.text


@given(st.text(st.characters(exclude_characters="`"), min_size=1, max_size=40))
def test_no_text_makes_a_tag(text):
    plain = Reader(morning_page.render_html(page("words")))
    assert Reader(morning_page.render_html(page(text))).tags == plain.tags


def test_names_between_backticks_are_shown_as_code_and_stay_text():
    found = Reader(morning_page.render_html(page("`<b>` and `x`")))
    assert "b" not in found.tags
    assert "<b> and x" in found.text


def test_nothing_is_loaded_from_anywhere():
    text = morning_page.render_html(page("words"))
    assert not re.search(r"""(?:src=|href|url\(|@import|<script|<link|<iframe)""", text)
    assert "default-src 'none'" in text
    assert 'content="width=device-width' in text
    assert "prefers-color-scheme: dark" in text


def test_a_terminal_shows_the_same():
    found = MorningPage(
        project="books",
        written="Monday, 2026-02-16 06:30",
        cost="$1.20",
        entries=(
            MorningEntry(
                agent="a", state="done", why="until passed", done=("one", "two"), next="rest"
            ),
            MorningEntry(agent="b", state="stopped", why=""),
            MorningEntry(
                agent="c",
                state="needs you",
                why="?",
                asks=(PersonRequest("Which?", "rekindle answer c TEXT"),),
            ),
        ),
    )
    assert (
        morning_page.render(found)
        == """\
books — Monday, 2026-02-16 06:30
3 agents, 1 waits for you, $1.20

a: done (until passed)
  done:     one
            two
  next:     rest

b: stopped

c: needs you (?)
  for you:  Which? → rekindle answer c TEXT
"""
    )
    assert "nothing is waiting for you" in morning_page.render_headline(
        MorningPage(project="p", written="w", entries=())
    )
