"""Going on in a session whose cache has expired, against a fresh one: by what the real CLI says."""

import re
import signal
from datetime import datetime, timedelta

import pytest

from e2e.sandbox import BANNER, long_call
from loopback.script import Text, ToolCall, Usage

pytestmark = pytest.mark.timeout(180)

CHEAPER = "runtime: {restart: {fresh_when_cheaper: true}}\n"
MOMENT = re.compile(r'(?<="timestamp":")[^"]+')


def earlier(found: re.Match[str]) -> str:
    moment = datetime.fromisoformat(found[0]) - timedelta(hours=2)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"


@pytest.mark.parametrize("is_old", [True, False])
def test_a_fresh_session_where_it_is_cheaper(rekindle, model, is_old):
    """Only where the CLI says that its cache has expired, and before its model is asked."""
    manifest = rekindle.project / "rekindle.yaml"
    manifest.write_text(manifest.read_text() + CHEAPER)
    model.play(ToolCall("Bash", long_call().input, Usage(input=90_000)), Text("all done"))
    running = rekindle.start("run")
    rekindle.wait_until_hooked()
    running.signal(signal.SIGKILL)
    running.wait()
    rekindle.place.wait_for(lambda: not rekindle.agents(), timeout=20)
    (transcript,) = (rekindle.cli.home / ".claude/projects").rglob("*.jsonl")
    if is_old:
        transcript.write_text(MOMENT.sub(earlier, transcript.read_text()))
    asked = len(model.log.main)
    rekindle("run")
    resumed = next(one for one in rekindle.events("session.started") if one["source"] == "resume")
    assert resumed["context_tokens"] > 50_000
    assert resumed.get("cache_expired", False) is is_old
    started, ended = rekindle.events("launch.started"), rekindle.events("launch.ended")
    assert len(model.log.main) == asked + 1
    if not is_old:
        assert [one["exit"] for one in ended] == ["lost", "clean"]
        assert len({one["session"] for one in started}) == 1
        return
    assert [one["exit"] for one in ended] == ["lost", "costly", "clean"]
    assert [one.get("resumes", False) for one in started] == [False, True, False]
    assert "its cache has expired" in started[-1]["why"]
    assert BANNER in model.log.main[-1].text
