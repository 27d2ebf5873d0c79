"""Messages for running agents of the real CLIs: received once, and acknowledged in the log."""

import json

import pytest

from e2e.handing import KINDS
from loopback.script import Text
from rekindle.documents.person_message import render_sign
from rekindle.stores.folders.private_files import find_private_project

pytestmark = pytest.mark.timeout(300)

WAITING = "touch began; until [ -e {} ]; do sleep 0.02; done"


@pytest.fixture(params=[*KINDS])
def found(request, place):
    """Create an agent of each CLI."""
    kind, model = KINDS[request.param]
    return kind(
        request.getfixturevalue(request.param), place, request.getfixturevalue(model)
    ).begin(99)


def start(found):
    return found.rekindle.place.start(
        [*found.rekindle.program, "run", "trades", "--once"],
        env=found.cli.environment(LC_ALL="C.UTF-8"),
        cwd=found.project,
    )


def count_sign(found, message):
    """Return how often each request of the agent's model shows the message."""
    sign = render_sign(message)
    return [json.dumps(one.body).count(sign) for one in found.model.log.main]


def wait_until_offered(found, message):
    """Wait until the supervisor has given the message to the hook."""
    private = find_private_project(found.project).agent("trades")
    sign = render_sign(message).encode()
    found.rekindle.place.wait_for(
        lambda: any(sign in path.read_bytes() for path in private.launch.glob("notice-*"))
    )


def test_a_running_agent_receives_two_messages(found):
    """Each arrives with the result of a call, once; the log says where and when."""
    calls = [found.bash(WAITING.format(name)) for name in ("one", "two", "three")]
    found.model.play(*calls, Text("done"))
    run = start(found)
    found.rekindle.place.wait_for((found.project / "began").exists)
    names = []
    for name, text in (("one", "Use the blue one."), ("two", "And 'quote' \"it\".\nTwice.")):
        told = json.loads(found.rekindle("tell", "trades", text, "--json"))
        assert "with the result of its next tool call" in told["arrives"]
        wait_until_offered(found, told["message"])
        (found.project / name).touch()
        names.append(told["message"])
        found.rekindle.place.wait_for(
            lambda: len(found.rekindle.events("message.delivered")) == len(names)
        )
    (found.project / "three").touch()
    assert run.wait() == 0, run.out + run.err
    assert count_sign(found, names[0]) == [0, 1, 1, 1]
    assert count_sign(found, names[1]) == [0, 0, 1, 1]
    delivered = found.rekindle.events("message.delivered")
    assert [(one["message"], one["how"]) for one in delivered] == [(name, "hook") for name in names]
    (launch,) = found.rekindle.events("launch.started")
    assert {one["launch"] for one in delivered} == {launch["launch"]}
