"""Decisions stay known, whatever happens to their line in the relay."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents import relay as relays
from rekindle.policy.relay import decision_ledger
from rekindle.policy.relay.decision_ledger import (
    DecisionStatus,
    LedgerRevision,
    RelayPosition,
    build_ledger,
    compare_decisions,
    read_decisions,
    search_ledger,
)


def relay(
    decided: str, questions: str = "", action: str = "Knead the dough.", more: str = ""
) -> relays.Relay:
    return relays.parse(
        f"## Key Decisions Made\n{decided}\n\n{more}\n\n## Next Action\n{action}\n\n"
        f"## Open Questions\n{questions}\n"
    )


def texts(found):
    return [one.text for one in found]


def test_a_decision_is_read_with_its_subject_and_its_day():
    (one,) = read_decisions(relay("- **Rye over wheat**: keeps longer (2026-05-01)"))
    assert one.text == "Rye over wheat: keeps longer"
    assert (one.made, one.key) == (date(2026, 5, 1), "rye over wheat")


def test_rows_of_a_table_are_decisions():
    found = read_decisions(
        relay(
            "| # | Decision | Why | Day |\n|---|---|---|---|\n"
            "| 1 | **Rye** | keeps longer | 2026-05-01 |\n| 2 | 黑麦面包 | 耐放 | |"
        )
    )
    assert texts(found) == ["Rye: keeps longer", "黑麦面包: 耐放"]
    assert found[0].made == date(2026, 5, 1)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- Rye: keeps longer", "- **Rye**: keeps longer"),
        ("- Rye: keeps longer", "1. ✅ Rye: keeps longer (2026-05-01)"),
        ("- Rye: keeps longer (cycle 3)", "- rye: keeps longer (cycle 4)"),
        ("- 用黑麦：耐放", "- **用黑麦**：耐放（第 4 轮）"),
    ],
)
def test_dates_and_ornaments_make_no_other_decision(before, after):
    assert compare_decisions(relay(before), relay(after)) == decision_ledger.DecisionChanges()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- Flour: rye, it keeps longer", "- Flour: wheat, people ask for it"),
        ("- Rye flour for the daily loaf", "- Rye flour for the daily loaf and the rolls"),
        ("- 面粉：黑麦，耐放", "- 面粉：小麦，顾客要求"),
    ],
)
def test_one_that_is_edited_in_place_is_superseded_with_both_texts(before, after):
    found = compare_decisions(
        relay(f"- Two ovens: one breaks\n{before}"), relay(f"{after}\n- New roof")
    )
    assert [(old.text, new.text) for old, new in found.superseded] == [(before[2:], after[2:])]
    assert texts(found.added) == ["New roof"]
    assert texts(found.dropped) == ["Two ovens: one breaks"]


SETTLED = (
    "- Rye over wheat: keeps longer (2026-05-01)\n- Flat delivery fee: easy to explain\n"
    "- 选用黑麦面粉而不是小麦面粉：耐放\n- 统一配送费：容易解释"
)


@pytest.mark.parametrize(
    ("asks", "decided"),
    [
        ({"questions": "- Rye or wheat?"}, "Rye over wheat"),
        ({"questions": "- Should we switch to wheat after all?"}, "Rye over wheat"),
        ({"questions": "- Do we want a flat delivery fee or one by distance?"}, "Flat delivery"),
        ({"questions": "- Revisit the flat delivery fee for large orders?"}, "Flat delivery"),
        ({"action": "Compare rye vs wheat once more"}, "Rye over wheat"),
        ({"action": "Use wheat for the daily loaf"}, "Rye over wheat"),
        ({"action": "Reconsider the flat delivery fee"}, "Flat delivery"),
        ({"more": "## Options\n1. Rye\n2. Wheat"}, "Rye over wheat"),
        ({"more": "## Options\n1. A flat delivery fee\n2. By distance"}, "Flat delivery"),
        ({"questions": "- 黑麦面粉还是小麦面粉？"}, "选用黑麦"),
        ({"action": "重新考虑统一配送费"}, "统一配送费"),
    ],
)
def test_a_decision_that_is_put_up_for_choice_again_is_named(asks, decided):
    found = compare_decisions(relay(SETTLED), relay(SETTLED, **asks))
    assert len(found.redebated) == 1
    assert found.redebated[0].decision.startswith(decided)
    assert decided in found.redebated[0].words
    again = relay(SETTLED, **asks)
    assert not compare_decisions(again, again).redebated, (
        "a directive with a question adds no other"
    )


@pytest.mark.parametrize(
    "asks",
    [
        {"questions": "- Who delivers on Sundays?"},
        {"questions": "- How high is the flat delivery fee?"},
        {"questions": "- Rye or wheat? → decided: rye"},
        {"questions": "- Does the rye keep in summer or only in winter?"},
        {"action": "Move from wheat to rye in all recipes"},
        {"action": "Announce the flat delivery fee"},
        {"action": "Order rye"},
        {"more": "## Options\n1. Announce the flat delivery fee on the door\n2. By letter"},
        {"questions": "- 统一配送费定多少？"},
    ],
)
def test_speaking_of_a_decision_reopens_nothing(asks):
    assert not compare_decisions(relay(SETTLED), relay(SETTLED, **asks)).redebated


def test_a_reversed_decision_is_not_a_debate():
    found = compare_decisions(
        relay("- Flour: rye over wheat"), relay("- Flour: wheat over rye", "- Rye or wheat?")
    )
    assert found.superseded
    assert not found.redebated


def seen(number: int) -> RelayPosition:
    return RelayPosition(number, datetime(2026, 5, number, tzinfo=UTC), number)


def revision(number: int, kept: str, trimmed: str = "") -> LedgerRevision:
    return LedgerRevision(seen(number), read_decisions(relay(kept)), read_decisions(relay(trimmed)))


def test_the_ledger_says_what_became_of_each():
    found = build_ledger(
        [
            revision(1, "- Rye: keeps longer\n- Two ovens\n- Cash only: no fees"),
            revision(2, "- Rye: people like it\n- Cash only: no fees"),
            revision(3, "- Rye: people like it", trimmed="- Cash only: no fees"),
            revision(4, "- Rye: people like it\n- A new roof"),
        ]
    )
    told = {one.decision.text: one for one in found}
    assert [one.status for one in found] == [
        DecisionStatus.SUPERSEDED,
        DecisionStatus.DROPPED,
        DecisionStatus.ARCHIVED,
        DecisionStatus.IN_FORCE,
        DecisionStatus.IN_FORCE,
    ]
    old = told["Rye: keeps longer"]
    assert (old.by.text, old.first, old.last) == ("Rye: people like it", seen(1), seen(1))
    assert told["Cash only: no fees"].last == seen(3)
    assert told["Rye: people like it"].first == seen(2)
    assert texts(one.decision for one in search_ledger(found, "KEEPS rye")) == ["Rye: keeps longer"]
    assert len(search_ledger(found, "people")) == 2, "what took its place leads to it"


def test_one_that_comes_back_is_in_force_again():
    found = build_ledger(
        [revision(1, "- Two ovens"), revision(2, "- Rye"), revision(3, "- Two ovens")]
    )
    assert [(one.decision.text, one.status) for one in found] == [
        ("Two ovens", DecisionStatus.IN_FORCE),
        ("Rye", DecisionStatus.DROPPED),
    ]
    assert found[0].first == seen(1)


def test_an_archived_one_can_be_superseded():
    found = build_ledger(
        [
            revision(1, "- Rye", trimmed="- Till: cash only"),
            revision(2, "- Rye\n- Till: cards too"),
        ]
    )
    archived = next(one for one in found if "cash" in one.decision.text)
    assert (archived.status, archived.by.text) == (DecisionStatus.SUPERSEDED, "Till: cards too")


@given(st.lists(st.text(max_size=60), max_size=6), st.lists(st.text(max_size=60), max_size=6))
def test_no_decision_is_ever_lost(some, others):
    before, after = (relay("\n".join(f"- {line}" for line in lines)) for lines in (some, others))
    found = compare_decisions(before, after)
    gone = {one.plain for one in (*found.dropped, *(old for old, _ in found.superseded))}
    come = {one.plain for one in (*found.added, *(new for _, new in found.superseded))}
    was, now = ({one.plain for one in read_decisions(each)} for each in (before, after))
    assert gone == was - now
    assert come == now - was
