"""The morning page: every agent on one page, as plain text or as a single HTML file.

Text from agents, models and files is always escaped, and the HTML file loads no other resources.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from html import escape

import msgspec

from rekindle.documents.screens.agent_row import (
    STATES,
    AgentState,
    render_command,
)
from rekindle.formats.counts import render_count

_CODE = re.compile(r"`([^`]+)`")
EARLIER = "earlier"
"""Text in the time column for the line that counts the hidden events."""
_MORE_LOOPS = re.compile(r"and \d+ more: rekindle ")


class PersonRequest(msgspec.Struct, frozen=True):
    """A request to a person, with the command that answers it."""

    text: str
    command: str = ""
    others: tuple[str, ...] = ()
    """Answers other than the one in `command`."""


class NightLine(msgspec.Struct, frozen=True):
    """A line about one event of the night."""

    at: str
    text: str
    kind: str = ""
    """CSS class of the event's marker."""


class MorningEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One agent on the morning page."""

    agent: str
    state: AgentState
    why: str
    """Why the agent stopped, or what it is working on."""
    done: tuple[str, ...] = ()
    next: str = ""
    asks: tuple[PersonRequest, ...] = ()
    night: tuple[NightLine, ...] = ()
    """Events since the previous morning."""
    loops: str = ""
    """Number of open loops, as text."""
    open_loops: tuple[str, ...] = ()
    """Open loops that are not part of a request."""
    refused: str = ""
    """Number of tool calls that were refused, as text."""
    cost: str = ""
    brief: str = ""
    """Time at which the agent's brief was written; empty if there is none."""
    label: str = ""
    """Outcome of the agent's run, or its state."""


class MorningPage(msgspec.Struct, frozen=True, kw_only=True):
    project: str
    written: str
    entries: tuple[MorningEntry, ...]
    cost: str = ""
    """Total cost of all agents, as text."""


def render_headline(page: MorningPage) -> str:
    """Return the page's summary on one line."""
    asking = sum(bool(entry.asks) for entry in page.entries)
    agents = render_count(len(page.entries), "agent")
    waits = (
        f"{asking} {'waits' if asking == 1 else 'wait'} for you"
        if asking
        else "nothing is waiting for you"
    )
    return ", ".join(filter(None, (agents, waits, page.cost)))


def merge(pages: Mapping[str, MorningPage]) -> MorningPage:
    """Return one page for several projects, with each project's folder.

    Commands work only in a project's folder, so each command starts with `cd`.
    """
    entries = [
        msgspec.structs.replace(
            entry,
            agent=f"{page.project}/{entry.agent}",
            asks=tuple(_with_folder(ask, folder) for ask in entry.asks),
            brief=_lead_to(entry.brief, folder),
            night=tuple(
                msgspec.structs.replace(moment, text=_lead_to(moment.text, folder))
                if moment.at == EARLIER
                else moment
                for moment in entry.night
            ),
            open_loops=tuple(
                _lead_to(text, folder) if _MORE_LOOPS.match(text) else text
                for text in entry.open_loops
            ),
        )
        for folder, page in pages.items()
        for entry in page.entries
    ]
    return MorningPage(
        project="All projects",
        written=max((page.written for page in pages.values()), default=""),
        entries=tuple(sorted(entries, key=lambda entry: not entry.asks)),
        cost="; ".join(f"{page.project}: {page.cost}" for page in pages.values() if page.cost),
    )


def _lead_to(text: str, folder: str) -> str:
    """Insert a `cd` to the project's folder before the command in one of Rekindle's texts."""
    return text.replace(": rekindle ", f": cd {shlex.quote(folder)} && rekindle ", 1)


def _with_folder(ask: PersonRequest, folder: str) -> PersonRequest:
    if not ask.command:
        return ask
    return msgspec.structs.replace(ask, command=f"cd {shlex.quote(folder)} && {ask.command}")


def render(page: MorningPage) -> str:
    """Return the page as text for a terminal."""
    parts = [f"{page.project} — {page.written}\n{render_headline(page)}\n"]
    parts += ["\n".join(_render_lines(entry)) + "\n" for entry in page.entries]
    return "\n".join(parts)


def _render_lines(entry: MorningEntry) -> Iterator[str]:
    yield f"{entry.agent}: {entry.label or entry.state}{f' ({entry.why})' if entry.why else ''}"
    yield from _render_list("done", entry.done)
    if entry.next:
        yield f"  next:     {entry.next}"
    yield from _render_list("for you", (_render_request(ask) for ask in entry.asks))
    yield from _render_list(
        "night", (f"{moment.at}  {moment.text}".strip() for moment in entry.night)
    )
    if entry.loops:
        yield f"  loops:    {entry.loops}"
    for text in entry.open_loops:
        yield f"            {text}"
    if entry.refused:
        yield f"  refused:  {entry.refused}"
    if entry.cost:
        yield f"  cost:     {entry.cost}"
    if entry.brief:
        yield f"  brief:    {entry.brief}"


def _render_list(label: str, lines: Iterable[str]) -> Iterator[str]:
    for place, line in enumerate(lines):
        yield f"  {f'{label}:' if not place else '':9} {line}"


def _render_request(ask: PersonRequest) -> str:
    step = render_command(ask.command, ask.others)
    return f"{ask.text} → {step}" if step else ask.text


def render_html(page: MorningPage) -> str:
    """Render the page as one HTML file, light or dark, without scripts or external resources."""
    articles = "\n".join(map(_render_article, page.entries)) or "<p>No agents yet.</p>"
    title = f"{page.project} — {page.written}"
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{escape(title)}</title>
<style>
{_STYLE}{_STATE_STYLE}</style>
</head>
<body>
<header>
<h1>{escape(page.project)}</h1>
<p class="when">{escape(page.written)}</p>
<p class="headline">{escape(render_headline(page))}</p>
</header>
<main>
{articles}
</main>
</body>
</html>
"""


def _render_article(entry: MorningEntry) -> str:
    is_asked = entry.why in {ask.text for ask in entry.asks}
    label = escape(entry.label or entry.state)
    parts = [
        f'<h2>{escape(entry.agent)} <span class="mood">{label}</span></h2>',
        f'<p class="why">{_render_words(entry.why)}</p>' if entry.why and not is_asked else "",
        _render_section("Waiting for you", map(_render_request_html, entry.asks), "asks"),
        _render_section("Done", map(_render_words, entry.done), "done"),
        f"<section><h3>Next</h3><p>{_render_words(entry.next)}</p></section>" if entry.next else "",
        _render_section("Open loops", map(_render_words, entry.open_loops), "open"),
        _render_night(entry.night),
        _render_facts(entry),
    ]
    return (
        f'<article class="{_make_class(entry.state)}">\n'
        + "\n".join(filter(None, parts))
        + "\n</article>"
    )


def _render_section(title: str, items: Iterable[str], name: str) -> str:
    lines = "".join(f"<li>{item}</li>\n" for item in items)
    return (
        f'<section class="{name}"><h3>{title}</h3>\n<ul>\n{lines}</ul></section>' if lines else ""
    )


def _render_night(moments: Iterable[NightLine]) -> str:
    lines = "".join(
        f'<li class="{moment.kind or "more"}"><time>{escape(moment.at)}</time>'
        f"<span>{_render_words(moment.text)}</span></li>\n"
        for moment in moments
    )
    return (
        f'<section class="night"><h3>The night</h3>\n<ol>\n{lines}</ol></section>' if lines else ""
    )


def _render_request_html(ask: PersonRequest) -> str:
    command = f"<br><code>{escape(ask.command)}</code>" if ask.command else ""
    others = f" (or: {escape(', '.join(ask.others))})" if ask.others else ""
    return f"{_render_words(ask.text)}{command}{others}"


def _render_words(text: str) -> str:
    """Render text as HTML with its own text direction, and with backquoted parts as code."""
    marked = _CODE.sub(r"<code>\1</code>", escape(text))
    return f"<bdi>{marked}</bdi>"


def _render_facts(entry: MorningEntry) -> str:
    facts = (
        ("Loops", entry.loops),
        ("Refused", entry.refused),
        ("Cost", entry.cost),
        ("Brief", entry.brief),
    )
    rows = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>\n" for name, text in facts if text)
    return f"<dl>\n{rows}</dl>" if rows else ""


def _make_class(state: str) -> str:
    return state.replace(" ", "-")


_STYLE = """\
:root {
  --page: #f6f6f4; --card: #fff; --ink: #1c1c1a; --faint: #63635c; --line: #dcdcd5;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #161615; --card: #20201e; --ink: #ecece6; --faint: #a3a39a; --line: #3a3a36;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; padding: 1.5rem clamp(0.75rem, 4vw, 3rem) 3rem; background: var(--page);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
}
header, main { max-width: 76rem; margin: 0 auto; }
h1 { margin: 0; font-size: 1.6rem; line-height: 1.25; }
.when { margin: 0; color: var(--faint); }
.headline { margin: 0.5rem 0 1.5rem; font-weight: 600; }
main { columns: 2 26rem; column-gap: 1rem; }
article {
  margin-bottom: 1rem; padding: 1rem 1.25rem 1.25rem; break-inside: avoid; background: var(--card);
  border: 1px solid var(--line); border-left: 0.3rem solid var(--mood); border-radius: 0.4rem;
}
h2 { margin: 0; font-size: 1.2rem; }
.mood { color: var(--mood); font-size: 0.85rem; font-weight: 600; white-space: nowrap; }
.why { margin: 0.1rem 0 0; color: var(--faint); }
h3 {
  margin: 1rem 0 0.25rem; color: var(--faint); font-size: 0.8rem; letter-spacing: 0.04em;
  text-transform: uppercase;
}
ul { margin: 0; padding-left: 1.2rem; }
li + li { margin-top: 0.25rem; }
section p { margin: 0; }
.asks h3 { color: var(--needs-you); }
.night ol { margin: 0; padding: 0; list-style: none; }
.night li { display: grid; grid-template-columns: 5.5rem 1fr; gap: 0.6rem; }
.night time { color: var(--faint); font-variant-numeric: tabular-nums; }
.night .crash span, .night .refused span { color: var(--broken); }
.night .wait span { color: var(--waiting); }
.night .end span { font-weight: 600; }
code { font: 0.875em/1.4 ui-monospace, monospace; }
li > code { color: var(--faint); }
dl {
  display: grid; grid-template-columns: auto 1fr; gap: 0.15rem 0.9rem; margin: 1rem 0 0;
  padding-top: 0.75rem; border-top: 1px solid var(--line); font-size: 0.9rem;
}
dt { color: var(--faint); }
dd { margin: 0; min-width: 0; }
@media print { body { background: none; } }
"""
_LIGHT = " ".join(f"--{_make_class(state)}: {row.light};" for state, row in STATES.items())
_DARK = " ".join(f"--{_make_class(state)}: {row.dark};" for state, row in STATES.items())
_MOODS = "\n".join(
    f".{_make_class(state)} {{ --mood: var(--{_make_class(state)}); }}" for state in STATES
)
_STATE_STYLE = f"""\
:root {{ {_LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}
{_MOODS}
"""
