"""Spans of runs, cycles and sessions, made from the log."""

import msgspec

from night_events import at, log
from rekindle.documents import events
from rekindle.plugins import BUILT_IN
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.traces.build_trace import PROVIDERS, TraceReader

LAUNCH = {"launch": "l1", "cycle": 1, "session": "s1"}
HISTORY = log(
    (events.AgentCreated, {"agent": "trades"}),
    (events.RunStarted, {}),
    (events.CycleStarted, {"cycle": 1}),
    (events.LaunchStarted, {**LAUNCH, "harness": "claude-code"}),
    (events.WindowSizeReported, {"harness": "claude-code", "model": "opus", "window": 200}),
    (events.SessionCompacted, {"session": "s1", "trigger": "auto"}),
    (events.LaunchEnded, {**LAUNCH, "exit": "crash", "run_tokens": 70, "usd": 0.5}),
    (events.WaitStarted, {"why": "limit", "until": at(99)}),
    (events.LaunchStarted, {**LAUNCH, "launch": "l2", "harness": "claude-code", "resumes": True}),
    (events.LaunchEnded, {**LAUNCH, "launch": "l2", "exit": "clean", "run_tokens": 100}),
    (events.CycleEnded, {"cycle": 1, "verdict": "progress"}),
    (events.RunEnded, {"why": "done"}),
)


def read(history, agent="trades", project="shop"):
    return list(TraceReader(project, agent).read(history))


def test_sessions_are_in_cycles_and_cycles_in_runs():
    first, second, cycle, run = read(HISTORY)
    assert [first.parent, second.parent, cycle.parent, run.parent] == [cycle.id] * 2 + [run.id, ""]
    assert len({span.trace for span in (first, second, cycle, run)}) == 1
    assert len({span.id for span in (first, second, cycle, run)}) == 4
    assert [span.name for span in (first, cycle, run)] == [
        "invoke_agent trades",
        "cycle",
        "invoke_workflow trades",
    ]
    assert [(span.start, span.end) for span in (first, second, cycle, run)] == [
        (at(3), at(6)),
        (at(8), at(9)),
        (at(2), at(10)),
        (at(1), at(11)),
    ]


def test_attributes_follow_the_conventions_for_generative_ai():
    first, second, cycle, run = read(HISTORY)
    assert first.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "trades",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "opus",
        "gen_ai.conversation.id": "s1",
        "rekindle.harness": "claude-code",
        "rekindle.resumes": False,
        "rekindle.exit": "crash",
        "rekindle.tokens": 70,
        "rekindle.cost_usd": 0.5,
        "error.type": "crash",
    }
    assert (first.failure, second.failure) == ("crash", "")
    assert second.attributes["rekindle.tokens"] == 30
    assert cycle.attributes == {"rekindle.cycle": 1, "rekindle.verdict": "progress"}
    assert run.attributes["rekindle.outcome"] == "done"


def test_moments_are_marked_on_the_innermost_span():
    first, _, cycle, run = read(HISTORY)
    assert [mark.name for mark in first.marks] == ["rekindle.session.compacted"]
    [wait] = cycle.marks
    assert (wait.name, wait.attributes) == ("rekindle.wait.started", {"rekindle.why": "limit"})
    assert run.marks == ()


def test_the_same_log_gives_the_same_ids_and_other_agents_and_runs_other_ids():
    assert read(HISTORY) == read(HISTORY)
    traces = {
        read(HISTORY)[-1].trace,
        read(HISTORY, agent="news")[-1].trace,
        read(HISTORY, project="bank")[-1].trace,
        read([msgspec.structs.replace(event, seq=event.seq + 20) for event in HISTORY])[-1].trace,
    }
    assert len(traces) == 4


def test_spans_do_not_depend_on_where_the_log_was_cut_into_parts():
    reader = TraceReader("shop", "trades")
    assert [span for event in HISTORY for span in reader.read([event])] == read(HISTORY)


def test_another_host_continues_the_same_trace():
    """A host's log may start in the middle of a cycle, with the state so far."""
    known = msgspec.to_builtins(fold_events(Projection(agent="trades"), HISTORY[:8]), str_keys=True)
    received = events.AgentReceived(ts=at(8), seq=8, known=known)
    whole = {span.id: span for span in read(HISTORY)}
    own = read([received, *HISTORY[8:]])
    assert [span.name for span in own] == [whole[span.id].name for span in own]
    assert {span.trace for span in own} == {span.trace for span in whole.values()}
    assert [span.parent for span in own] == [whole[span.id].parent for span in own]
    assert own[0].attributes["rekindle.tokens"] == 30
    assert own[-1].start == at(1)


def test_a_session_without_an_end_is_lost():
    again = {**LAUNCH, "launch": "l3", "harness": "codex"}
    [lost] = read([*HISTORY[:4], *log((events.LaunchStarted, again))])
    assert (lost.failure, lost.attributes["error.type"]) == ("lost", "lost")


def test_work_outside_of_a_run_has_no_span():
    assert read(HISTORY[2:]) == []


def test_a_new_run_ends_the_spans_of_the_last_one():
    ended = read([*HISTORY[:4], *log((events.RunStarted, {}))])
    assert [span.name for span in ended] == [
        "invoke_agent trades",
        "cycle",
        "invoke_workflow trades",
    ]


def test_providers_are_named_for_harnesses_that_exist():
    assert set(PROVIDERS) <= set(BUILT_IN)
