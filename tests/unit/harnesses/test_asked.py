"""A question, in the words of each CLI; and what is an answer, and what is none."""

import json

import pytest

from rekindle.documents.launches.one_shot import (
    ONE_SHOT_VARIABLE,
    OneShotAnswer,
    OneShotQuestion,
)
from rekindle.documents.manifest import Permissions, Persona
from rekindle.errors import ManifestError, UnenforceableError, UsageError
from rekindle.harnesses import command_harness
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import codex_harness
from rekindle.harnesses.gemini import gemini_harness

CLIS = (claude_harness, codex_harness, gemini_harness)
SCHEMA = '{"type": "object"}'


def asked(**more) -> OneShotQuestion:
    return OneShotQuestion(scratch="/scratch", **more)


def granting(*tools: str, program: tuple[str, ...] = (), **more) -> OneShotQuestion:
    return asked(program=program, persona=Persona(permissions=Permissions([*tools], **more)))


def lines(*records: dict) -> list[bytes]:
    return [json.dumps(record).encode() for record in records]


# Requests


def test_claude_code_is_asked():
    """It runs without a person's settings, servers or commands, and keeps its own budget."""
    made = claude_harness.ask(asked(instructions="Be brief.", schema=SCHEMA, usd_left=0.5))
    assert made.argv == (
        *("claude", "-p", "--output-format=stream-json", "--verbose", "--tools="),
        *("--setting-sources=", "--strict-mcp-config", "--disable-slash-commands"),
        *("--no-session-persistence", "--system-prompt-file=/scratch/instructions.md"),
        *(f"--json-schema={SCHEMA}", "--max-budget-usd=0.5000"),
    )
    assert made.files == {"instructions.md": "Be brief."}
    assert made.environment == {ONE_SHOT_VARIABLE: "1", "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1"}


def test_codex_is_asked():
    """Without hooks and shell, in a sandbox that nothing writes in; nothing is kept."""
    made = codex_harness.ask(asked(instructions="Be brief.", schema=SCHEMA, program=("my-codex",)))
    assert made.argv[:3] == ("my-codex", "exec", "--json")
    assert made.argv[-1] == "-"
    assert {
        *("--ephemeral", "--sandbox=read-only", '--config=approval_policy="never"'),
        *("--disable=hooks", "--disable=shell_tool", "--disable=unified_exec"),
        *('--config=web_search="disabled"', "--config=features.multi_agent=false"),
        *("--output-schema=/scratch/schema.json", '--config=developer_instructions="Be brief."'),
    } <= set(made.argv)
    assert made.files == {"schema.json": SCHEMA}
    assert made.environment == {ONE_SHOT_VARIABLE: "1"}


def test_gemini_is_asked():
    """All tools are denied, and its system prompt is the question's."""
    made = gemini_harness.ask(asked(instructions="Be brief.", schema=SCHEMA))
    assert made.files["instructions.md"] == "Be brief."
    assert made.environment["GEMINI_SYSTEM_MD"] == "/scratch/instructions.md"
    assert made.environment[ONE_SHOT_VARIABLE] == "1"
    assert "--policy=/scratch/gemini-policy.toml" in made.argv
    assert made.files["gemini-policy.toml"].count("[[rule]]") == 1
    assert 'toolName = "*"\ndecision = "deny"' in made.files["gemini-policy.toml"]
    assert not any("session" in word for word in made.argv)


def test_any_program_is_asked():
    """It gets its prompt; the rest is in files that it may read."""
    made = command_harness.ask(
        asked(program=("./sum", "up"), instructions="Be brief.", schema=SCHEMA)
    )
    assert made.argv == ("./sum", "up")
    assert made.environment == {
        ONE_SHOT_VARIABLE: "1",
        "REKINDLE_INSTRUCTIONS": "/scratch/instructions.md",
        "REKINDLE_SCHEMA": "/scratch/schema.json",
    }
    assert made.files == {"instructions.md": "Be brief.", "schema.json": SCHEMA}
    with pytest.raises(UsageError, match="no program"):
        command_harness.ask(asked())


def test_a_question_may_read_where_its_persona_says_so():
    """Whole tools, less those that are denied; Codex has none that only reads."""
    question = granting("Glob", "Read", "Grep", deny=["Grep", "Bash(rm:*)"])
    assert "--tools=Read,Glob" in claude_harness.ask(question).argv
    rules = gemini_harness.ask(question).files["gemini-policy.toml"]
    assert [name in rules for name in ("read_file", "glob", "grep_search")] == [True, True, False]
    assert codex_harness.ask(question) == codex_harness.ask(asked())
    with pytest.raises(UnenforceableError, match="Read"):
        command_harness.ask(granting("Read", program=("./sum",)))


@pytest.mark.parametrize("harness", [*CLIS, command_harness])
@pytest.mark.parametrize("rule", ["Bash", "Write", "read_file", "Read(**)", "mcp__x", "-p", "*"])
def test_a_question_is_granted_nothing_else(harness, rule):
    """Neither a tool that writes or runs, nor a part of a reading tool, is granted."""
    with pytest.raises(UnenforceableError, match="cannot enforce") as refused:
        harness.ask(granting("Read", rule, program=("./sum",)))
    assert "Read, Grep, Glob" in refused.value.hint


@pytest.mark.parametrize("harness", [*CLIS, command_harness])
def test_a_part_of_what_is_granted_cannot_be_denied(harness):
    """A persona that denies a part of reading means it."""
    with pytest.raises(UnenforceableError, match="secrets"):
        harness.ask(granting("Read", program=("./sum",), deny=["Read(./secrets/**)"]))


def test_what_does_not_fit_a_command_line_is_refused():
    """For Claude Code this is a schema, for Codex the instructions; files take them otherwise."""
    with pytest.raises(ManifestError, match="schema"):
        claude_harness.ask(asked(schema="x" * 130_000))
    with pytest.raises(ManifestError, match="too long"):
        codex_harness.ask(asked(instructions="x" * 130_000))
    for made in (
        claude_harness.ask(asked(instructions="x" * 500_000)),
        gemini_harness.ask(asked()),
    ):
        assert max(map(len, made.argv)) < 200


@pytest.mark.parametrize("harness", [*CLIS, command_harness])
def test_half_of_a_character_can_be_written(harness):
    """The source of the words is unknown, so they may contain half a character."""
    made = harness.ask(asked(instructions="a\ud800b", program=("./sum",)))
    "".join((*made.argv, *made.files.values())).encode()


# Answers

RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "fine",
    "total_cost_usd": 0.25,
    "modelUsage": {"opus": {"inputTokens": 100, "outputTokens": 10}},
}


def test_claude_code_answers():
    """The answer is its result; the value of a schema comes before its text."""
    other = {"type": "assistant", "message": {"content": [{"type": "text", "text": "hm"}]}}
    assert claude_harness.answer(lines(other, RESULT)) == OneShotAnswer("fine", 0.25, 110)
    found = claude_harness.answer(lines({**RESULT, "structured_output": {"a": ["é", None]}}))
    assert found == OneShotAnswer('{"a":["é",null]}', 0.25, 110)
    for none in (
        {**RESULT, "is_error": True},
        {**RESULT, "subtype": "error_max_budget_usd"},
        {**RESULT, "result": " "},
        {**RESULT, "modelUsage": {}},  # a command of its own, as /help
        other,
    ):
        assert claude_harness.answer(lines(none)) is None


def test_codex_answers():
    """The answer is the last message of a completed turn."""
    first, last = (
        {"type": "item.completed", "item": {"type": "agent_message", "text": text}}
        for text in ("let me see", "fine")
    )
    done = {"type": "turn.completed", "usage": {"input_tokens": 100, "output_tokens": 10}}
    assert codex_harness.answer(lines(first, last, done)) == OneShotAnswer("fine", None, 110)
    assert codex_harness.answer(lines(first, last)) is None
    failed = {"type": "turn.failed", "error": {"message": "no"}}
    assert codex_harness.answer(lines(first, failed)) is None
    assert codex_harness.answer(lines(done)) is None


def test_gemini_answers():
    """The answer is the text after its last call; a later complaint voids it."""

    def said(text: str) -> dict:
        return {"type": "message", "role": "assistant", "content": text, "delta": True}

    call = {"type": "tool_use", "tool_name": "glob", "tool_id": "1", "parameters": {}}
    done = {"type": "result", "status": "success", "stats": {"total_tokens": 220}}
    whole = lines(said("let me"), call, said("fi"), said("ne"), done)
    assert gemini_harness.answer(whole) == OneShotAnswer("fine", None, 220)
    error = {"type": "error", "severity": "warning", "message": "Loop detected"}
    assert gemini_harness.answer(lines(said("fine"), error, done)) is None
    assert gemini_harness.answer(lines(said("fine"), {**done, "status": "error"})) is None
    assert gemini_harness.answer(lines(said("fine"))) is None


def test_any_program_answers():
    """The answer is its whole output, with its lines unchanged."""
    assert command_harness.answer([b"# Brief", b"", b"  two\xff"]) == OneShotAnswer(
        "# Brief\n\n  two�"
    )
    assert command_harness.answer([b"# Brief\n", b"two\n"]) == OneShotAnswer("# Brief\ntwo")
    assert command_harness.answer([b" \n"]) is None
    assert command_harness.answer([b"x" * 2**20] * 33) is None
