"""Updates of an agent become lines of the bridge."""

import pytest

from rekindle.harnesses.acp.acp_updates import AcpUpdates


def read(*updates, replay=False):
    lines = []
    reader = AcpUpdates(lines.append)
    reader.is_replay = replay
    for update in updates:
        reader.take(update)
    reader.flush()
    return [line for line in lines if line["type"] != "alive"], reader


def say(text):
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}


def call(status="", **more):
    kind = "tool_call_update" if status else "tool_call"
    return {"sessionUpdate": kind, "toolCallId": "c1", "status": status or "pending", **more}


def test_a_call_is_reported_once_and_when_its_input_is_known():
    """Some agents announce a call before they know its input, or describe it again at its end."""
    given = {"kind": "execute", "rawInput": {"command": "ls"}}
    lines, reader = read(call(), call("in_progress", **given), call("completed"), call("completed"))
    assert [line["type"] for line in lines] == ["called", "returned"]
    assert lines[0]["arguments"] == {"command": "ls"}
    assert reader.finished_calls == 1


def test_a_call_is_reported_when_its_input_has_arrived_as_text():
    """Kimi sends the input in pieces, and only later as an object."""
    pieces = ['{"comm', '{"command": "ls', '{"command": "ls -l"}']
    texts = [[{"type": "content", "content": {"type": "text", "text": one}}] for one in pieces]
    start = call(kind="execute", title="Bash")
    lines, _ = read(start, *(call("in_progress", content=text) for text in texts))
    assert [line["arguments"] for line in lines] == [{"command": "ls -l"}]


def test_a_command_is_reported_when_it_is_known():
    """The agent opencode first sends only its folder."""
    start = call(kind="execute", title="bash", rawInput={"cwd": "/work"})
    running = call("in_progress", kind="execute", rawInput={"cwd": "/work", "command": "ls"})
    lines, _ = read(start, running)
    assert [line["arguments"] for line in lines] == [{"command": "ls"}]


def test_a_call_of_an_old_conversation_is_not_reported_when_it_ends_later():
    lines = []
    reader = AcpUpdates(lines.append)
    reader.is_replay = True
    reader.take(call(kind="execute", rawInput={"command": "ls"}))
    reader.is_replay = False
    reader.take(call("failed"))
    assert lines == []


def test_a_call_that_failed_is_not_work():
    lines, reader = read(call("failed"))
    assert lines[-1] == {"type": "returned", "id": "c1", "ok": False, "refused": False}
    assert reader.finished_calls == 0


def test_the_closing_text_is_what_follows_the_last_call():
    _, reader = read(say("I start"), call("completed"), say("Error: "), say("429"))
    assert (reader.closing, reader.closing_length) == ("Error: 429", 10)
    _, reader = read(say("x" * 5_000))
    assert (len(reader.closing), reader.closing_length) == (600, 5_000)


def test_a_long_text_without_a_line_break_is_printed():
    lines, _ = read(say("x" * 3_000), say("y" * 3_000), say("z"))
    assert [len(line["text"]) for line in lines] == [6_000, 1]


def use(amount):
    cost = {"amount": amount, "currency": "USD"}
    return {"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": cost}


@pytest.mark.parametrize(
    ("spent", "replayed", "totals", "costs"),
    [
        (0.0, [], [0.5, 2.5], [0.5, 2.5]),
        (0.0, [1.0, 2.0], [2.5], [0.5]),
        (2.0, [], [2.0, 2.5], [0.0, 0.5]),
        # The cost of a launch that was killed before it reported it is not lost.
        (1.0, [2.0], [2.5], [1.5]),
        # This agent counts from its own start.
        (2.0, [], [0.4, 2.5], [0.4, 2.5]),
        (0.1 + 0.2, [], [0.3], [0.0]),
    ],
)
def test_only_the_new_part_of_a_session_s_cost_counts(spent, replayed, totals, costs):
    lines = []
    reader = AcpUpdates(lines.append, spent)
    reader.is_replay = True
    for update in (say("old"), call("completed"), *map(use, replayed)):
        reader.take(update)
    assert (lines, reader.usd) == ([], None)
    reader.is_replay = False
    for total in totals:
        reader.take(use(total))
    assert [line["usd"] for line in lines] == costs
    assert reader.usd == costs[-1]


def test_costs_in_other_currencies_are_ignored():
    cost = {"amount": 2, "currency": "EUR"}
    _, reader = read({"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": cost})
    assert reader.usd is None


def test_a_limit_of_claude_is_reported_with_its_reset():
    limit = {"status": "rejected", "resetsAt": 1794795171}
    usage = {"sessionUpdate": "usage_update", "_meta": {"_claude/rateLimit": limit}}
    assert {"type": "limited", "resets_at": 1794795171} in read(usage)[0]
    limit["status"] = "allowed"
    assert [line["type"] for line in read(usage)[0]] == ["used"]


def test_updates_of_any_shape_are_accepted():
    odd = [{}, {"sessionUpdate": 3}, {"sessionUpdate": "agent_message_chunk", "content": []}]
    odd += [{"sessionUpdate": "tool_call"}, {"sessionUpdate": "usage_update", "cost": 1}]
    assert [line["type"] for line in read(*odd)[0]] == ["used"]
