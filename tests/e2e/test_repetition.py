"""Agents of the real CLIs that repeat themselves: told once, handed off, then paused."""

import json

import pytest

from e2e.handing import KINDS
from e2e.test_codex import SETTINGS
from loopback import codex_cli
from loopback.script import Forever, Hang, Text, ToolCall
from rekindle.harnesses.codex import codex_hooks

pytestmark = pytest.mark.timeout(300)

BLOCKING = (
    "echo x >> blocked; [ $(wc -l < blocked) -gt 6 ] || "
    """echo '{"decision":"block","reason":"more"}'"""
)
SAME = Text("I will look at the parser now.")


@pytest.fixture(params=[*KINDS])
def found(request, place):
    """Create an agent of each CLI."""
    kind, model = KINDS[request.param]
    return kind(
        request.getfixturevalue(request.param), place, request.getfixturevalue(model)
    ).begin(99)


def configure_gemini(found, **model):
    found.cli.configure(model={"name": found.MODEL, "disableLoopDetection": True, **model})


def detected(found):
    return [
        (one["pattern"], one["count"], one["action"])
        for one in found.rekindle.events("repetition.detected")
    ]


def start(found, **more):
    return found.rekindle.place.start(
        [*found.rekindle.program, "run", "trades", "--once"],
        env=found.cli.environment(LC_ALL="C.UTF-8", **more),
        cwd=found.project,
    )


def test_calls(found):
    """Each pattern is found; a fresh session that repeats itself again is the last one."""
    if found.HARNESS == "gemini":
        configure_gemini(found, compressionThreshold=1)
    one, other, failing, same = map(found.bash, ("echo a", "echo b", "false", "echo same"))
    held = Hang(failing)
    found.model.play(*[one, other] * 6, held, *[failing] * 5, Forever(same))
    run = start(found)
    found.rekindle.place.wait_for(lambda: detected(found))
    held.release.set()
    assert run.wait() == 21, run.out + run.err
    once = [("call", 6, "told"), ("call", 9, "handoff")]
    assert detected(found) == [("alternation", 6, "told"), ("failure", 6, "told"), *once, *once]
    told = [part for part in found.model.log.main if "you repeat yourself" in json.dumps(part.body)]
    assert len(told[0].results) == 13, "the agent has the message after its next call"
    assert "The session before this one was stopped: it repeated itself" in found.openings[-1].text
    ended = found.rekindle.events("launch.ended")
    assert [one["exit"] for one in ended] == ["handoff"] * 2
    (paused,) = found.rekindle.events("safe_mode.entered")
    assert paused["why"] == "no-progress"
    assert "two sessions in a row repeated themselves" in paused["words"]
    assert "two sessions in a row" in found.rekindle("status", "trades")


def block_stop(found):
    """Let a hook of the user send the agent back to work, up to six times."""
    hook = {"type": "command", "command": BLOCKING, "timeout": 10}
    if found.HARNESS == "codex":
        file, config = (found.cli.home / ".codex" / name for name in ("hooks.json", "config.toml"))
        hooks = {"Stop": [{"hooks": [hook]}]}
        file.write_text(json.dumps({"hooks": hooks}))
        lines = [
            f'\n[hooks.state."{key}"]\ntrusted_hash = "{value["trusted_hash"]}"\n'
            for key, value in codex_hooks.make_trust_state(hooks, str(file)).items()
        ]
        config.write_text(config.read_text() + "".join(lines))
        return
    is_gemini = found.HARNESS == "gemini"
    file = found.cli.home / ".gemini/settings.json"
    file = file if is_gemini else found.project / ".claude/settings.json"
    settings = json.loads(file.read_text())
    event, seconds = ("AfterAgent", 10_000) if is_gemini else ("Stop", 10)
    settings.setdefault("hooks", {})[event] = [{"hooks": [{**hook, "timeout": seconds}]}]
    file.write_text(json.dumps(settings))


def test_messages(found):
    """Only a hook lets a session continue after a message without a call."""
    block_stop(found)
    found.model.play(Forever(SAME))
    run = start(found)
    assert run.wait() == 0, run.out + run.err
    assert detected(found)[0] == ("message", 6, "told")


def test_compactions(found):
    """Gemini CLI compacts only between two prompts, which a hook provides here."""
    more, calls = {}, [found.bash(f"echo {number}") for number in range(4)]
    steps = [ToolCall(call.name, call.input, found.filled(45)) for call in calls]
    match found.HARNESS:
        case "claude-code":
            more = {"DISABLE_AUTO_COMPACT": "", "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}
        case "codex":
            config = codex_cli.CONFIG.format(model=found.MODEL, url=found.model.url)
            text = SETTINGS.format(config=config, project=found.project)
            found.cli.configure(f"model_auto_compact_token_limit = 50000\n{text}")
        case _:
            configure_gemini(found, compressionThreshold=0.0001)
            block_stop(found)
            steps = [Text(f"step {number}", found.filled(45)) for number in range(4)]
    found.model.play(*steps, Forever(Text("done")))
    run = start(found, **more)
    run.wait()
    assert ("compaction", 3, "told") in detected(found), run.out + run.err
