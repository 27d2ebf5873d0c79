"""The real CLIs report the quota of their account, and Rekindle shows it."""

import json
import time
from datetime import UTC, datetime

import pytest

from e2e.handing import HandingClaude, HandingCodex
from loopback.script import Text

pytestmark = pytest.mark.timeout(300)

RESET = int(time.time()) + 7200
"""A reset within the window; Claude Code ignores windows that reset much later."""
AT = datetime.fromtimestamp(RESET, UTC)
CLAUDE = {
    "anthropic-ratelimit-unified-status": "allowed",
    "anthropic-ratelimit-unified-reset": str(RESET),
    "anthropic-ratelimit-unified-representative-claim": "five_hour",
    **{
        f"anthropic-ratelimit-unified-{window}-{name}": value
        for window, share in (("5h", "0.42"), ("7d", "0.17"))
        for name, value in (("utilization", share), ("reset", str(RESET)), ("status", "allowed"))
    },
}
CODEX = {
    f"x-codex-{window}-{name}": value
    for window, minutes, used in (("primary", "300", "42"), ("secondary", "10080", "17"))
    for name, value in (
        ("used-percent", used),
        ("window-minutes", minutes),
        ("reset-at", str(RESET)),
    )
}
# The token is a fake. With a token instead of a key, the CLI reports limits as to a subscriber.
SUBSCRIBED = 'env: {ANTHROPIC_API_KEY: "", CLAUDE_CODE_OAUTH_TOKEN: of-the-tests}'


def check(handing, harness):
    """Run an agent, and compare the recorded quota with the model's headers."""
    handing.model.play(Text("all done"))
    handing.run()
    [reported] = handing.rekindle.events("quota.reported")
    windows = [
        {
            "name": name,
            "used_percent": used,
            "resets_at": f"{AT:%Y-%m-%dT%H:%M:%SZ}",
            "minutes": length,
        }
        for name, used, length in (("5 hours", 42.0, 300), ("7 days", 17.0, 10080))
    ]
    assert (reported["harness"], reported["windows"]) == (harness, windows)
    [account] = json.loads(handing.rekindle("status", "--json"))["accounts"]
    assert account["windows"] == windows
    assert (
        f"quota:  5 hours 42 % used, resets {AT.astimezone():%Y-%m-%d %H:%M}; 7 days 17 %"
        in handing.rekindle("status")
    )


def test_claude_code_reports_its_quota(claude, place, model):
    handing = HandingClaude(claude, place, model)
    handing.MORE = SUBSCRIBED
    model.headers |= CLAUDE
    check(handing.begin(90), "claude-code")


def test_codex_reports_its_quota(codex, place, openai_model):
    openai_model.headers |= CODEX
    check(HandingCodex(codex, place, openai_model).begin(90), "codex")


def test_claude_code_stops_at_the_reserve_and_waits_for_the_reset(claude, place, model):
    """The tool call in progress is finished, and nothing is started until the reset."""
    handing = HandingClaude(claude, place, model)
    handing.MORE = SUBSCRIBED
    model.headers |= CLAUDE | {"anthropic-ratelimit-unified-5h-utilization": "0.81"}
    handing.begin(90)
    manifest = handing.project / "rekindle.yaml"
    manifest.write_text(f"{manifest.read_text()}quota: {{reserve: 20%}}\n")
    model.play(handing.call(1, seconds=5.0), handing.call(2), Text("all done"))
    handing.run("--once", code=23)
    handing.assert_nothing_cut(1)
    [ended] = handing.rekindle.events("launch.ended")
    assert (ended["exit"], ended["is_held"]) == ("limit", True)
    assert ended["words"] == "5 hours 81 % used; the rest is kept in reserve (20 %)"
    before = len(model.log.main)
    assert "waiting" in handing.run("--once", code=23)
    assert len(model.log.main) == before
