"""A supervisor's own prompts to its sessions never count as a person's word in a brief."""

import pytest

from days import Shop, turn_of
from rekindle.documents import primer
from rekindle.documents import relay as relays
from rekindle.documents.transcripts.turns import Turn
from rekindle.errors import SummaryError
from rekindle.flows.priming.compose_primer import compose_primer
from rekindle.flows.transcripts.session_turns import strip_primers
from rekindle.policy.projection import open_loops
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.thresholds.texts import TEXT_CHARACTERS

TASK = "Work on the parser."
RELAY = """\
# Relay

## Current Phase
parsing

## What We Did This Cycle
{did}

## Next Action
Go on with the parser.
"""


@pytest.fixture
def shop(store, clock, tmp_path):
    found = Shop(store, clock, tmp_path)
    found.task = TASK
    return found


def add(shop, identity, text):
    shop.store.submit(
        "trades", open_loops.propose_loop(shop.state.loops, identity, text, shop.clock())
    )
    shop.clock.forward(minutes=1)


def relay(shop, did):
    with shop.store.writer("trades") as writer:
        writer.commit_relay(relays.parse(RELAY.format(did=did).encode()), by="agent")
    shop.clock.forward(minutes=1)


def cycle(shop, *, rules="", recovering=False, launch="l"):
    """A session as a supervisor starts it: asked with a primer."""
    composed = compose_primer(
        shop.store,
        "trades",
        shop.store.read("trades"),
        now=shop.clock(),
        settings=Settings(),
        rules=rules,
        task=TASK,
        recovering=recovering,
    )
    session = shop.session(launch=launch)
    session.asks(primer.render(composed))
    return session


@pytest.mark.parametrize("launch", ["l", ""])
@pytest.mark.parametrize("task", [TASK, "Work until empty-files is fixed."])
def test_what_one_cycle_resolved_the_primer_of_the_next_does_not_take_back(shop, task, launch):
    shop.task = task
    add(shop, "empty-files", "The parser refuses empty files")
    cycle(shop, launch=launch).says("parser.py takes them. empty-files is resolved.")
    cycle(shop, launch=launch).says("I went on with the docs.")

    def told(request):
        said = [turn_of(request.prompt, "empty-files is resolved")]
        return {"resolved": [{"id": "empty-files", "reason": "takes them", "turns": said}]}

    shop.brief(told)
    assert not shop.state.loops["empty-files"].is_open


@pytest.mark.parametrize("rules", ["", "be careful. " * TEXT_CHARACTERS])
def test_text_in_a_relay_is_not_a_word_of_the_person(shop, rules):
    """The same holds for a primer so long that only its beginning is kept."""
    add(shop, "rate-limit", "How many requests an hour?")
    relay(shop, "The rate-limit question is resolved, sixty.")
    cycle(shop, rules=rules).says("I went on.")
    shop.brief({"Risk": [{"text": "The rate-limit question is resolved, sixty", "turns": [1]}]})
    assert "the person" not in shop.text()
    assert "rate-limit question" not in shop.model.prompts[0]
    assert TASK in shop.model.prompts[0]


def test_an_old_relay_brings_nothing_back(shop):
    add(shop, "rate-limit", "How many requests an hour?")
    relay(shop, "I asked about the rate-limit, it is pending.")
    event = open_loops.resolve_loop(shop.state.loops, "rate-limit", "sixty", shop.clock())
    shop.store.submit("trades", event)
    shop.clock.forward(minutes=1)
    cycle(shop).says("I went on.")
    again = {"id": "rate-limit", "text": "How many requests an hour?", "turns": [1]}
    shop.brief({"open_loops": [again]})
    assert not shop.state.loops["rate-limit"].is_open


def test_without_a_model_what_comes_next_is_the_task(shop):
    add(shop, "rate-limit", "How many requests an hour?")
    cycle(shop, recovering=True).says("I went on.")
    shop.brief(SummaryError("down"))
    assert f"the person, turn 1: “{TASK}”" in shop.text()


def asked(*texts):
    return [Turn(number=n, who="person", text=text) for n, text in enumerate(texts, 1)]


def theirs(turns, **more):
    return [(one.who, one.text) for one in strip_primers(turns, TASK, **more)]


def test_only_the_first_turn_of_a_supervised_session_is_ours():
    found = theirs(asked("whatever", "my own words"), is_supervised=True)
    assert found == [("person", TASK), ("person", "my own words")]
    found = theirs(asked("my own words"), is_supervised=True, is_begun=True)
    assert found == [("person", "my own words")]


def test_the_prompt_of_a_resumed_session_is_ours():
    turns = asked("my own words", primer.RESUME_PROMPT.strip())
    assert theirs(turns, is_supervised=False) == [("person", "my own words"), ("cli", "")]


def test_what_a_person_has_asked_for_in_a_session_that_was_full_stays_theirs():
    told = primer.render_request("the walrus first")
    text = f"{primer.CONTINUATION}\n- the walrus is done\n\n{told}\n"
    assert theirs(asked(text), is_supervised=False) == [("person", "the walrus first")]
