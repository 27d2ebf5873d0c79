"""The first screen: agents that need a person, and a table of all agents."""

import asyncio
from collections.abc import Iterator
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Input

from rekindle.documents.screens.agent_row import AgentRow
from rekindle.documents.screens.status_table import render_age, summarize_rows
from rekindle.terminal_screen.action_screen import ActionScreen
from rekindle.terminal_screen.agent_screen import AgentScreen
from rekindle.terminal_screen.fleet_columns import FleetTable, build_table, describe_work
from rekindle.terminal_screen.key_line import KeyLine
from rekindle.terminal_screen.plain_static import PlainStatic, is_same
from rekindle.terminal_screen.plain_text import make_line, make_state
from rekindle.terminal_screen.screen_reading import ScreenReading, read_peek
from rekindle.thresholds.screens import TOP_STRIP_LINES


class AgentTable(DataTable[Text]):
    """The table of agents."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "open"),
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
    ]


class FleetScreen(ActionScreen):
    """Agents that need a person, and a table of all agents in a stable order."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "peek", "peek", key_display="␣"),
        Binding("slash", "filter", "filter", key_display="/"),
        Binding("exclamation_mark", "only('needs you')", "needs you", key_display="!"),
        Binding("at", "only('running')", "running", key_display="@"),
        Binding("escape", "clear", "clear the filter", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._words = ""
        self._only = ""
        self._shown: FleetTable | None = None
        self._peeked: tuple[str, list[tuple[str, str]]] = "", []

    def compose(self) -> ComposeResult:
        yield PlainStatic(id="title")
        yield PlainStatic(id="lost")
        yield PlainStatic(id="strip")
        yield Input(id="filter", placeholder="part of a name, a state or a reason")
        yield AgentTable(id="agents", cursor_type="row", cursor_foreground_priority="renderable")
        yield PlainStatic(id="empty")
        yield PlainStatic(id="peek")
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one("#filter").display = self.query_one("#peek").display = False
        self.query_one(AgentTable).focus()
        self.show_reading()

    def on_resize(self) -> None:
        self.show_reading()

    def show_reading(self) -> None:
        """Show the newest reading, or that the agents could not be read."""
        reading = self.top.reading
        self.set_class(bool(self.top.lost), "stale")
        lost = self.query_one("#lost", PlainStatic)
        lost.display = bool(self.top.lost)
        lost.show(make_line(self.top.lost))
        if reading is None:
            self.query_one("#title", PlainStatic).show(make_line(f"{self.top.home.name}  reading…"))
            return
        title = Text(self.top.home.name, "bold", no_wrap=True, overflow="ellipsis")
        title.append(f"  {summarize_rows(reading.rows)}", "not bold")
        title.append("  read-only" if self.top.is_read_only else "", "not bold dim")
        self.query_one("#title", PlainStatic).show(title)
        self._show_strip(reading)
        self._show_table(reading)
        self._show_peek()
        self.refresh_bindings()

    def _show_strip(self, reading: ScreenReading) -> None:
        waiting, strip = reading.list_waiting(), self.query_one("#strip", PlainStatic)
        strip.display = bool(waiting)
        lines = [self._render_waiting(reading, row) for row in waiting[:TOP_STRIP_LINES]]
        if len(waiting) > TOP_STRIP_LINES:
            lines.append(Text(f"and {len(waiting) - TOP_STRIP_LINES} more", "dim"))
        strip.show(Text("\n", no_wrap=True, overflow="ellipsis").join(lines))

    def _render_waiting(self, reading: ScreenReading, row: AgentRow) -> Text:
        question = reading.questions.get(row.agent)
        since = question.ts if question else row.last_active
        age = f"  for {render_age(since, reading.at)}" if since else ""
        return Text.assemble(
            make_state(row.state, is_dark=self._is_dark()),
            "  ",
            make_line(row.agent, "bold"),
            "  ",
            make_line(question.text if question else row.reason),
            (age, "dim"),
        )

    def _is_dark(self) -> bool:
        return self.app.current_theme.dark

    def _list_rows(self, reading: ScreenReading) -> Iterator[AgentRow]:
        waiting = {row.agent for row in reading.list_waiting()}
        for row in reading.rows:
            searched = " ".join((row.agent, row.state, row.label, row.harness, describe_work(row)))
            is_kind = not self._only or row.state == self._only
            if self._only == "needs you":
                is_kind = row.agent in waiting
            if is_kind and self._words.casefold() in searched.casefold():
                yield row

    def _show_table(self, reading: ScreenReading) -> None:
        rows = list(self._list_rows(reading))
        table = build_table(
            rows, reading.thresholds, reading.at, self.size.width - 1, is_dark=self._is_dark()
        )
        if self._shown is None or _is_other_shape(self._shown, table):
            self._fill(table)
        else:
            self._change(self._shown, table)
        self._shown = table
        self._show_empty(reading, has_rows=bool(rows))

    def _fill(self, table: FleetTable) -> None:
        """Fill the table again, with the same agent selected."""
        widget, selected = self.query_one(AgentTable), self._find_cursor()
        widget.clear(columns=True)
        for name, width in table.columns:
            widget.add_column(Text(name, "dim"), key=name, width=width)
        for agent, cells in table.cells.items():
            widget.add_row(*cells, key=agent)
        if selected in table.cells:
            widget.move_cursor(row=widget.get_row_index(selected))

    def _change(self, before: FleetTable, after: FleetTable) -> None:
        """Change only the cells that differ."""
        widget = self.query_one(AgentTable)
        for agent, cells in after.cells.items():
            for (name, _), old, new in zip(after.columns, before.cells[agent], cells, strict=True):
                if not is_same(old, new):
                    widget.update_cell(agent, name, new)

    def _show_empty(self, reading: ScreenReading, *, has_rows: bool) -> None:
        empty = self.query_one("#empty", PlainStatic)
        empty.display = not has_rows
        if not reading.rows:
            empty.show(
                make_line("no agents yet: `rekindle init` sets one up, `rekindle up` starts it")
            )
            return
        chosen = " and ".join(filter(None, (self._only, self._words)))
        empty.show(make_line(f"no agent matches {chosen}; escape shows all agents"))

    def _find_cursor(self) -> str:
        table = self.query_one(AgentTable)
        if not table.is_valid_coordinate(table.cursor_coordinate):
            return ""
        return str(table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value or "")

    def find_selected(self) -> AgentRow | None:
        return self.top.reading.find_row(self._find_cursor()) if self.top.reading else None

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        if event.row_key.value:
            self.app.push_screen(AgentScreen(event.row_key.value))

    def on_data_table_row_highlighted(self) -> None:
        self._show_peek()
        self.refresh_bindings()

    def action_filter(self) -> None:
        self.query_one("#filter").display = True
        self.query_one("#filter").focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._words = event.value.strip()
        self.show_reading()

    def on_input_submitted(self) -> None:
        self.query_one(AgentTable).focus()

    def action_only(self, state: str) -> None:
        self._only = "" if self._only == state else state
        self.show_reading()

    def action_clear(self) -> None:
        self._only = ""
        field = self.query_one("#filter", Input)
        field.value = ""
        field.display = False
        self.query_one(AgentTable).focus()
        self.show_reading()

    def action_peek(self) -> None:
        peek = self.query_one("#peek")
        peek.display = not peek.display
        self._show_peek()

    def _show_peek(self) -> None:
        """Show more about the selected agent, and read its relay in the background."""
        peek, row = self.query_one("#peek", PlainStatic), self.find_selected()
        if not peek.display or row is None:
            return
        agent, facts = self._peeked
        if agent != row.agent:
            self._peeked, facts = (row.agent, []), []
            self.run_worker(self._read_peek(row.agent), exclusive=True, group="peek")
        named = [
            ("agent", f"{row.agent} · {row.label}"),
            ("why", row.reason or "–"),
            ("next", row.next_action or "–"),
            *([("command", row.next_step)] if row.command else []),
            *facts,
        ]
        lines = [Text.assemble((f"{name:<9}", "dim"), make_line(text)) for name, text in named]
        peek.show(Text("\n", no_wrap=True, overflow="ellipsis").join(lines))

    async def _read_peek(self, agent: str) -> None:
        self._peeked = agent, await asyncio.to_thread(read_peek, self.top.home, agent)
        self._show_peek()


def _is_other_shape(before: FleetTable, after: FleetTable) -> bool:
    return before.columns != after.columns or [*before.cells] != [*after.cells]
