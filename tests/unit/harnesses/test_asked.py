"""A question, in the words of each CLI; and what is an answer, and what is none."""

import json

import pytest

from rekindle.documents.manifest import Permissions, Persona
from rekindle.documents.question import ASKED, Answer, Question
from rekindle.errors import ManifestError, UnenforceableError, UsageError
from rekindle.harnesses import claude_code, codex, command, gemini

CLIS = (claude_code, codex, gemini)
SCHEMA = '{"type": "object"}'


def asked(**more) -> Question:
    return Question(scratch="/scratch", **more)


def granting(*tools: str, program: tuple[str, ...] = (), **more) -> Question:
    return asked(program=program, persona=Persona(permissions=Permissions([*tools], **more)))


def lines(*records: dict) -> list[bytes]:
    return [json.dumps(record).encode() for record in records]


# How it is asked


def test_claude_code_is_asked():
    """Nobody's settings, servers, commands or attachments; its budget is its own to keep."""
    made = claude_code.ask(asked(instructions="Be brief.", schema=SCHEMA, usd_left=0.5))
    assert made.argv == (
        *("claude", "-p", "--output-format=stream-json", "--verbose", "--tools="),
        *("--setting-sources=", "--strict-mcp-config", "--disable-slash-commands"),
        *("--no-session-persistence", "--system-prompt-file=/scratch/instructions.md"),
        *(f"--json-schema={SCHEMA}", "--max-budget-usd=0.5000"),
    )
    assert made.files == {"instructions.md": "Be brief."}
    assert made.environment == {ASKED: "1", "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1"}


def test_codex_is_asked():
    """Without hooks and shell, in a sandbox that nothing writes in; nothing is kept."""
    made = codex.ask(asked(instructions="Be brief.", schema=SCHEMA, program=("my-codex",)))
    assert made.argv[:3] == ("my-codex", "exec", "--json")
    assert made.argv[-1] == "-"
    assert {
        *("--ephemeral", "--sandbox=read-only", '--config=approval_policy="never"'),
        *("--disable=hooks", "--disable=shell_tool", "--disable=unified_exec"),
        *('--config=web_search="disabled"', "--config=features.multi_agent=false"),
        *("--output-schema=/scratch/schema.json", '--config=developer_instructions="Be brief."'),
    } <= set(made.argv)
    assert made.files == {"schema.json": SCHEMA}
    assert made.environment == {ASKED: "1"}


def test_gemini_is_asked():
    """All tools are denied, and its system prompt is the question's."""
    made = gemini.ask(asked(instructions="Be brief.", schema=SCHEMA))
    assert made.files["instructions.md"] == "Be brief."
    assert made.environment["GEMINI_SYSTEM_MD"] == "/scratch/instructions.md"
    assert made.environment[ASKED] == "1"
    assert "--policy=/scratch/gemini-policy.toml" in made.argv
    assert made.files["gemini-policy.toml"].count("[[rule]]") == 1
    assert 'toolName = "*"\ndecision = "deny"' in made.files["gemini-policy.toml"]
    assert not any("session" in word for word in made.argv)


def test_any_program_is_asked():
    """It gets its prompt; what else there is stands in files that it may look at."""
    made = command.ask(asked(program=("./sum", "up"), instructions="Be brief.", schema=SCHEMA))
    assert made.argv == ("./sum", "up")
    assert made.environment == {
        ASKED: "1",
        "REKINDLE_INSTRUCTIONS": "/scratch/instructions.md",
        "REKINDLE_SCHEMA": "/scratch/schema.json",
    }
    assert made.files == {"instructions.md": "Be brief.", "schema.json": SCHEMA}
    with pytest.raises(UsageError, match="no program"):
        command.ask(asked())


def test_a_question_may_read_where_its_persona_says_so():
    """Whole tools, less those that are denied; Codex has none that only reads."""
    question = granting("Glob", "Read", "Grep", deny=["Grep", "Bash(rm:*)"])
    assert "--tools=Read,Glob" in claude_code.ask(question).argv
    rules = gemini.ask(question).files["gemini-policy.toml"]
    assert [name in rules for name in ("read_file", "glob", "grep_search")] == [True, True, False]
    assert codex.ask(question) == codex.ask(asked())
    with pytest.raises(UnenforceableError, match="Read"):
        command.ask(granting("Read", program=("./sum",)))


@pytest.mark.parametrize("harness", [*CLIS, command])
@pytest.mark.parametrize("rule", ["Bash", "Write", "read_file", "Read(**)", "mcp__x", "-p", "*"])
def test_a_question_is_granted_nothing_else(harness, rule):
    """Neither a tool that writes or runs, nor a part of one that reads."""
    with pytest.raises(UnenforceableError, match="cannot hold") as refused:
        harness.ask(granting("Read", rule, program=("./sum",)))
    assert "Read, Grep, Glob" in refused.value.hint


@pytest.mark.parametrize("harness", [*CLIS, command])
def test_a_part_of_what_is_granted_cannot_be_denied(harness):
    """Who denies a part of reading means it."""
    with pytest.raises(UnenforceableError, match="secrets"):
        harness.ask(granting("Read", program=("./sum",), deny=["Read(./secrets/**)"]))


def test_what_does_not_fit_a_command_line_is_refused():
    """Of Claude Code a schema, of Codex the instructions; files take them else."""
    with pytest.raises(ManifestError, match="schema"):
        claude_code.ask(asked(schema="x" * 130_000))
    with pytest.raises(ManifestError, match="too long"):
        codex.ask(asked(instructions="x" * 130_000))
    for made in (claude_code.ask(asked(instructions="x" * 500_000)), gemini.ask(asked())):
        assert max(map(len, made.argv)) < 200


@pytest.mark.parametrize("harness", [*CLIS, command])
def test_half_of_a_character_can_be_written(harness):
    """Nobody can say where the words come from."""
    made = harness.ask(asked(instructions="a\ud800b", program=("./sum",)))
    "".join((*made.argv, *made.files.values())).encode()


# What it answers

RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "fine",
    "total_cost_usd": 0.25,
    "modelUsage": {"opus": {"inputTokens": 100, "outputTokens": 10}},
}


def test_claude_code_answers():
    """By its account; what a schema asked for comes before its words."""
    other = {"type": "assistant", "message": {"content": [{"type": "text", "text": "hm"}]}}
    assert claude_code.answer(lines(other, RESULT)) == Answer("fine", 0.25, 110)
    found = claude_code.answer(lines({**RESULT, "structured_output": {"a": ["é", None]}}))
    assert found == Answer('{"a":["é",null]}', 0.25, 110)
    for none in (
        {**RESULT, "is_error": True},
        {**RESULT, "subtype": "error_max_budget_usd"},
        {**RESULT, "result": " "},
        {**RESULT, "modelUsage": {}},  # a command of its own, as /help
        other,
    ):
        assert claude_code.answer(lines(none)) is None


def test_codex_answers():
    """By the last message of a turn that was completed."""
    first, last = (
        {"type": "item.completed", "item": {"type": "agent_message", "text": text}}
        for text in ("let me see", "fine")
    )
    done = {"type": "turn.completed", "usage": {"input_tokens": 100, "output_tokens": 10}}
    assert codex.answer(lines(first, last, done)) == Answer("fine", None, 110)
    assert codex.answer(lines(first, last)) is None
    failed = {"type": "turn.failed", "error": {"message": "no"}}
    assert codex.answer(lines(first, failed)) is None
    assert codex.answer(lines(done)) is None


def test_gemini_answers():
    """By the pieces behind its last call; a complaint behind them voids them."""

    def said(text: str) -> dict:
        return {"type": "message", "role": "assistant", "content": text, "delta": True}

    call = {"type": "tool_use", "tool_name": "glob", "tool_id": "1", "parameters": {}}
    done = {"type": "result", "status": "success", "stats": {"total_tokens": 220}}
    whole = lines(said("let me"), call, said("fi"), said("ne"), done)
    assert gemini.answer(whole) == Answer("fine", None, 220)
    error = {"type": "error", "severity": "warning", "message": "Loop detected"}
    assert gemini.answer(lines(said("fine"), error, done)) is None
    assert gemini.answer(lines(said("fine"), {**done, "status": "error"})) is None
    assert gemini.answer(lines(said("fine"))) is None


def test_any_program_answers():
    """By all that it wrote, with its lines as they were."""
    assert command.answer([b"# Brief", b"", b"  two\xff"]) == Answer("# Brief\n\n  two�")
    assert command.answer([b"# Brief\n", b"two\n"]) == Answer("# Brief\ntwo")
    assert command.answer([b" \n"]) is None
    assert command.answer([b"x" * 2**20] * 33) is None
