"""Events as programs get them."""

import json
import re
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents import events
from rekindle.documents.event_output import (
    render_output,
    round_numbers,
)

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(-1e9, 1e9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["usd", "run_usd", "seconds", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def test_a_line_has_its_agent_and_numbers_for_people():
    ended = events.LaunchEnded(
        ts=NOW,
        seq=7,
        gen=1,
        launch="l",
        cycle=1,
        session="s",
        exit="clean",
        seconds=1.2345678901234567,
        usd=0.0043999999999999994,
        run_usd=12.300000000000001,
    )
    line = render_output(events.render(ended), "trades").decode()
    assert line.startswith('{"v":1,"agent":"trades","seq":7,"gen":1,"ts":')
    assert {"seconds": 1.235, "usd": 0.0044, "run_usd": 12.3}.items() <= json.loads(line).items()


def test_the_agent_of_a_first_event_is_not_told_twice():
    line = events.render(events.AgentCreated(ts=NOW, agent="trades"))
    assert render_output(line, "trades").count(b'"agent"') == 1


@given(JSON)
def test_no_number_has_more_than_four_decimals(value):
    text = json.dumps(round_numbers(value))
    numbers = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    assert not re.search(r"\.\d{5}", numbers)
