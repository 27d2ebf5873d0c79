"""Recordings of Codex and Gemini CLI that are still true."""

import json

import pytest

from recordings import codex_cases, gemini_cases
from recordings.codex_cases import CODEX
from recordings.gemini_cases import GEMINI
from recordings.tape import Tape, traces

pytestmark = pytest.mark.timeout(300)

CODEX_CASES = "limit", "compaction", "sigint", "resume-after-sigkill", "fork", "subagent", "asked"
RECORDED = ((CODEX, codex_cases.CASES), (GEMINI, gemini_cases.CASES))


def shape(tape: Tape) -> list[str]:
    """Return the types in the stream; consecutive pieces of one message count as one."""
    kinds = [line["type"] if isinstance(line, dict) else "torn" for line in tape.stream]
    return list(dict.fromkeys(kinds))


def alike(now: Tape, kept: Tape) -> None:
    assert now.code == kept.code
    assert shape(now) == shape(kept)
    # A session's end is not always reported: the program sometimes exits before its hook.
    fired = [[event for event, _ in tape.hooks if event != "SessionEnd"] for tape in (now, kept)]
    assert sorted(fired[0]) == sorted(fired[1])


@pytest.mark.parametrize("case", CODEX_CASES)
def test_a_recording_of_codex_is_still_true(case, codex, openai_model):
    """The same launch has the same output, hooks and exit."""
    now = codex_cases.CASES[case](codex, openai_model)
    alike(now, Tape.read(CODEX.kept / f"{case}.jsonl"))


@pytest.mark.parametrize("case", ["limit", "resume-after-sigkill", "subagent", "asked"])
def test_a_recording_of_gemini_cli_is_still_true(case, gemini, gemini_model):
    """The same launch has the same output, hooks and exit."""
    now = gemini_cases.CASES[case](gemini, gemini_model)
    alike(now, Tape.read(GEMINI.kept / f"{case}.jsonl"))


@pytest.mark.parametrize(("cli", "cases"), RECORDED, ids=lambda each: getattr(each, "name", ""))
def test_every_case_is_recorded_and_tells_nothing_of_the_machine(cli, cases):
    """Each case has one recording, with the program's version and without a path."""
    assert {path.stem for path in cli.kept.glob("*.jsonl")} == set(cases)
    for path in cli.kept.glob("*.jsonl"):
        assert traces(path.read_text()) == [], path.name
        tape = Tape.read(path)
        for _, payload in tape.hooks:
            assert {"session_id", "transcript_path", "cwd", "hook_event_name"} <= payload.keys()
        assert json.dumps(tape.stream).count("sk-test") == 0
