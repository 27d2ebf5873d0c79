"""Recordings that are still true: the real program now, compared with its recordings."""

import pytest

from loopback.script import Parallel, Text, ToolCall
from recordings.cases import CASES
from recordings.recording import Recording
from rekindle.documents.launches.launch_types import LaunchSpec
from rekindle.documents.manifest import Permissions, Persona
from rekindle.harnesses.claude_code import claude_harness

pytestmark = pytest.mark.timeout(300)

STILL_TRUE = (
    *("parallel", "limit", "refused-529", "no-key", "too-long-later", "max-turns", "compaction"),
    *("subagent", "sigint", "resume-after-sigkill", "resume-missing", "fork", "clear", "braked"),
    "asked",
)


def fired(recording: Recording) -> list[str]:
    # The hooks of one batch run in parallel, so their order is random.
    return sorted(event for event, _ in recording.hooks)


@pytest.mark.parametrize("case", STILL_TRUE)
def test_a_recording_is_still_true(case, claude, model):
    """The same launch has the same output, hooks and exit."""
    now, kept = CASES[case](claude, model), Recording.load(case)
    assert now.kinds == kept.kinds
    assert fired(now) == fired(kept)
    assert (now.code, now.exit.kind) == (kept.code, kept.exit.kind)


def test_every_case_is_recorded():
    """Each case has a recording, so that `just record` leaves none out."""
    assert [case for case in CASES if Recording.load(case).session == ""] == ["asked"]


def test_a_persona_s_rules_reach_the_cli_unchanged(claude, model):
    """A rule with a comma stays one rule, and one that begins with a dash is not an option."""
    permissions = Permissions(allowed_tools=["Bash(echo a,b)", "-p"], deny=["WebFetch", "Edit"])
    prompt = claude.project / "-persona.md"
    prompt.write_text("You are the keeper of the light.")
    start = LaunchSpec(
        session="6f1c2a34-0000-4000-8000-00000000abcd",
        persona=Persona(permissions=permissions, system_prompt_file=prompt.name),
        program=(str(claude.program),),
    )
    calls = tuple(ToolCall("Bash", {"command": each}) for each in ("echo a,b", "mkdir denied"))
    model.play(Parallel(calls), Text("all done"))
    run = claude.launch(claude_harness.command(start).argv, "hello").wait(180)
    assert run.returncode == 0
    assert run.session == start.session
    first, second = model.log.main
    assert [part.is_error for part in second.results] == [False, True]
    assert not (claude.project / "denied").exists()
    assert not {"WebFetch", "Edit"} & {tool["name"] for tool in first.body["tools"]}
    assert "keeper of the light" in first.text
    assert first.prompts == ["hello"]
