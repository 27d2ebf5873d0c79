"""The request about a day, and its split into pieces."""

import pytest

from rekindle.documents.state import OpenLoop, Resolution
from rekindle.documents.summaries.day_summary import (
    DaySummary,
    LoopStatement,
)
from rekindle.documents.summaries.summary import SummaryItem
from rekindle.documents.transcripts.turns import (
    ToolCall,
    Turn,
)
from rekindle.errors import OverBudgetError
from rekindle.policy.briefs import brief_request
from rekindle.policy.briefs.brief_request import KnownState
from rekindle.policy.summaries.summary_request import weigh_turn
from rekindle.policy.text import token_estimate

NONCE = "0" * 32
BEFORE = KnownState(
    open=(OpenLoop("rate-limit", "How many an hour?", "2026-02-01"),),
    resolved=(Resolution("empty-files", "the tests pass", "2026-02-02"),),
    numbers={"nav": "$1"},
)


def turns(count, words=60, shown=0):
    calls = (ToolCall("Bash", "cat", "ok", "what it gave\n" * shown),) if shown else ()
    return [
        Turn(number=number, who="agent", text=f"word{number} " * words, calls=calls)
        for number in range(1, count + 1)
    ]


def size(request):
    sent = (request.prompt, request.instructions, request.schema)
    return sum(map(token_estimate.estimate_tokens, sent))


def asked(found, cap, before=BEFORE, **more):
    return brief_request.build_brief_requests(found, before, nonce=NONCE, cap=cap, **more)


def test_a_day_that_fits_is_asked_about_at_once():
    found = asked(turns(20, shown=30), 150_000)
    (request,) = found.requests
    assert found.left_out == 0
    for line in (
        "| open: rate-limit: How many an hour? (since 2026-02-01)",
        "| resolved: empty-files: the tests pass",
        "| number: nav: $1",
    ):
        assert line in request.prompt.splitlines()
    assert request.numbers == frozenset(range(1, 21))
    assert "what it gave" in request.prompt


@pytest.mark.parametrize("cap", [2_000, 3_000, 5_000, 20_000])
def test_what_does_not_fit_is_asked_about_in_pieces_each_below_the_cap(cap):
    whole = turns(40, shown=40)
    found = asked(whole, cap, most=100)
    assert all(size(request) <= cap for request in found.requests)
    told = [turn.number for request in found.requests for turn in request.turns]
    assert told == [turn.number for turn in whole]
    assert found.left_out == 0


def test_there_are_never_more_pieces_than_so_many_and_the_newest_are_asked_about():
    found = asked(turns(2_000), 2_000)
    assert len(found.requests) == 8
    told = [turn.number for request in found.requests for turn in request.turns]
    assert told == list(range(found.left_out + 1, 2_001))
    assert all(size(request) <= 2_000 for request in found.requests)


def test_one_turn_that_is_larger_than_a_request_is_cut():
    calls = tuple(ToolCall("Bash", "a long command " * 12, "ok") for _ in range(300))
    huge = Turn(number=1, who="agent", text="words " * 4_000, calls=calls)
    found = asked([huge, *turns(3)[1:]], 2_500, most=5)
    assert all(size(request) <= 2_500 for request in found.requests)
    assert [turn.number for request in found.requests for turn in request.turns] == [1, 2, 3]


def test_thousands_of_loops_leave_room_for_the_day():
    many = tuple(
        OpenLoop(f"loop-{n}", "something to be done " * 5, "2026-02-01") for n in range(3_000)
    )
    found = asked(turns(5), 20_000, KnownState(open=many))
    (request,) = found.requests
    assert size(request) <= 20_000
    assert "loop-0:" in request.prompt


def test_if_nothing_fits_no_model_is_asked():
    with pytest.raises(OverBudgetError):
        asked(turns(1), 1_000, words="a rule that holds " * 400)


def test_the_answers_about_pieces_add_up():
    first = DaySummary(
        changed=(SummaryItem("a", (1,)), SummaryItem("b", (2,))),
        next=(SummaryItem("do c", (2,)),),
        open=(LoopStatement("c", "c is open", (2,)),),
        numbers={"n": "1", "m": "2"},
    )
    second = DaySummary(
        changed=(SummaryItem("B", (3,)),),
        resolved=(LoopStatement("c", "done", (4,)),),
        numbers={"n": "3"},
    )
    found = brief_request.merge_days([first, second])
    assert [item.text for item in found.changed] == ["a", "b"]
    assert found.next == first.next
    assert (found.open, found.resolved) == (first.open, second.resolved)
    assert found.numbers == {"n": "3", "m": "2"}


def test_the_oldest_turn_is_left_out_if_the_turns_exceed_the_room_by_less_than_a_token():
    both = turns(2)
    room = sum(map(weigh_turn, both))
    assert brief_request._select_newest(both, room, 1) == (both, 0)
    assert brief_request._select_newest(both, room - 0.5, 1) == (both[1:], 1)


def packed(sizes, room, most=None):
    """Return the numbers of the turns in each piece, for turns of these sizes in tokens."""
    made = [Turn(number=place, who="agent", text="x") for place in range(len(sizes))]
    weights = {turn.number: size for turn, size in zip(made, sizes, strict=True)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brief_request, "weigh_turn", lambda turn: weights[turn.number])
        if most is not None:
            found, left_out = brief_request._select_newest(made, room, most)
            return [turn.number for turn in found], left_out
        pieces = brief_request._pack_turns(made, room, 100)
        return [[turn.number for turn in piece] for piece in pieces]


@pytest.mark.parametrize(
    ("sizes", "pieces"),
    [
        ([], []),
        ([10], [[0]]),
        ([5, 5], [[0, 1]]),
        ([5, 6], [[0], [1]]),
        ([5, 5, 1], [[0, 1], [2]]),
        ([1, 10, 9, 1], [[0], [1], [2, 3]]),
    ],
)
def test_turns_are_packed_up_to_the_room(sizes, pieces):
    """In their order, each piece as full as possible."""
    assert packed(sizes, 10) == pieces


@pytest.mark.parametrize(
    ("sizes", "most", "expected"),
    [
        ([], 1, ([], 0)),
        ([10], 1, ([0], 0)),
        ([5, 5, 10], 2, ([0, 1, 2], 0)),
        ([5, 5, 10, 1], 2, ([1, 2, 3], 1)),
        ([5, 99], 1, ([1], 1)),
        ([99, 99, 99], 2, ([1, 2], 1)),
    ],
)
def test_the_newest_turns_that_fit(sizes, most, expected):
    """A turn that is larger than a request counts as one request, because it is cut."""
    assert packed(sizes, 10, most) == expected


def test_a_day_is_split_only_if_it_does_not_fit():
    """Into at most so many pieces."""
    made = turns(3)
    room = max(map(weigh_turn, made))
    split = brief_request._split_turns
    assert [len(piece) for piece in split(made, 3 * room, 1, [100])] == [3]
    assert split(made, room, 2, [100]) == []
    assert [len(piece) for piece in split(made, room, 3, [100])] == [1, 1, 1]
    assert split([], room, 1, [100]) == []


def test_a_turn_is_cut_in_this_order():
    """Tool output first, then half of its calls, then half of its text."""
    calls = tuple(ToolCall("Bash", f"command {n}", "ok", "output " * 50) for n in range(4))
    whole = Turn(number=1, who="agent", text="word " * 100, calls=calls)
    size = weigh_turn(whole)
    shrink = brief_request._shrink_turn
    assert shrink(whole, size) == (whole, size)
    bare, smaller = shrink(whole, size - 0.01)
    assert len(bare.calls) == len(calls)
    assert "output" not in str(bare)
    fewer, least = shrink(whole, smaller - 0.01)
    assert len(fewer.calls) == 2
    assert fewer.text == whole.text
    none = shrink(whole, weigh_turn(Turn(number=1, who="agent", text=whole.text)))[0]
    assert (none.calls, none.text) == ((), whole.text)
    short = shrink(whole, weigh_turn(none) - 0.01)[0]
    assert 0 < len(short.text) < len(whole.text)
    assert shrink(whole, 0.0)[0].text == ""
    assert least < smaller


def test_records_that_do_not_fit_are_left_out():
    """The first ones are shown."""
    lines = brief_request._render_records(BEFORE, 1_000_000)
    assert lines == [
        "open: rate-limit: How many an hour? (since 2026-02-01)",
        "resolved: empty-files: the tests pass",
        "number: nav: $1",
    ]
    first = token_estimate.estimate_unrounded(f"| {lines[0]}")
    assert brief_request._render_records(BEFORE, first) == lines[:1]
    assert brief_request._render_records(BEFORE, first - 0.01) == []


def test_without_records_the_request_says_so():
    """An empty list could be taken for a mistake."""
    (request,) = asked(turns(1), 150_000, KnownState()).requests
    assert "| nothing" in request.prompt.splitlines()
