"""The screen of one agent: its night, relay, loops, decisions and output."""

import asyncio
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import DataTable, TabbedContent, TabPane

from rekindle.documents.screens.agent_row import AgentRow
from rekindle.documents.screens.status_table import render_age
from rekindle.documents.state import OpenLoop
from rekindle.errors import RekindleError
from rekindle.terminal_screen.action_screen import ActionScreen
from rekindle.terminal_screen.agent_actions import ACTIONS, ActionTarget
from rekindle.terminal_screen.agent_details import AgentDetails, OutputTail, read_details
from rekindle.terminal_screen.fleet_columns import render_spent
from rekindle.terminal_screen.key_line import KeyLine
from rekindle.terminal_screen.night_lanes import NightPicture
from rekindle.terminal_screen.plain_static import PlainStatic
from rekindle.terminal_screen.plain_text import (
    Colours,
    find_colours,
    make_block,
    make_line,
    make_state,
)

_FRAME = 4
"""Columns beside the text of a tab: its padding and its scroll bar."""
_TABS = {
    "night": "Night",
    "relay": "Relay",
    "loops": "Loops",
    "decisions": "Decisions",
    "output": "Output",
}


class AgentScreen(ActionScreen):
    """One agent. The keys act on it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", "back"),
        *(
            Binding(str(place), f"open('{name}')", f"open {name}", show=False)
            for place, (name, title) in enumerate(_TABS.items(), 1)
        ),
        Binding("x", "resolve", "resolve"),
    ]

    def __init__(self, agent: str) -> None:
        super().__init__()
        self._agent = agent
        self._details: AgentDetails | None = None
        self._read_at = -1
        self._is_reading = False
        self._loops: list[OpenLoop] = []
        self._tail: OutputTail | None = None

    def compose(self) -> ComposeResult:
        yield PlainStatic(id="title")
        yield PlainStatic(id="lost")
        yield PlainStatic(id="summary")
        with TabbedContent(initial="night"):
            for place, (name, title) in enumerate(_TABS.items(), 1):
                with TabPane(f"{place} {title}", id=name):
                    if name == "loops":
                        yield DataTable[Text](id="loop-table", cursor_type="row")
                    with VerticalScroll():
                        yield PlainStatic(id=f"{name}-text")
                        if name == "relay":
                            yield PlainStatic(id="diff-text")
        yield KeyLine()

    def on_mount(self) -> None:
        table: DataTable[Text] = self.query_one("#loop-table", DataTable)
        for name in ("since", "loop", "text"):
            table.add_column(Text(name, "dim"), key=name)
        self.query_one("#night VerticalScroll").focus()
        self.show_reading()

    def on_resize(self) -> None:
        self._show_details()

    def find_selected(self) -> AgentRow | None:
        return self.top.reading.find_row(self._agent) if self.top.reading else None

    def show_reading(self) -> None:
        """Show the agent's state, and read its details again if its log has changed."""
        row = self.find_selected()
        self.set_class(bool(self.top.lost), "stale")
        lost = self.query_one("#lost", PlainStatic)
        lost.display = bool(self.top.lost)
        lost.show(make_line(self.top.lost))
        if row is None or self.top.reading is None:
            self.query_one("#title", PlainStatic).show(make_line(f"{self._agent} is not there"))
            return
        seen = render_age(row.last_active, self.top.reading.at)
        cycles = f"{row.cycles_done}/{row.cycles_of or '–'}"
        title = Text.assemble(
            make_line(row.agent, "bold"),
            "  ",
            make_state(row.state, is_dark=self.app.current_theme.dark),
            f"  {row.harness or '?'} · cycles {cycles} · {render_spent(row.spend)} · seen {seen}",
        )
        self.query_one("#title", PlainStatic).show(title)
        question = self.top.reading.questions.get(row.agent)
        why = question.text if question else row.reason
        facts = {"why": why, "next": row.next_action, "command": row.next_step}
        lines = [
            Text.assemble((f"{name:<9}", "dim"), make_line(text))
            for name, text in facts.items()
            if text
        ]
        self.query_one("#summary", PlainStatic).show(
            Text("\n", no_wrap=True, overflow="ellipsis").join(lines)
        )
        self._request_details(row)
        self.refresh_bindings()

    def _request_details(self, row: AgentRow) -> None:
        """Read the details if the log has changed, or the output if it is open."""
        shows_output = self.query_one(TabbedContent).active == "output"
        if self._is_reading or (row.at == self._read_at and not shows_output):
            return
        self._is_reading = True
        self.run_worker(self._read(row.at, shows_output=shows_output))

    async def _read(self, at: int, *, shows_output: bool) -> None:
        home = self.top.home
        try:
            if at != self._read_at:
                self._details = await asyncio.to_thread(read_details, home, self._agent)
                self._read_at = at
                self._show_details()
            if shows_output:
                self._tail = self._tail or OutputTail(home, self._agent)
                self._show_output(await asyncio.to_thread(self._tail.read))
        except (RekindleError, OSError) as error:
            self._set("output", make_block(str(error)))
        finally:
            self._is_reading = False

    def _show_output(self, output: str) -> None:
        text = self.query_one("#output-text", PlainStatic)
        scroll = text.parent
        if isinstance(scroll, VerticalScroll):
            follows = scroll.is_vertical_scroll_end
            text.show(make_block(output or "no output yet"))
            if follows:
                scroll.scroll_end(animate=False)

    def _show_details(self) -> None:
        details = self._details
        if details is None:
            return
        problems = details.problems
        colours = find_colours(is_dark=self.app.current_theme.dark)
        if details.night:
            columns = self.size.width - _FRAME
            self._set("night", NightPicture(details.night, columns, colours).render())
        else:
            self._set("night", make_block(problems.get("night", "")))
        self._set("relay", make_block(details.relay or problems.get("relay", "")))
        self._set("diff", _render_diff(details, colours))
        decided = "\n".join(f"· {words}" for words in details.decisions)
        self._set("decisions", make_block(decided or problems.get("decisions", "no decisions yet")))
        self._loops = list(details.loops)
        self._set(
            "loops", make_block(problems.get("loops", "") if self._loops else "no open loops")
        )
        self._show_loops()

    def _set(self, name: str, text: Text) -> None:
        self.query_one(f"#{name}-text", PlainStatic).show(text)

    def _show_loops(self) -> None:
        table: DataTable[Text] = self.query_one("#loop-table", DataTable)
        table.display = bool(self._loops)
        place = table.cursor_row
        table.clear()
        for loop in self._loops:
            since = f"{loop.added}{' stale' if loop.stale else ''}"
            colour = "yellow" if loop.stale else ""
            table.add_row(make_line(since, colour), make_line(loop.id), make_line(loop.text))
        table.move_cursor(row=place)

    def action_open(self, name: str) -> None:
        """Open a tab."""
        # A focused widget in a hidden tab would open its tab again.
        self.set_focus(None)
        self.query_one(TabbedContent).active = name
        has_table = name == "loops" and self._loops
        target = self.query_one("#loop-table" if has_table else f"#{name} VerticalScroll")
        self.call_after_refresh(target.focus)

    def on_tabbed_content_tab_activated(self) -> None:
        self.refresh_bindings()
        if row := self.find_selected():
            self._request_details(row)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Show the key for a loop only where a loop is selected."""
        if action != "resolve":
            return super().check_action(action, parameters)
        is_open = self.is_mounted and self.query_one(TabbedContent).active == "loops"
        return is_open and bool(self._loops) and super().check_action("act", parameters)

    def action_resolve(self) -> None:
        """Ask for the reason why the selected loop is closed."""
        table: DataTable[Text] = self.query_one("#loop-table", DataTable)
        if 0 <= table.cursor_row < len(self._loops):
            loop = self._loops[table.cursor_row]
            self.ask(ACTIONS["resolve"], ActionTarget(self._agent, loop.id), loop.text)


def _render_diff(details: AgentDetails, colours: Colours) -> Text:
    """Return the changes of the relay since the previous one."""
    text = Text()
    text.append("changes since the previous relay\n\n", "dim")
    signs = {"+": colours.good, "-": colours.bad, "@": colours.note}
    for line in details.diff:
        text.append_text(make_block(f"{line}\n", signs.get(line[:1], "dim")))
    return text if details.diff else make_block("there is no earlier relay to compare with", "dim")
