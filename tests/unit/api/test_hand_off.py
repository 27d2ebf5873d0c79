"""A handoff that a person asks for."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from rekindle.api.hand_off import AcceptedHandoff, request_handoff
from rekindle.config import make_project
from rekindle.documents.launches.route import Route
from rekindle.errors import AgentError
from rekindle.policy.projection.projection import Projection
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.system import clock

TEXT = """\
version: 1
agents:
  a: {harness: [claude-code, {use: codex, command: [sh]}], command: [sh]}
"""


def record(seq, route, exit_kind):
    ended = clock.read_clock() - timedelta(seconds=1)
    resets = int((ended + timedelta(hours=1)).timestamp())
    more = {"exit": exit_kind, "ended": ended, "resets_at": resets} if exit_kind else {}
    return LaunchRecord(1, f"s{seq}", resumes=False, harness=route.harness, seq=seq, **more)


@pytest.mark.parametrize(
    ("exit_kind", "words"),
    [
        ("limit", "codex is blocked until .*: a usage limit"),
        ("auth", "codex does not work: a person must log in"),
    ],
)
def test_a_blocked_route_is_refused(tmp_path, exit_kind, words):
    """Otherwise the work would continue on another route than the answer promises."""
    (tmp_path / "PROMPT.md").write_text("# Task\nDo it.\n")
    attempts = {
        "one": record(1, Route("codex"), exit_kind),
        "two": record(2, Route("claude-code"), ""),
    }
    view = SimpleNamespace(projection=Projection("a", attempts=attempts))
    store = SimpleNamespace(read=lambda _: view, is_supervised=lambda _: True)
    with pytest.raises(AgentError, match=words) as caught:
        request_handoff(make_project(tmp_path, TEXT), store, "a", "codex")
    assert "rekindle restart a" in caught.value.hint


def test_an_agent_that_waits_has_no_session_to_stop(tmp_path):
    """The supervisor moves the work at once, for example when a limit blocks the first route."""
    (tmp_path / "PROMPT.md").write_text("# Task\nDo it.\n")
    attempts = {"one": record(1, Route("claude-code"), "limit")}
    view = SimpleNamespace(projection=Projection("a", attempts=attempts))
    sent = []
    store = SimpleNamespace(
        read=lambda _: view,
        is_supervised=lambda _: True,
        submit=lambda _, event: sent.append(event.to),
    )
    accepted = request_handoff(make_project(tmp_path, TEXT), store, "a", "codex")
    assert accepted == AcceptedHandoff("codex", is_working=False)
    assert sent == ["codex"]
