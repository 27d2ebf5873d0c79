"""A topic is opened with options, settled by one choice, and then worked on."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents import events
from rekindle.documents import relay as relays
from rekindle.policy.progress.artefacts import is_artefact
from rekindle.policy.relay import convergence
from rekindle.policy.relay.convergence import (
    TopicStage,
    check_stage,
    choose_stage,
    describe_stage,
    find_topic,
)

NOW = datetime(2026, 4, 9, tzinfo=UTC)


def about(phase: str) -> str:
    return find_topic(relays.parse(f"## Current Phase\n{phase}\n\n## Next Action\nGo on.\n"))


def relay(*sections: str) -> relays.Relay:
    return relays.parse("\n\n".join([*sections, "## Next Action\nCall the printer."]) + "\n")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Bakery site", "**Bakery site** (cycle 4)"),
        ("Bakery site, cycle 4", "Bakery site, cycle 5"),
        ("🥐 Bakery site", "Bakery site ✅"),
        ("Bakery site (2026-03-01)", "Bakery site (2026-03-02)"),
        ("Bakery site — menu drafted", "Bakery site — photos missing"),
        ("Bakery site: 3 pages done", "Bakery site: 4 pages done"),
        ("Brainstorming — bakery site", "Deciding — bakery site"),
        ("Bakery site", "Ship: bakery site"),
        ("Bakery site (in progress)", "BAKERY SITE"),
        ("40 loaves a day", "55 loaves a day"),
        ("面包店网站（第 4 轮）", "面包店网站（第 5 轮）"),
        ("面包店网站 — 进行中", "🚀 面包店网站"),
        ("头脑风暴：面包店网站", "决策：面包店网站"),
    ],
)
def test_times_and_ornaments_make_no_other_topic(one, other):
    assert about(one) == about(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Bakery site", "Bakery accounts"),
        ("Phase 2", "Phase 3"),
        ("v1.2 release", "v1.3 release"),
        ("BAKE-12", "BAKE-13"),
        ("面包店网站", "面包店账目"),
    ],
)
def test_another_phase_is_another_topic(one, other):
    assert about(one) != about(other)


@pytest.mark.parametrize("phase", ["", "TBD", "---", "<!-- later -->", "暂无", "🚀"])
def test_an_empty_text_is_not_a_topic(phase):
    assert about(phase) == ""
    assert find_topic(relays.parse("## Next Action\nGo on.\n")) == ""


def test_a_topic_may_stand_in_the_heading():
    assert find_topic(relays.parse("## Current Phase: Bakery site\n\n## Next Action\nGo\n")) == (
        about("Bakery site")
    )


def test_the_stages_follow_the_count():
    assert [choose_stage(count) for count in (0, 1, 2, 3, 4, 99)] == [
        TopicStage.BRAINSTORM,
        TopicStage.BRAINSTORM,
        TopicStage.DECIDE,
        TopicStage.SHIP,
        TopicStage.SHIP,
        TopicStage.SHIP,
    ]
    assert len({describe_stage(one) for one in TopicStage}) == 3


OPTIONS = [
    "## Options\n1. Order online\n2. Order by phone\n3. No orders",
    "## Open Questions\nRanked alternatives:\n\n1. Order online\n   - needs a till\n2. By phone",
    "## Ways to take orders\n1) Online\n2) By phone",
    "## What We Did This Cycle\nWe ranked candidates:\n1. Online\n2. By phone",
    "## Key Decisions Made\n1. Option A: online\n2. Option B: by phone",
    "## 候选方案\n1、线上下单\n2、电话下单",
    "## Active Projects\n备选方案如下：\n1. 线上下单\n2. 电话下单",
]


@pytest.mark.parametrize("section", OPTIONS)
def test_a_numbered_list_of_options_opens_a_topic(section):
    found = check_stage(TopicStage.BRAINSTORM, relay(section), ())
    assert found.ok, found.words


@pytest.mark.parametrize(
    "section",
    [
        "## What We Did This Cycle\nWe talked about how to take orders, at length.",
        "## What We Did This Cycle\n1. Rang the printer\n2. Measured the oven",
        "## Options\n1. Order online",
        "## Options\n1. Order online\n2. TBD",
        "## Options\n1. Order online\n1. Order online",
        "## Options\n- Order online\n- Order by phone",
        "## Open Questions\n1. How do people order?\n2. Who picks up?",
        "## Options\n```\n1. Order online\n2. By phone\n```",
        "## What We Did This Cycle\n讨论了如何接单。",
    ],
)
def test_talk_opens_no_topic(section):
    found = check_stage(TopicStage.BRAINSTORM, relay(section), ("index.html",))
    assert not found.ok
    assert "option" in found.words


def test_steps_of_the_next_action_are_no_options():
    steps = relays.parse("## Next Action\n1. Ring the printer\n2. Measure the oven\n")
    assert not check_stage(TopicStage.BRAINSTORM, steps, ()).ok
    choice = relays.parse("## Next Action\nWeigh these options:\n1. Online\n2. By phone\n")
    assert check_stage(TopicStage.BRAINSTORM, choice, ()).ok


SETTLED = [
    "## Key Decisions Made\nWinner: order by phone\nPre-mortem: calls fail on Sundays",
    "## Winner\nOrder by phone\n\n## Pre-mortem\n- calls fail on Sundays",
    "## What We Did This Cycle\n- We chose ordering by phone. The biggest risk is a busy line.",
    "## Key Decisions Made\n- Phone over online: no till needed\n- Risk: the line is busy",
    "## Outcome\n### Winner: ordering by phone\nWhat could go wrong: the line is busy",
    "## Key Decisions Made\n**No-go:** neither pays for the time it takes",
    "## Key Decisions Made\n- Decided against taking orders: too few people",
    "## 关键\n胜出方案：电话下单\n\n最大风险：周日无人接听",
    "## Key Decisions Made\n- 决定采用电话下单\n- 事前验尸：周日无人接听",
    "## Key Decisions Made\n- 放弃这个方向，人手不够",
]


@pytest.mark.parametrize("section", SETTLED)
def test_one_winner_with_its_doubts_or_a_no_go_settles_a_topic(section):
    found = check_stage(TopicStage.DECIDE, relay(section), ())
    assert found.ok, found.words


@pytest.mark.parametrize(
    ("section", "missing"),
    [
        ("## What We Did This Cycle\nCompared both ways again.", "no winner"),
        ("## Key Decisions Made\nWinner: order by phone", "no pre-mortem"),
        ("## Key Decisions Made\nWinner: TBD\nRisk: the line is busy", "no winner"),
        ("## K\nWinner: online or by phone\nRisk: the line is busy", "2 winners"),
        ("## K\nWinner: online\nWinner: by phone\nRisk: the line is busy", "2 winners"),
        ("## K\nWe have not picked one yet.\nRisk: the line is busy", "no winner"),
        ("## Key Decisions Made\nWinner: by phone\nPre-mortem: pending", "no pre-mortem"),
        ("## Key Decisions Made\nWinner: by phone\nWhat could go wrong?", "no pre-mortem"),
        ("## Key Decisions Made\nA go/no-go is due on Monday", "no winner"),
        ("## Open Questions\nNo-go?", "no winner"),
        ("## K\n我们还没有选定方案\n\n主要风险：占线", "no winner"),
        ("## K\n选定方案：电话下单", "no pre-mortem"),
    ],
)
def test_what_is_missing_of_a_decision_is_named(section, missing):
    found = check_stage(TopicStage.DECIDE, relay(section), ("index.html",))
    assert not found.ok
    assert missing in found.words


def test_to_be_asked_for_a_decision_is_none():
    asked = relays.parse("## Next Action\nWe choose the phone. Pre-mortem: a busy line. No-go: -\n")
    assert not check_stage(TopicStage.DECIDE, asked, ()).ok


def test_decisions_of_earlier_cycles_are_no_second_winner():
    old = "## Key Decisions Made\n- Chose the brick oven: it was there"
    new = f"{old}\n- Chose ordering by phone: no till\n- Main risk: a busy line"
    assert not check_stage(TopicStage.DECIDE, relay(new), ()).ok
    assert check_stage(TopicStage.DECIDE, relay(new), (), before=relay(old)).ok


def test_rules_that_are_carried_along_are_no_options():
    rules = relay("## House rules\n1. Flour first\n2. Sweep last")
    assert not check_stage(TopicStage.BRAINSTORM, rules, (), before=rules).ok
    kept = relay(OPTIONS[0])
    assert check_stage(TopicStage.BRAINSTORM, kept, (), before=kept).ok


def test_a_no_go_on_something_else_settles_nothing():
    old = relay("## Key Decisions Made\n- No-go: the second oven")
    assert check_stage(TopicStage.DECIDE, old, ()).ok
    assert not check_stage(TopicStage.DECIDE, old, (), before=old).ok


@pytest.mark.parametrize(
    "path",
    [
        "index.html",
        "src/app.py",
        "docs/plan.md",
        "CHANGELOG.md",
        "src/log/writer.go",
        "src/logs/view.tsx",
        "catalog.txt",
        "src/memories/page.tsx",
        "relay_board.py",
        "网站/首页.html",
    ],
)
def test_a_changed_file_is_an_artefact(path):
    assert is_artefact(path)
    assert check_stage(TopicStage.SHIP, relay(), ["memories/consensus.md", path]).ok


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        ".rekindle",
        ".rekindle/agents/a/brief.md",
        "sub/.rekindle/agents/a/state.json",
        "memories/consensus.md",
        "memories\\consensus.md",
        "memories/.consensus.tmp",
        "memories/prev_consensus.md",
        "memories/archive/relay-00000412-ab12.md",
        "Consensus.md",
        "progress.md",
        "claude-progress.txt",
        "run.log",
        "run.log.1.gz",
        "logs/cycle-4.md",
        "ops.jsonl",
    ],
)
def test_relays_and_logs_are_no_artefacts(path):
    assert not is_artefact(path)
    found = check_stage(TopicStage.SHIP, relay(OPTIONS[0], SETTLED[0]), [path] if path else [])
    assert not found.ok
    assert found.words


@given(st.text(max_size=400))
def test_any_text_is_read(text):
    parsed = relays.parse(f"## Current Phase\n{text}\n## Next Action\n{text}\n")
    once = convergence.find_topic(parsed)
    assert "\n" not in once
    for one in TopicStage:
        assert check_stage(one, parsed, [text]).words


def test_one_winner_without_a_pre_mortem_lacks_only_the_pre_mortem():
    found = check_stage(
        TopicStage.DECIDE, relay("## Key Decisions Made\nWinner: order by phone"), ()
    )
    assert found.words == "has no pre-mortem: nothing about what could go wrong"


def ended(cycle, topic, **more):
    return events.CycleEnded(ts=NOW, seq=cycle, cycle=cycle, topic=topic, **more)


def test_the_notice_of_the_next_stage():
    """Cycles on the same topic count, and a missing result is named."""
    on_site = relays.parse("## Current Phase\nBakery site\n\n## Next Action\nGo\n")
    other = ended(1, "accounts")
    first, second = ended(2, "bakery site"), ended(3, "bakery site", owed="names no winner")
    notice = convergence.render_stage_notice
    assert notice({}, None, on_site) == describe_stage(TopicStage.BRAINSTORM)
    assert notice({}, None, None) == describe_stage(TopicStage.BRAINSTORM)
    assert notice({1: other}, other, on_site) == describe_stage(TopicStage.BRAINSTORM)
    assert notice({2: first}, first, on_site) == describe_stage(TopicStage.DECIDE)
    assert notice({1: other, 2: first, 3: second}, second, on_site) == (
        f"The last cycle names no winner.\n{describe_stage(TopicStage.SHIP)}"
    )


@pytest.mark.parametrize(
    ("files", "constant", "ok", "words"),
    [
        ([], [], False, "changed no file"),
        (["menu.html"], [], True, "changed menu.html"),
        (["menu.html", "a.css"], [], True, "changed menu.html and 1 more"),
        (["menu.html", "a.css", "b.css"], [], True, "changed menu.html and 2 more"),
        (["menu.html", "a.css"], ["menu.html"], True, "changed a.css"),
        (
            *(["menu.html", "a.css"], ["menu.html", "a.css"], False),
            "changed only files that every cycle changes, such as menu.html",
        ),
        (
            *(["run.log", "other.log"], [], False),
            "changed only the relay and logs, such as run.log",
        ),
    ],
)
def test_the_files_that_count_as_work(files, constant, ok, words):
    """The first one is named, and the others are counted."""
    found = check_stage(TopicStage.SHIP, relay(), files, constant=constant)
    assert (found.ok, found.words) == (ok, words)


@pytest.mark.parametrize(
    ("lines", "ok", "words"),
    [
        (["1. A way", "2. B way"], True, "ranks 2 options, first: A way"),
        (["1. A way", "2. B way", "3. C way"], True, "ranks 3 options, first: A way"),
        (["1. A way"], False, "names only one option: A way"),
        ([], False, "ranks no options: the relay has no numbered list of options"),
    ],
)
def test_the_words_about_options(lines, ok, words):
    """Two are enough."""
    found = check_stage(TopicStage.BRAINSTORM, relay("\n".join(["## Options", *lines])), ())
    assert (found.ok, found.words) == (ok, words)


DOUBT = "Pre-mortem: calls fail on Sundays"
UNDOUBTED = "has no pre-mortem: nothing about what could go wrong"


@pytest.mark.parametrize(
    ("lines", "ok", "words"),
    [
        (["Winner: by phone", DOUBT], True, "chose by phone, and says what could go wrong"),
        (["Winner: by phone"], False, UNDOUBTED),
        ([DOUBT], False, "names no winner"),
        (["We talked."], False, f"names no winner, and {UNDOUBTED}"),
        (
            *(["Winner: by phone", "Winner: online", DOUBT], False),
            "names 2 winners instead of one (by phone; online)",
        ),
        (
            *([f"Winner: way {name}" for name in ("one", "two", "three", "four")], False),
            f"names 4 winners instead of one (way one; way two; way three), and {UNDOUBTED}",
        ),
        (["No-go: too few people"], True, "rejects the topic"),
    ],
)
def test_the_words_about_a_decision(lines, ok, words):
    """Everything that is missing is named."""
    section = "\n".join(["## Key Decisions Made", *lines])
    found = check_stage(TopicStage.DECIDE, relay(section), ())
    assert (found.ok, found.words) == (ok, words)


def test_the_instructions_of_the_stages():
    """Each names what the relay must contain."""
    assert "2 or more options" in describe_stage(TopicStage.BRAINSTORM)
    assert "`Winner: …`" in describe_stage(TopicStage.DECIDE)
    assert "at least one changed" in describe_stage(TopicStage.SHIP)
