"""The rows of several agents as a table: one line each, within the columns of the terminal."""

from datetime import UTC, datetime, timedelta

import pytest

from rekindle.documents.screens.agent_row import (
    AgentRow,
    Figure,
    SpendFigures,
    WindowFigures,
)
from rekindle.documents.screens.status_table import (
    Group,
    cut_to_width,
    display_width,
    name_folders,
    render_age,
    render_projects,
    render_table,
)

NOW = datetime(2026, 4, 9, 6, 0, tzinfo=UTC)
LONG = "Write the parser of the import, then its tests, and tell the team of what is left to do"


def row(agent, state="running", **more):
    known = {
        "reason": "cycle 3",
        "next_action": LONG,
        "window": WindowFigures(Figure(50_000, "reported"), 200_000, Figure(25.0, "reported")),
        "spend": SpendFigures(usd=Figure(1.234, "estimated"), tokens=Figure(20_000, "reported")),
        "last_active": NOW - timedelta(minutes=4),
    }
    return AgentRow(agent=agent, state=state, **known | more)


def eleven():
    rows = [row(f"agent-{number}") for number in range(8)]
    needs = {"reason": "not logged in", "command": "rekindle answer asks-1 retry"}
    waits = {"reason": "until 09:00: a usage limit"}
    return [*rows, row("asks", "needs you", **needs), row("rests", "waiting", **waits), row("old")]


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
def test_eleven_agents_take_at_most_fourteen_lines(columns):
    lines = [line.text for line in render_table(eleven(), NOW, columns)]
    assert len(lines) <= 14
    assert max(map(display_width, lines)) <= columns


def test_a_narrow_table_leaves_out_the_window_before_cost_and_activity():
    wide, narrow, slim = (render_table(eleven(), NOW, columns) for columns in (100, 60, 50))
    slim = slim[1:]  # the summary has two lines
    assert wide[1].text.split()[-4:] == ["next", "window", "spent", "active"]
    assert narrow[1].text.split() == ["agent", "state", "reason", "next", "spent", "active"]
    assert slim[1].text.split() == ["agent", "state", "reason", "spent", "active"]
    for table in (narrow, slim):
        assert table[3].text.split()[-3:] == ["~$1.23", "4", "min"]


def test_outcomes_are_counted_in_their_own_words():
    """In the order of what needs a person."""
    rows = [
        row("a", "done", label="done and verified"),
        row("b", "stopped", label="out of cycles"),
        row("c", "stopped"),
        row("d", "needs you", label="stalled"),
        row("e", "needs you"),
        row("f", "needs you"),
    ]
    line = render_table(rows, NOW, 160)[0].text
    counted = "2 need you, 1 stalled, 1 out of cycles, 1 stopped, 1 done and verified"
    assert sorted(line.split(";")[0].removeprefix("6 agents: ").split(", ")) == sorted(
        counted.split(", ")
    )
    assert line.index("stalled") < line.index("out of cycles") < line.index("done and")


def test_a_command_is_never_cut():
    command = f"rekindle answer {'long-name' * 8}-1 retry"
    asks = row("long", "needs you", command=command, others=("TEXT", "stop"))
    lines = [line.text for line in render_table([asks, row("a")], NOW, 60)]
    assert lines[-2:] == [f"→ {command}", "  (or: TEXT, stop)"]
    two = [row("a", "needs you", command="x"), row("b", "needs you", command="x")]
    lines = [line.text for line in render_projects([Group("p", two, (), "cd /p && ")], NOW, 60)]
    assert lines[-2:] == [
        "→ `cd /p && rekindle questions` lists their questions",
        "  `cd /p && rekindle status AGENT` shows one agent",
    ]


def test_a_line_has_all_that_an_operator_looks_for():
    lines = [line.text for line in render_table(eleven(), NOW, 160)]
    assert lines[0] == "11 agents: 1 needs you, 1 waiting, 9 running; ~$13.57 spent"
    assert lines[1].split() == ["agent", "state", "reason", "next", "window", "spent", "active"]
    assert lines[2].split()[:5] == ["asks", "needs", "you", "not", "logged"]
    running = lines[3]
    assert running.startswith("agent-0")
    assert "cycle 3" in running
    assert "Write the parser" in running
    assert running.split()[-4:] == ["25%", "~$1.23", "4", "min"]
    assert lines[-1] == "→ rekindle answer asks-1 retry"


def test_agents_that_need_a_person_come_first():
    rows = [row("a"), row("b", "broken", reason="its log is gone"), row("c", open_questions=1)]
    names = [line.text.split()[0] for line in render_table(rows, NOW, 100)[2:5]]
    assert names == ["b", "c", "a"]


def test_what_several_agents_ask_is_listed_by_one_command():
    command = {"command": "rekindle answer x"}
    rows = [row("a", "needs you", **command), row("b", "needs you", **command)]
    assert render_table(rows, NOW, 100)[-1].text == (
        "→ `rekindle questions` lists their questions, `rekindle status AGENT` shows one agent"
    )


def test_an_agent_with_a_warning_is_marked():
    lines = [line.text for line in render_table([row("a"), row("b")], NOW, 100, marked={"b"})]
    assert [line.split()[0] for line in lines[2:4]] == ["a", "b!"]
    assert lines[-1] == "! `rekindle status AGENT` shows what is wrong"


def test_figures_that_are_unknown_are_not_shown_as_zero():
    bare = AgentRow(agent="new", state="stopped", reason="not started yet")
    line = render_table([bare, row("a")], NOW, 100)[2].text
    assert line.split()[-3:] == ["-", "-", "never"]


def test_tokens_are_shown_if_the_cost_is_unknown():
    spend = SpendFigures(tokens=Figure(1_234_567, "reported"))
    line = render_table([row("a", spend=spend), row("b")], NOW, 100)[2].text
    assert "1.2M tok" in line


def test_wide_letters_count_two_columns():
    assert display_width("解析器ab") == 8
    assert cut_to_width("解析器ab", 8) == "解析器ab"
    assert cut_to_width("解析器ab", 7) == "解析器…"
    assert cut_to_width("解析器ab", 6) == "解析…"
    assert display_width("e\u0301\u200b") == 1


def test_columns_are_aligned_beside_wide_letters():
    rows = [row("a", next_action="写解析器" * 20), row("b", next_action="short")]
    lines = [line.text for line in render_table(rows, NOW, 100)]
    places = {display_width(line[: line.index("25%")]) for line in lines[2:4]}
    assert len(places) == 1


def test_control_characters_of_an_agent_do_not_break_the_line():
    rows = [row("a", reason="one\x1b[2Jtwo\nthree"), row("b")]
    lines = render_table(rows, NOW, 100)
    assert len(lines) == 4
    assert "\x1b" not in lines[2].text


def test_finished_work_has_nothing_next():
    line = render_table([row("a", "done", reason="verified"), row("b")], NOW, 120)[2].text
    assert line.split() == ["a", "done", "verified", "-", "25%", "~$1.23", "4", "min"]


def test_projects_share_one_table_and_agents_that_need_a_person_come_first():
    """Two projects may have agents of the same name: only the one with a warning is marked."""
    asks = row("docs", "needs you", command="cd /b && rekindle answer docs-1 retry")
    groups = [
        Group("a", [row("docs"), row("web")], {"docs"}, "cd /a && "),
        Group("b", [asks, row("web")], (), "cd /b && "),
        Group("c", [row("-", "broken", command="write it again")], hint="write it again"),
    ]
    lines = [line.text for line in render_projects(groups, NOW, 100)]
    assert lines[0].startswith("3 projects, 4 agents: 1 needs you, 3 running; ")
    assert lines[0].endswith("; 1 project cannot be read")
    shown = [tuple(line.split()[:2]) for line in lines[2:7]]
    assert shown == [("b", "docs"), ("c", "-"), ("a", "docs!"), ("a", "web"), ("b", "web")]
    assert lines[7:] == ["→ cd /b && rekindle answer docs-1 retry", "→ c: write it again"]


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 200])
def test_a_table_over_projects_fits_the_terminal(columns):
    groups = [Group(f"project-{number}" * 3, eleven()[:8], (), "") for number in range(3)]
    lines = [line.text for line in render_projects(groups, NOW, columns)]
    summary = lines[: -24 - 1]
    assert not any(line.endswith("…") for line in summary), "a long summary wraps"
    assert summary[-1].endswith("spent")
    assert max(map(display_width, lines)) <= columns


def test_a_project_is_named_by_as_much_of_its_path_as_tells_it_apart():
    assert name_folders(["/w/a/site", "/w/b/site", "/w/b/docs"]) == ["a/site", "b/site", "docs"]
    assert name_folders(["/site", "/w/site"]) == ["/site", "w/site"]


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_long_texts_use_the_whole_width(columns):
    rows = [row("one", reason=LONG), row("two", reason=LONG)]
    header = render_table(rows, NOW, columns)[1].text
    assert display_width(header) == columns


@pytest.mark.parametrize(
    ("seconds", "age"),
    [
        (-5, "now"),
        (0.9, "now"),
        (1, "1 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (119, "1 min"),
        (120, "2 min"),
        (3_599, "59 min"),
        (3_600, "1 h"),
        (7_199, "1 h"),
        (7_200, "2 h"),
        (86_399, "23 h"),
        (86_400, "1 d"),
        (172_799, "1 d"),
        (172_800, "2 d"),
        (30 * 86_400, "30 d"),
    ],
)
def test_how_long_ago_an_agent_was_active(seconds, age):
    """In the largest unit that fits, rounded down."""
    assert render_age(NOW - timedelta(seconds=seconds), NOW) == age
    assert render_age(None, NOW) == "never"


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [
        (1, "1 tok"),
        (999, "999 tok"),
        (1_000, "1.0k tok"),
        (99_950, "100.0k tok"),
        (500_500, "500.5k tok"),
        (999_940, "999.9k tok"),
        (1_000_000, "1.0M tok"),
        (50_050_000, "50.0M tok"),
        (500_050_001, "500.1M tok"),
    ],
)
def test_how_many_tokens_were_used(tokens, shown):
    """In thousands and millions, as spending and as the content of a window."""
    figure = Figure(tokens, "reported")
    spent = row("a", spend=SpendFigures(tokens=figure), window=WindowFigures(figure))
    (line,) = [line.text for line in render_table([spent], NOW, 200) if line.state]
    assert line.count(f" {shown} ") == 2
    guessed = row("a", spend=SpendFigures(tokens=Figure(tokens, "estimated")))
    (line,) = [line.text for line in render_table([guessed], NOW, 200) if line.state]
    assert f"  ~{shown}  " in line


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("abcd", 5, "abcd"),
        ("abcd", 4, "abcd"),
        ("abcd", 3, "ab…"),
        ("ab cd", 4, "ab…"),
        ("abcd", 1, "…"),
        ("abcd", 0, "…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("日本語", 3, "日…"),
        ("日本語", 2, "…"),
        ("e\u0301tude", 5, "e\u0301tude"),
        ("e\u0301tude", 3, "e\u0301t…"),
    ],
)
def test_a_text_is_cut_to_its_columns(text, columns, expected):
    """The sign of the cut takes one column, and marks take none."""
    assert cut_to_width(text, columns) == expected


SHORT = {"reason": "r", "next_action": "n", "spend": SpendFigures(), "last_active": NOW}


def test_a_table_that_fits_exactly_is_not_cut():
    """One column less, and the window is left out."""
    table = render_table([row("a", **SHORT)], NOW, 200)
    needed = max(len(line.text) for line in table[1:])
    assert [line.text for line in render_table([row("a", **SHORT)], NOW, needed)] == [
        *("1 agent: 1 running",),
        "agent  state    reason  next  window  spent  active",
        "a      running  r       n     25%     -      now",
    ]
    texts = [line.text for line in render_table([row("a", **SHORT)], NOW, needed - 1)]
    assert "window" not in texts[1]


def test_a_long_name_takes_a_share_of_the_columns():
    """The rest is for the texts."""
    (line,) = [line.text for line in render_table([row("a" * 90)], NOW, 100) if line.state]
    assert line.startswith("a" * 19 + "…  running")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (200, ["→ rekindle answer asks-1 A  (or: B)"]),
        (35, ["→ rekindle answer asks-1 A  (or: B)"]),
        (34, ["→ rekindle answer asks-1 A", "  (or: B)"]),
    ],
)
def test_the_next_step_of_one_agent(columns, expected):
    """The other answers are on a second line if the first one is full."""
    asking = row("asks", "needs you", command="rekindle answer asks-1 A", others=("B",))
    steps = [line.text for line in render_table([asking], NOW, columns) if not line.state]
    assert steps[-len(expected) :] == expected
    alone = row("asks", "needs you", command="rekindle answer asks-1 A")
    steps = [line.text for line in render_table([alone], NOW, 20) if not line.state]
    assert steps[-1] == "→ rekindle answer asks-1 A"


def test_the_next_step_of_several_agents():
    """On two lines if one is too narrow."""
    asking = [row("one", "needs you", command="x"), row("two", "broken", command="y")]
    listed, shown = (
        "→ `rekindle questions` lists their questions",
        "`rekindle status AGENT` shows one agent",
    )
    whole = f"{listed}, {shown}"
    wide = render_table(asking, NOW, len(whole))
    assert wide[-1].text == whole
    narrow = render_table(asking, NOW, len(whole) - 1)
    assert [line.text for line in narrow[-2:]] == [listed, f"  {shown}"]
