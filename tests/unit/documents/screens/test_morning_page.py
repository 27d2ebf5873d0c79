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


FULL = MorningEntry(
    agent="c",
    state="needs you",
    label="out of budget",
    why="its `budget` is <spent>",
    done=("one",),
    next="rest",
    asks=(
        PersonRequest("Which?", "rekindle answer c A", ("B", "C")),
        PersonRequest("And?"),
    ),
    night=(
        NightLine("02:10", "crashed", "crash"),
        NightLine("earlier", "and 3 more: rekindle logs c"),
        NightLine("", "quiet"),
    ),
    loops="2 open",
    open_loops=("tax: File it", "and 4 more: rekindle loops c"),
    refused="1 call",
    cost="$0.50",
    brief="06:00: rekindle brief c",
)


def test_everything_about_an_agent_on_a_terminal():
    """Each label once, and the lines of a list below each other."""
    found = morning_page.render(MorningPage(project="p", written="w", entries=(FULL,)))
    assert (
        found
        == """\
p — w
1 agent, 1 waits for you

c: out of budget (its `budget` is <spent>)
  done:     one
  next:     rest
  for you:  Which? → rekindle answer c A  (or: B, C)
            And?
  night:    02:10  crashed
            earlier  and 3 more: rekindle logs c
            quiet
  loops:    2 open
            tax: File it
            and 4 more: rekindle loops c
  refused:  1 call
  cost:     $0.50
  brief:    06:00: rekindle brief c
"""
    )


def read_articles(*entries, **fields):
    """Return the HTML between the tags of `main`."""
    text = morning_page.render_html(
        MorningPage(project="p", written="w", entries=entries, **fields)
    )
    return text.partition("<main>\n")[2].partition("\n</main>")[0]


def test_everything_about_an_agent_in_html():
    """In the order of importance: requests before results, and facts at the end."""
    assert (
        read_articles(FULL)
        == """\
<article class="needs-you">
<h2>c <span class="mood">out of budget</span></h2>
<p class="why"><bdi>its <code>budget</code> is &lt;spent&gt;</bdi></p>
<section class="asks"><h3>Waiting for you</h3>
<ul>
<li><bdi>Which?</bdi><br><code>rekindle answer c A</code> (or: B, C)</li>
<li><bdi>And?</bdi></li>
</ul></section>
<section class="done"><h3>Done</h3>
<ul>
<li><bdi>one</bdi></li>
</ul></section>
<section><h3>Next</h3><p><bdi>rest</bdi></p></section>
<section class="open"><h3>Open loops</h3>
<ul>
<li><bdi>tax: File it</bdi></li>
<li><bdi>and 4 more: rekindle loops c</bdi></li>
</ul></section>
<section class="night"><h3>The night</h3>
<ol>
<li class="crash"><time>02:10</time><span><bdi>crashed</bdi></span></li>
<li class="more"><time>earlier</time><span><bdi>and 3 more: rekindle logs c</bdi></span></li>
<li class="more"><time></time><span><bdi>quiet</bdi></span></li>
</ol></section>
<dl>
<dt>Loops</dt><dd>2 open</dd>
<dt>Refused</dt><dd>1 call</dd>
<dt>Cost</dt><dd>$0.50</dd>
<dt>Brief</dt><dd>06:00: rekindle brief c</dd>
</dl>
</article>"""
    )


def test_an_agent_without_anything_to_tell_in_html():
    """No empty sections; a reason that is also the request is shown once."""
    stopped = MorningEntry(agent="b", state="stopped", why="")
    assert read_articles(stopped) == (
        '<article class="stopped">\n<h2>b <span class="mood">stopped</span></h2>\n</article>'
    )
    asking = MorningEntry(agent="b", state="done", why="Why?", asks=(PersonRequest("Why?"),))
    assert read_articles(asking).count("Why?") == 1
    assert read_articles() == "<p>No agents yet.</p>"


def test_the_headline():
    """The number of agents, of those that wait for a person, and the cost."""
    asking = MorningEntry(agent="b", state="needs you", why="", asks=(PersonRequest("?"),))
    quiet = MorningEntry(agent="b", state="running", why="")
    for entries, expected in (
        ((quiet,), "1 agent, nothing is waiting for you, $2"),
        ((asking, quiet), "2 agents, 1 waits for you, $2"),
        ((asking, quiet, asking), "3 agents, 2 wait for you, $2"),
    ):
        found = MorningPage(project="p", written="w", entries=entries, cost="$2")
        assert morning_page.render_headline(found) == expected


def test_the_pages_of_several_projects():
    """Agents that ask come first, and each command starts in the folder of its project."""
    quiet = MorningEntry(agent="a", state="running", why="")
    pages = {
        "/x/one two": MorningPage(project="one", written="06:30", entries=(quiet, FULL), cost="$1"),
        "/x/three": MorningPage(project="three", written="06:31", entries=(quiet,)),
    }
    found = morning_page.merge(pages)
    assert (found.project, found.written, found.cost) == ("All projects", "06:31", "one: $1")
    assert [entry.agent for entry in found.entries] == ["one/c", "one/a", "three/a"]
    first = found.entries[0]
    lead = "cd '/x/one two' && rekindle"
    assert first.asks == (
        PersonRequest("Which?", f"{lead} answer c A", ("B", "C")),
        PersonRequest("And?"),
    )
    assert first.brief == f"06:00: {lead} brief c"
    assert [moment.text for moment in first.night] == [
        *("crashed", f"and 3 more: {lead} logs c", "quiet"),
    ]
    assert first.open_loops == ("tax: File it", f"and 4 more: {lead} loops c")
    assert morning_page.merge({}) == MorningPage(project="All projects", written="", entries=())


def test_only_the_commands_of_rekindle_start_in_a_folder():
    """The text of an agent stays as it is, even if it looks like a command."""
    entry = MorningEntry(
        agent="a",
        state="running",
        why="",
        night=(NightLine("02:10", "said: rekindle logs"),),
        open_loops=("tax: rekindle loops",),
    )
    page = MorningPage(project="p", written="w", entries=(entry,))
    (found,) = morning_page.merge({"/x": page}).entries
    assert found.night == entry.night
    assert found.open_loops == entry.open_loops
