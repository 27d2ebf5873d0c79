"""The contract notices: a harness with one thing broken does not pass it."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

import msgspec
import pytest

from rekindle.documents.launches.launch_types import (
    LaunchExit,
    LaunchSpec,
    ProgramCommand,
    WindowUsage,
)
from rekindle.documents.launches.one_shot import (
    ONE_SHOT_VARIABLE,
    OneShotAnswer,
    OneShotQuestion,
)
from rekindle.documents.manifest import Permissions, Persona
from rekindle.errors import UnenforceableError, UsageError
from rekindle.ports import complete_harness
from rekindle.testing import expected_results
from rekindle.testing.harness_contract import HarnessContract
from unit.harnesses import test_contract

CONTRACTS = (
    test_contract.TestClaudeCode,
    test_contract.TestCodex,
    test_contract.TestGemini,
    test_contract.TestCommand,
)
OTHER = "ffffffff-0000-4000-8000-000000000000"
SLOW = {
    "test_a_damaged_hook_is_refused_and_nothing_else",
    "test_a_damaged_line_raises_nothing",
    "test_a_damaged_transcript_raises_nothing",
    "test_an_answer_is_read_from_anything",
}
"""Tests that read thousands of lines. They come last: most faults are noticed before."""
TESTS = sorted(
    (each for each in dir(HarnessContract) if each.startswith("test_")),
    key=lambda each: (each in SLOW, each),
)
replace = msgspec.structs.replace


class Broken:
    """A harness, but for what is given."""

    def __init__(self, harness: ModuleType, changed: Mapping[str, Any]) -> None:
        self._harness, self._changed = harness, changed

    def __getattr__(self, name: str) -> Any:
        return self._changed[name] if name in self._changed else getattr(self._harness, name)


class Mutation(NamedTuple):
    contract: type[HarnessContract]
    name: str
    changed: Mapping[str, Any]


def after(function: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    """The same function, with its answer changed."""
    return lambda *given, **named: change(function(*given, **named))


# Output at its start


def commands(harness: Any) -> Iterator[tuple[str, Callable[[LaunchSpec], ProgramCommand]]]:
    made = harness.command

    def begun(**changed: Any) -> Callable[[LaunchSpec], ProgramCommand]:
        return lambda start: made(replace(start, **changed))

    def with_more(**more: Any) -> Callable[[LaunchSpec], ProgramCommand]:
        return after(made, lambda one: replace(one, **more))

    def adding_up(start: LaunchSpec, seen: list[str] = []) -> ProgramCommand:  # noqa: B006 - that is the fault
        seen.append("--again")
        return replace(made(start), argv=(*made(start).argv, *seen))

    yield "the program is ignored", begun(program=("of-my-own",))
    yield "options add up", adding_up
    yield "a mark of ours is set", with_more(environment={"REKINDLE_AGENT": "x"})
    yield "a path for a file", with_more(files={"../a": "x"})
    yield "a file that is never read", with_more(files={"a": "x"})
    if harness.CAN.launch_hooks:
        yield "no hooks", begun(hook=())


Changed = Callable[
    [Callable[[Permissions], Permissions | None]], Callable[[LaunchSpec], ProgramCommand]
]


def permitting(made: Callable[[LaunchSpec], ProgramCommand]) -> Changed:
    def permitted(
        change: Callable[[Permissions], Permissions | None],
    ) -> Callable[..., ProgramCommand]:
        def command(start: LaunchSpec) -> ProgramCommand:
            rules = start.persona.permissions
            persona = replace(start.persona, permissions=rules and change(rules))
            return made(replace(start, persona=persona))

        return command

    return permitted


def widened(rules: list[str] | None) -> list[str] | None:
    return rules and [rule.partition("(")[0] if ":*" in rule else rule for rule in rules]


def parts(harness: Any) -> Iterator[tuple[str, Callable[[LaunchSpec], ProgramCommand]]]:
    """A rule of a harness that enforces only whole tools."""
    permitted = permitting(harness.command)
    yield (
        "a part of a tool is the whole of it",
        permitted(lambda one: replace(one, allowed_tools=widened(one.allowed_tools))),
    )
    yield (
        "a part that is denied is the whole of it",
        permitted(lambda one: replace(one, deny=widened(one.deny))),
    )


def personas(harness: Any) -> Iterator[tuple[str, Callable[[LaunchSpec], ProgramCommand]]]:
    made, permitted = harness.command, permitting(harness.command)

    def without_prompt(start: LaunchSpec) -> ProgramCommand:
        persona = replace(start.persona, system_prompt_file=None)
        return made(replace(start, persona=persona, instructions=""))

    def as_a_word(start: LaunchSpec) -> ProgramCommand:
        found = without_prompt(start)
        return replace(found, argv=(*found.argv, start.instructions))

    def dropping(start: LaunchSpec) -> ProgramCommand:
        try:
            return made(start)
        except (UnenforceableError, UsageError):
            return made(replace(start, persona=Persona()))

    def in_other_words(start: LaunchSpec) -> ProgramCommand:
        try:
            return made(start)
        except UnenforceableError as error:
            raise ValueError from error

    yield "the persona is ignored", lambda start: made(replace(start, persona=Persona()))
    yield "permissions are ignored", permitted(lambda _: None)
    yield "no tools are all tools", permitted(lambda one: None if one.allowed_tools == [] else one)
    yield "what is denied is ignored", permitted(lambda one: replace(one, deny=None))
    yield "what is allowed is ignored", permitted(lambda one: replace(one, allowed_tools=None))
    yield (
        "permissions are not for terminals",
        lambda start: made(replace(start, persona=Persona()) if start.interactive else start),
    )
    yield "what cannot be kept is dropped", dropping
    yield "an unenforceable rule raises a foreign error", in_other_words
    yield "the system prompt is ignored", without_prompt
    yield "the system prompt is a word of its own", as_a_word
    if harness.CAN.resumes:
        yield (
            "permissions are for fresh sessions",
            lambda start: made(replace(start, persona=Persona()) if start.resumes else start),
        )


def sessions(harness: Any) -> Iterator[tuple[str, Callable[[LaunchSpec], ProgramCommand]]]:
    made = harness.command

    def unchecked(start: LaunchSpec) -> ProgramCommand:
        found = made(replace(start, session=OTHER))
        return replace(found, argv=tuple(word.replace(OTHER, start.session) for word in found.argv))

    def unnamed(start: LaunchSpec) -> ProgramCommand:
        found = made(start)
        return replace(found, argv=tuple(one for one in found.argv if "0a1b2c3d-" not in one))

    yield "it never resumes", lambda start: made(replace(start, resumes=False))
    yield (
        "it always resumes",
        lambda start: made(replace(start, resumes=True, session=start.session or OTHER)),
    )
    yield "another session", lambda start: made(replace(start, session=OTHER))
    yield "any session", unchecked
    yield "no session", unnamed


def terminals(harness: Any) -> Iterator[tuple[str, Callable[[LaunchSpec], ProgramCommand]]]:
    made = harness.command

    def unguarded(start: LaunchSpec) -> ProgramCommand:
        found = made(replace(start, prompt="the prompt" if start.prompt else ""))
        words = tuple(word.replace("the prompt", start.prompt) for word in found.argv)
        return replace(found, argv=words)

    def as_without(start: LaunchSpec) -> ProgramCommand:
        found = made(replace(start, interactive=False))
        told = (f"Task: {start.prompt}",) if start.interactive else ()
        return replace(found, argv=(*found.argv, *told))

    yield "a prompt becomes an option or a command", unguarded
    yield "a terminal is none", lambda start: made(replace(start, interactive=False))
    yield "it is started as without a terminal", as_without
    yield "a terminal has no prompt", lambda start: made(replace(start, prompt=""))


# Questions


def asked(harness: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    made = harness.ask

    def changed(**more: Any) -> Mapping[str, Any]:
        return {"ask": lambda question: made(replace(question, **more))}

    def with_words(*words: str) -> Mapping[str, Any]:
        return {"ask": after(made, lambda one: replace(one, argv=(*one.argv, *words)))}

    def unmarked(one: ProgramCommand) -> ProgramCommand:
        kept = {
            name: one.environment[name] for name in one.environment if name != ONE_SHOT_VARIABLE
        }
        return replace(one, environment=kept)

    def as_a_word(question: OneShotQuestion) -> ProgramCommand:
        found = made(replace(question, instructions=""))
        return replace(found, argv=(*found.argv, question.instructions))

    def split(question: OneShotQuestion) -> ProgramCommand:
        found = made(replace(question, schema=""))
        return replace(found, argv=(*found.argv, *f"--schema={question.schema}".split()))

    def granting(question: OneShotQuestion) -> ProgramCommand:
        try:
            return made(question)
        except UnenforceableError:
            return made(replace(question, persona=Persona()))

    def narrowly(question: OneShotQuestion) -> ProgramCommand:
        rules = (question.persona.permissions or Permissions()).allowed_tools or []
        kept = [rule for rule in rules if rule not in {"Bash", "Write", "Edit"}]
        if kept != rules:
            raise UnenforceableError("it", "a tool that writes", hint="grant none")
        return made(replace(question, persona=Persona()))

    yield "another program is asked", changed(program=("of-my-own",))
    yield "instructions are dropped", changed(instructions="")
    yield "a question is unmarked", {"ask": after(made, unmarked)}
    yield "a question resumes", with_words(f"--resume={OTHER}")
    yield "a question is a session", with_words(f"--session-id={OTHER}")
    yield "a question has hooks", with_words("--settings=/scratch/hooks.json")
    yield "instructions are a word of their own", {"ask": as_a_word}
    yield "a schema is many words", {"ask": split}
    yield "whatever is granted is dropped", {"ask": granting}
    yield "some that write are refused", {"ask": narrowly}
    yield (
        "a file for a question that is never read",
        {"ask": after(made, lambda one: replace(one, files={**one.files, "a": "x"}))},
    )


def answering(harness: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    read = harness.answer

    def careless(output: Any) -> Any:
        lines = [line.decode() for line in output]
        return read([line.encode() for line in lines])

    def answers(change: Callable[[OneShotAnswer], OneShotAnswer | None]) -> Mapping[str, Any]:
        return {"answer": after(read, lambda found: found and change(found))}

    yield "never an answer", {"answer": lambda output: None}
    yield "always an answer", {"answer": lambda output: OneShotAnswer("fine")}
    yield "an answer raises", {"answer": careless}
    yield "half an answer", answers(lambda one: replace(one, text=one.text[:3]))
    yield "an empty answer", answers(lambda one: replace(one, text=""))
    yield "an answer that cost more", answers(lambda one: replace(one, usd=(one.usd or 0) + 1))
    yield (
        "an answer of more tokens",
        answers(lambda one: replace(one, tokens=(one.tokens or 0) + 1)),
    )
    if harness.CAN.resumes:
        yield (
            "an answer before its end",
            {"answer": lambda output: read(output) or unfinished(output)},
        )


def unfinished(output: Any) -> OneShotAnswer | None:
    lines = list(output)
    return (
        OneShotAnswer(lines[0].decode("utf-8", "replace")) if lines and lines[0].strip() else None
    )


# Hooks


def hooked(harness: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    made, read = harness.hooks, harness.read_hook

    def handlers(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
        return after(
            made,
            lambda found: {
                event: [
                    {**entry, "hooks": [change(dict(hook)) for hook in entry["hooks"]]}
                    for entry in entries
                ]
                for event, entries in found.items()
            },
        )

    def lines(change: Callable[[str], str]) -> Any:
        return handlers(lambda hook: {**hook, "command": change(hook["command"])})

    def of_event(fact: Any) -> Any:
        return fact and replace(fact, session=OTHER)

    def unread(line: Any) -> Any:
        try:
            return read(line)
        except Exception as error:
            raise KeyError from error

    yield "a hook that fails blocks", {"hooks": lines(lambda line: line.removesuffix(" || true"))}
    yield "paths are not quoted", {"hooks": lines(lambda line: " ".join(shlex.split(line)))}
    yield "no time limit", {"hooks": handlers(lambda hook: {**hook, "timeout": 0})}
    yield "hooks of another", {"hooks": lines(lambda line: line.replace(harness.NAME, "other"))}
    for event in made(("hook.pyc",), supervised=False):
        yield f"only {event}", {"hooks": after(made, lambda found, on=event: {on: found[on]})}
        yield (
            f"no {event}",
            {
                "hooks": after(
                    made, lambda found, off=event: {on: found[on] for on in found if on != off}
                )
            },
        )
    if not harness.has_prompt([], OTHER):
        yield "every transcript has the prompt", {"has_prompt": lambda lines, prompt: True}
        yield "any transcript but none", {"has_prompt": lambda lines, prompt: bool(list(lines))}
    yield "no transcript has the prompt", {"has_prompt": lambda lines, prompt: False}
    yield "hooks tell nothing", {"read_hook": lambda _: None}
    yield "facts of another session", {"read_hook": after(read, of_event)}
    yield (
        "facts of a session that is none",
        {"read_hook": after(read, lambda fact: fact and replace(fact, session=""))},
    )
    yield "no visitors", {"read_hook": lambda line: read(replace(line, visitor=False))}
    yield "no launches", {"read_hook": lambda line: read(replace(line, launch=""))}
    yield "no processes", {"read_hook": lambda line: read(replace(line, process=""))}
    yield "another error gets out", {"read_hook": unread}
    yield "a session is told nothing", {"render_hook_output": lambda event, text: ""}
    yield (
        "a session is told half of it",
        {
            "render_hook_output": lambda event, text: harness.render_hook_output(
                event, text.splitlines()[0]
            )
        },
    )


# Parsing


def reading(
    harness: Any, cases: Mapping[str, expected_results.ExpectedResult]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    stream, used, classify = harness.read_stream, harness.usage, harness.classify

    def usage(change: Callable[[WindowUsage], WindowUsage | None]) -> Mapping[str, Any]:
        return {"usage": after(used, lambda found: found and change(found))}

    def careless(line: bytes) -> Any:
        line.decode()
        return stream(line)

    def misjudged(kind: str) -> Callable[[LaunchExit], LaunchExit]:
        wrong = "crash" if kind == "clean" else "clean"
        return lambda found: replace(found, kind=wrong) if found.kind == kind else found

    for kind in sorted({row[0] for one in cases.values() for row in one.seen}):
        yield (
            f"{kind} is dropped",
            {
                "read_stream": after(
                    stream,
                    lambda seen, off=kind: tuple(one for one in seen if type(one).__name__ != off),
                )
            },
        )
    yield "all is dropped", {"read_stream": lambda _: ()}
    yield "all is said twice", {"read_stream": after(stream, lambda seen: seen * 2)}
    yield "a list", {"read_stream": after(stream, list)}
    yield "bytes that are no text raise", {"read_stream": careless}
    for kind in sorted({one.exit[0] for one in cases.values() if one.exit}):
        yield f"{kind} is misjudged", {"classify": after(classify, misjudged(kind))}
    yield "every end is a crash", {"classify": lambda _: LaunchExit("crash", "it ended")}
    yield "an end without words", {"classify": after(classify, lambda one: replace(one, words=""))}
    yield (
        "words of many lines",
        {"classify": after(classify, lambda one: replace(one, words=f"{one.words}\n"))},
    )
    yield (
        "no hint",
        {"classify": after(classify, lambda one: replace(one, hint="", resets_at=None))},
    )
    yield (
        "a stop counts for nothing",
        {"classify": lambda one: classify(replace(one, stopped=False))},
    )
    if harness.CAN.resumes:
        yield (
            "any session will do",
            {"classify": lambda one: classify(replace(one, opened=one.session))},
        )
    if any(one.usage for one in cases.values()):
        yield "no usage", {"usage": lambda tail, windows: None}
        yield "less than nothing", usage(lambda one: replace(one, tokens=-one.tokens))
        yield "more than there is", usage(lambda one: replace(one, tokens=10**9))
        yield "another window", usage(lambda one: replace(one, window=(one.window or 1) * 7))
        yield "no window", usage(lambda one: replace(one, window=None))
        yield "known otherwise", usage(lambda one: replace(one, known="exact"))
        yield "of another model", usage(lambda one: replace(one, model="other"))
    if any(one.usage and one.usage[1] is None for one in cases.values()):
        yield "windows are not asked", {"usage": lambda tail, windows: used(tail, {})}


def mutations() -> Iterator[Mutation]:
    for contract in CONTRACTS:
        harness: Any = complete_harness(contract.harness)
        cases = expected_results.load_expected(contract.recordings)
        changes = {**dict(commands(harness)), **dict(personas(harness))}
        if harness.CAN.resumes:
            for those in (sessions, terminals, parts):
                changes |= dict(those(harness))
        found = {name: {"command": changed} for name, changed in changes.items()}
        found |= dict(hooked(harness)) if harness.CAN.hooks else {}
        found |= {**dict(asked(harness)), **dict(answering(harness))}
        found |= dict(reading(harness, cases))
        found |= {
            "a name with a space": {"NAME": "a b"},
            "a text in the place of names": {"PASSED_PREFIXES": "PREFIX_"},
            "everything is passed on": {"PASSED_PREFIXES": ("",)},
            "our marks are passed on": {"PASSED_PREFIXES": ("REKINDLE_",)},
            "the path is not passed on": {"BLOCKED_VARIABLES": ("PATH",)},
            "keys of GitHub": {"PASSED_PREFIXES": (*harness.PASSED_PREFIXES, "GITHUB_")},
            "keys of npm": {"PASSED_PREFIXES": (*harness.PASSED_PREFIXES, "NPM_")},
            "keys of every CLI": {"PASSED_PREFIXES": ("ANTHROPIC_", "OPENAI_", "GEMINI_")},
        }
        if "AWS_" not in harness.PASSED_PREFIXES:
            found["keys of a cloud"] = {"PASSED_PREFIXES": (*harness.PASSED_PREFIXES, "AWS_")}
        if harness.BLOCKED_VARIABLES:
            found["a session's marks are passed on"] = {"BLOCKED_VARIABLES": ()}
        yield from (Mutation(contract, name, changed) for name, changed in found.items())


def test_the_slow_tests_are_tests_of_the_contract():
    assert set(TESTS) > SLOW


@pytest.mark.parametrize(
    "mutation",
    [pytest.param(one, id=f"{one.contract.harness.NAME}-{one.name}") for one in mutations()],
)
def test_a_broken_harness_is_noticed(mutation):
    """At least one test of the contract notices it, in any way of failing."""
    contract, name, changed = mutation
    broken = type(
        "Broken", (contract,), {"harness": Broken(complete_harness(contract.harness), changed)}
    )()
    for test in TESTS:
        try:
            getattr(broken, test)()
        except Exception:  # noqa: BLE001 - pytest would report any as a failure
            return
    pytest.fail(f"{name}: the contract does not notice")
