"""The request for a second opinion: its budget, its cost, and what happens without an answer."""

import json
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from rekindle.documents import relay as relays
from rekindle.documents.events import CycleEnded, WorkSigns
from rekindle.documents.launches.one_shot import OneShotAnswer
from rekindle.documents.manifest import Budget
from rekindle.errors import StoppedError, SummaryError
from rekindle.flows.cycles.ask_opinion import OpinionAsker
from rekindle.flows.transcripts.summarize_turns import Summarizer
from rekindle.policy.settings.runtime_settings import RuntimeSettings, Settings, StallSettings
from rekindle.policy.supervision.budget import RunSpending

NOW = datetime(2026, 4, 9, tzinfo=UTC)
RELAY = relays.parse("## Next Action\nWrite the lexer and its tests\n")
SAID = {"verdict": "progress", "quote": "Write the lexer and its", "evidence": "journal.md"}


def make_cycle(number):
    signs = WorkSigns(artefacts=("journal.md",))
    return CycleEnded(ts=NOW, seq=number, cycle=number, verdict="stalled", signs=signs)


class World:
    """The parts of a supervisor that a second opinion needs."""

    def __init__(self, folder, model, *, cap=100_000, usd=None, **caps):
        self.told, self.events, self.requests, self._model = [], [], [], model
        run = SimpleNamespace(
            intervened=0, run_spending=lambda: RunSpending(usd=1.5, tokens=70), raised_caps=dict
        )
        self.now = SimpleNamespace(ended={n: make_cycle(n) for n in (1, 2)}, run=run)
        ports = SimpleNamespace(
            settings=Settings(runtime=RuntimeSettings(stall=StallSettings(ask=True))),
            clock=lambda: NOW,
            elapsed=lambda: 0.0,
            tell=lambda report: self.told.append(report.words),
            store=SimpleNamespace(
                writer=self.writer, redaction=SimpleNamespace(text=lambda text: text)
            ),
        )
        budget = Budget(usd=usd, **caps)
        agent = SimpleNamespace(name="trades", folder=folder, budget=budget)
        self.asker = OpinionAsker(agent, ports, lambda: Summarizer(model and self.ask, cap=cap))

    @contextmanager
    def writer(self, _, *, wait):
        assert wait
        yield SimpleNamespace(fold=list, append=self.events.append, projection=self.now)

    def ask(self, request):
        self.requests.append(request)
        return self._model()

    def add(self):
        return self.asker.add(make_cycle(3), RELAY, self.now)


def answering():
    return OneShotAnswer(json.dumps(SAID), usd=0.25, tokens=30)


def failing():
    raise SummaryError("it has no quota", usd=0.5, tokens=9)


def test_the_cost_counts_for_the_run(tmp_path):
    world = World(tmp_path, answering)
    assert world.add().opinion == "progress"
    (made,) = world.events
    assert (made.document, made.usd, made.run_usd, made.run_tokens) == ("opinion", 0.25, 1.75, 100)
    assert world.told == []


@pytest.mark.parametrize(("usd", "left"), [(None, 2.0), (1.75, 0.25), (50.0, 2.0)])
def test_the_answer_may_cost_what_is_left_of_the_budget(tmp_path, usd, left):
    world = World(tmp_path, answering, usd=usd)
    world.add()
    assert 2.0 - world.requests[0].spent == left


@pytest.mark.parametrize("caps", [{"usd": 1.5}, {"tokens": 70}])
def test_no_request_is_sent_after_the_budget_is_spent(tmp_path, caps):
    world = World(tmp_path, answering, **caps)
    ended = world.add()
    assert (ended.opinion, world.requests, world.events) == ("unusable", [], [])
    assert "budget" in ended.opinion_words


def test_a_failed_answer_is_paid_for_and_asked_for_once(tmp_path):
    world = World(tmp_path, failing)
    ended = world.add()
    assert (ended.opinion, ended.opinion_words) == ("unusable", "it has no quota")
    assert [made.usd for made in world.events] == [0.5]
    assert len(world.requests) == 1
    assert world.told == ["there is no second opinion: it has no quota"]


def test_a_relay_that_is_too_long_is_not_sent(tmp_path):
    world = World(tmp_path, answering, cap=10)
    assert world.add().opinion == "unusable"
    assert world.requests == []


def test_without_a_model_there_is_no_opinion(tmp_path):
    world = World(tmp_path, None)
    assert world.add().opinion_words == "no model is set up for summaries"
    assert world.events == []


def test_a_stop_is_not_an_opinion(tmp_path):
    def stop():
        raise StoppedError

    with pytest.raises(StoppedError):
        World(tmp_path, stop).add()
