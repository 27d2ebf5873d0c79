"""The manifest: a mistake is named with its line, and nothing hostile is built."""

import gc
import json
import time
from pathlib import Path
from typing import Annotated

import msgspec
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rekindle.documents import manifest
from rekindle.documents.manifest import AgentEntry, Manifest
from rekindle.documents.manifest_keys import Budget, Compaction
from rekindle.errors import ManifestError, NewerSchemaError, RekindleError
from rekindle.formats import (
    validation,
    yaml_lines,
)
from rekindle.formats.validation import (
    Duration,
    parse_duration,
)
from sampling import examples

REFERENCE = Path(__file__).parents[3] / ".." / "shared" / "design" / "manifest.yaml"

MANIFEST = """\
# ours
version: 1
agents:
  trades:
    harness: claude-code
    prompt: PROMPT.md
    until: ["just", "test"]
    budget: {usd: 10, hours: 8}
    convergence: off
    env:
      A: b
personas:
  summarizer:
    permissions:
      deny:
        - Write(*)
runtime:
  relay: {max_relay_tokens: 3000}
redact:
  allow: []
notify: []
pipelines:
  build:
    steps:
      - id: one
      - id: two
        depends_on: [one]
        handover:
          compaction: {trigger: token_limit_80%}
        strategy:
          matrix:
            from: items.json
            max_concurrency: 2
"""

AGENT_NAMES = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,10}\Z", fullmatch=True)
PATHS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


def refused(text: str) -> ManifestError:
    with pytest.raises(ManifestError) as caught:
        manifest.parse(text)
    return caught.value


def test_the_reference_loads():
    """Every key of the design is a key of the manifest."""
    if not REFERENCE.exists():
        reason = "the reference manifest is not beside this checkout"
        print(reason)
        pytest.skip(reason)
    found = manifest.parse(REFERENCE.read_text(encoding="utf-8"))
    assert found.version == 1
    agent = found.agents["trades"]
    assert (agent.harness, agent.convergence, agent.cycles) == ("claude-code", False, 10)
    assert set(msgspec.structs.asdict(agent)) == {
        field.name
        for field in msgspec.structs.fields(AgentEntry)
        if getattr(agent, field.name) is not None
    } | {
        *(
            "copy",
            "every",
            "handover",
            "keep",
            "may_control",
            "prepare",
            "relay",
            "review",
            "sandbox",
        ),
        *("until_claimed", "workspace", "accounts", "harnesses", "priority"),
    }
    # `handover` is with the steps of pipelines; the others are newer than the reference.


def test_a_manifest_is_read_whole():
    """Agents, personas and pipelines with all that is in them."""
    found = manifest.parse(MANIFEST)
    assert found.agents["trades"] == AgentEntry(
        harness="claude-code",
        prompt="PROMPT.md",
        until=["just", "test"],
        budget=Budget(usd=10, hours=8),
        convergence=False,
        env={"A": "b"},
    )
    one, two = found.pipelines["build"].steps
    assert (one.id, two.depends_on) == ("one", ["one"])
    assert two.handover
    assert two.handover.compaction == Compaction(trigger="token_limit_80%")
    assert two.strategy
    assert two.strategy.matrix
    assert two.strategy.matrix.source == "items.json"
    assert found.runtime == {"relay": {"max_relay_tokens": 3000}}


# Mistakes.


@pytest.mark.parametrize(
    ("right", "wrong", "path", "like"),
    [
        ("agents:\n", "agent:\n", "agent", "agents"),
        ("    prompt:", "    promt:", "agents.trades.promt", "prompt"),
        ("{usd: 10,", "{used: 10,", "agents.trades.budget.used", "usd"),
        ("    permissions:", "    permission:", "personas.summarizer.permission", "permissions"),
        ("      deny:", "      denny:", "personas.summarizer.permissions.denny", "deny"),
        ("  allow:", "  allows:", "redact.allows", "allow"),
        ("    steps:", "    step:", "pipelines.build.step", "steps"),
        ("depends_on", "dependson", "pipelines.build.steps.1.dependson", "depends_on"),
        ("{trigger:", "{triger:", "pipelines.build.steps.1.handover.compaction.triger", "trigger"),
        ("from: items", "form: items", "pipelines.build.steps.1.strategy.matrix.form", "from"),
    ],
)
def test_an_unknown_key_is_named_with_its_line_and_its_likeness(right, wrong, path, like):
    """At every level of the file."""
    assert MANIFEST.count(right) == 1
    text = MANIFEST.replace(right, wrong)
    error = refused(text)
    lines = [number for number, line in enumerate(text.splitlines(), 1) if wrong.strip() in line]
    assert str(error) == f"rekindle.yaml:{lines[0]}: unknown key {path!r}"
    assert error.hint == f"did you mean `{like}`?"


def test_a_key_like_no_other_gets_the_list():
    """The hint lists the possible keys."""
    error = refused("version: 1\nredact:\n  xyz: 1\n")
    assert (error.line, error.hint) == (3, "known here: allow")


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("version: 1", "version: one", "version: expected a whole number, got text"),
        ("version: 1", "version: true", "version: expected a whole number, got true or false"),
        ("version: 1", "version: 0", "version: expected a whole number of at least 1"),
        (
            "harness: claude-code",
            "harness: 5",
            "agents.trades.harness: expected text, got a whole number",
        ),
        ("harness: claude-code", "harness:", "agents.trades.harness: expected text, got nothing"),
        ("usd: 10", "usd: -1", "agents.trades.budget.usd: expected a number above 0"),
        ("A: b", "A: 5", "agents.trades.env.A: expected text, got a whole number"),
        (
            "- Write(*)",
            "- 5",
            "personas.summarizer.permissions.deny.0: expected text, got a whole number",
        ),
        ("notify: []", "notify: no", "notify: expected a list, got true or false"),
        ("- id: one", "- one", "pipelines.build.steps.0: expected a mapping, got text"),
        ("from: items.json", "from: 5", "pipelines.build.steps.1.strategy.matrix.from: expected"),
        (
            "max_concurrency: 2",
            "max_concurrency: 0",
            "max_concurrency: expected a whole number of at least 1",
        ),
        ("convergence: off", "convergence: maybe", "agents.trades.convergence: expected "),
    ],
)
def test_a_wrong_value_is_named_with_its_line(right, wrong, message):
    """This holds inside lists, and for optional keys."""
    assert MANIFEST.count(right) == 1
    text = MANIFEST.replace(right, wrong)
    error = refused(text)
    assert message in str(error)
    assert error.line == MANIFEST[: MANIFEST.index(right)].count("\n") + 1
    assert error.hint


def test_a_time_of_day_without_quotes_is_explained():
    """YAML reads 16:00 as a number of minutes."""
    error = refused(MANIFEST.replace("prompt: PROMPT.md", "prompt: 16:00"))
    assert "quotes" in error.hint


def test_a_missing_key_is_named_where_it_is_missing():
    """The nearest line above is the place to add it."""
    error = refused("agents: {}\n")
    assert str(error) == "rekindle.yaml: the file has no 'version'"
    assert error.hint == "add `version: 1` as the first line"
    error = refused("version: 1\nagents:\n  a:\n    prompt: x\n")
    assert str(error) == "rekindle.yaml:3: agents.a has no 'harness'"


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("version: 1\nversion: 1\n", 2, "the key 'version' is repeated"),
        ("version: 1\nagents:\n  a: {harness: x}\n  a: {harness: x}\n", 4, "is repeated"),
        ("version: 1\nnotify: &a []\nredact: {allow: *a}\n", 3, "aliases"),
        ("version: 1\nfleet: !!python/object/new:os.system {a: b}\n", 2, "tags"),
        ("version: 1\nfleet: !mine {a: b}\n", 2, "tags"),
        ("version: 1\nnotify: !!set [a]\n", 2, "tags"),
        ("version: 1\nnotify: [!!python/name:os.system a]\n", 2, "tags"),
        ("version: 1\nnotify: [!!binary aGk=]\n", 2, "tags"),
        ("version: 1\n!!str fleet: {}\n", 2, "tags"),
        ("version: 1\n? [a]\n: b\n", 2, "a key must be plain text"),
        ("version: 1\n? {a: b}\n: b\n", 2, "a key must be plain text"),
        ("version: 1\nagents: [\n", 3, ""),
        ("version: 1\n\tagents: a\n", 2, ""),
        ("version: 1\nfleet: {a: 2026-99-99}\n", 2, "is not a valid value: 2026-99-99"),
        ("version: 1\nfleet: {a: 0x_}\n", 2, "is not a valid value"),
        ("version: 1\n---\nversion: 1\n", 3, "more than one document"),
        ("- version: 1\n", 1, "key: value"),
        ("version\n", 1, "key: value"),
        ("version: 1\nagents:\n  A: {harness: x}\n", 3, "is not a valid agent name"),
        ("version: 1\nagents:\n  ../x: {harness: x}\n", 3, "is not a valid agent name"),
    ],
)
def test_what_cannot_be_meant_is_named_with_its_line(text, line, word):
    """Doubled keys, aliases, tags, odd keys and broken YAML."""
    error = refused(text)
    assert error.line == line
    assert word in str(error)


def test_an_empty_file_says_how_to_write_one():
    """Nothing, a comment and a null are empty."""
    for text in ("", "# only a comment\n", "---\n", "null\n"):
        error = refused(text)
        assert str(error) == "rekindle.yaml: is empty"
        assert "rekindle init" in error.hint


def test_a_newer_manifest_is_refused_by_its_versions():
    """The file's own name is in the error."""
    with pytest.raises(NewerSchemaError, match=r"x\.yaml: has schema 2, .* up to 1"):
        manifest.parse("version: 2\nfuture: {}\n", "x.yaml")


def test_a_key_that_was_left_empty_is_as_one_left_out():
    """Commenting out everything below a key leaves a valid file."""
    text = "version: 1\nagents:\n  # none yet\nruntime:\nredact:\nnotify:\nfleet: {a: }\n"
    assert manifest.parse(text) == Manifest(version=1, fleet={"a": None})


# YAML as people write it.


@pytest.mark.parametrize("word", ["on", "On", "yes", "true", "TRUE"])
@pytest.mark.parametrize("other", ["off", "Off", "no", "false"])
def test_switches_are_on_and_off(word, other):
    """The reference writes them so."""
    for text, value in ((word, True), (other, False)):
        found = manifest.parse(MANIFEST.replace("convergence: off", f"convergence: {text}"))
        assert found.agents["trades"].convergence is value


def test_a_switch_as_a_key_is_a_word():
    """A key is its text, whatever YAML could make of it."""
    found = manifest.parse("version: 1\nfleet: {on: 1, null: 2, 5: 3, ~: 4, 2026-01-01: 5}\n")
    assert list(found.fleet) == ["on", "null", "5", "~", "2026-01-01"]


def test_quotes_and_the_plain_mark_make_text():
    """A quoted number is text."""
    found = manifest.parse("version: 1\nnotify:\n- '1'\n- \"2\"\n- ! 3\n- |-\n  4\n- >-\n  5\n")
    assert found.notify == ["1", "2", "3", "4", "5"]


def test_the_line_of_every_path_is_known():
    """A path that does not exist has the line of its nearest ancestor."""
    _, marked = manifest.read_manifest(
        "\ufeff# c\r\nversion: 1\r\nfleet:\r\n  a: [1,\r\n    {b: 2}]\r\n"
    )
    assert marked.data == {"version": 1, "fleet": {"a": [1, {"b": 2}]}}
    assert marked.line(("version",)) == 2
    assert marked.line(("fleet", "a", 0)) == 4
    assert marked.line(("fleet", "a", 1, "b")) == 5
    assert marked.line(("fleet", "a", 1, "c", "d")) == 5
    assert marked.line(("nowhere",)) is None


# Hostile files.

HOSTILE = [
    "[" * 500_000,
    "{a: " * 200_000,
    "- " * 400_000,
    "? " * 400_000,
    "a:\n" + "".join(" " * n + "a:\n" for n in range(1, 400)),
    "fleet: 0x" + "f" * 100_000,
    "version: 0x" + "f" * 100_000,
    "fleet: " + "9" * 100_000,
    "fleet: 1" + ":0" * 100_000,
    "fleet: 1" + ":0" * 100_000 + ".5",
    "x" * 2_000_000,
    "a: &a [1]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]\n",
    "a: \0",
    "a: \ud800",
    "a: \x1b",
    "%YAML 9.9\n---\na: b\n",
    "notify: [=]",
    "<<: {version: 1}",
    "a: '",
    "\ufeff\ufeffa: b",
    "&a *a : b",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:20]))
def test_a_hostile_file_is_refused(text):
    """Bombs, endless numbers, deep nesting and odd bytes."""
    assert refused(text).file == "rekindle.yaml"


@pytest.mark.bench
def test_a_hostile_file_is_refused_quickly():
    """None takes ten times as long as an ordinary manifest of a thousand agents."""

    def seconds(read, text):
        began = time.process_time()
        read(text)
        return time.process_time() - began

    agents = "".join(f"  a{n}: {{harness: claude-code, cycles: 1}}\n" for n in range(1_000))
    ordinary = min(seconds(manifest.parse, f"version: 1\nagents:\n{agents}") for _ in range(3))
    for text in HOSTILE:
        assert min(seconds(refused, text) for _ in range(3)) < 10 * ordinary, text[:20]


@given(
    st.text(st.characters(), max_size=80)
    | st.lists(
        st.sampled_from(
            [
                *"[]{}:,&*!|>'\"%@`#-? \n",
                "a",
                "a: ",
                "\n  ",
                "- ",
                "!!int",
                "1",
                "version: 1\n",
                "<<",
                "~",
            ]
        ),
        max_size=20,
    ).map("".join)
)
@example("version: 1\nagents: {a: {harness: x, budget: {usd: .inf, tokens: 1e9}}}")
@example("version: 1\nfleet: {a: 9999-12-31T23:59:59+23:59}")
@example("version: 1\nfleet: {a: 2001-01-01 00:00:00 +99:99}")
@settings(max_examples=examples(300))
def test_any_text_is_a_manifest_or_refused(text):
    """Nothing but our own errors comes out."""
    try:
        found = manifest.parse(text)
    except RekindleError:
        return
    assert found.version == 1


def test_reading_leaves_nothing_behind():
    """A daemon that reads the file every minute does not grow."""
    for _ in range(3):
        manifest.parse(MANIFEST)
    gc.collect()
    assert not [thing for thing in gc.get_objects() if isinstance(thing, yaml.Node)]


# Durations and shapes.


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10), ("15m", 900), ("2h", 7200), ("1d", 86_400), ("1.5m", 90), ("0s", 0)],
)
def test_a_duration_has_a_unit(text, seconds):
    """Seconds, minutes, hours or days."""
    assert parse_duration(text) == seconds
    assert parse_duration(str(parse_duration(text))) == seconds


def test_no_duration_is_endless():
    """It is written as it was read."""
    assert parse_duration("none") == float("inf")
    assert str(parse_duration("none")) == "none"


@pytest.mark.parametrize(
    "text", ["", "s", "10", "-1s", "1w", "nans", "infs", "1e999d", 10, None, [], "1 s s"]
)
def test_anything_else_is_not_a_duration(text):
    """The error shows the format of a duration."""
    with pytest.raises(ValueError, match="expected a duration such as 10s"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"), [(90, "90s"), (60, "1m"), (5400, "90m"), (86_400, "1d"), (0.5, "0.5s")]
)
def test_a_duration_is_written_in_its_largest_whole_unit(seconds, text):
    """A person would write it so."""
    assert str(Duration(seconds)) == text


class Inner(msgspec.Struct):
    wait: Duration | None = None
    sizes: Annotated[list[int], msgspec.Meta(description="x")] | None = None


class Short(msgspec.Struct):
    few: Annotated[list[str], msgspec.Meta(max_length=1)] = []


class Outer(msgspec.Struct):
    inner: Annotated[Inner, msgspec.Meta(description="x")] = msgspec.field(default_factory=Inner)
    any_of: dict[str, list[int]] = {}


def conform(text: str) -> Outer:
    return validation.validate_data(yaml_lines.parse(text, "f"), Outer)


def test_data_takes_the_shape_of_a_type():
    """This holds below a path, and for missing data."""
    assert conform("inner: {wait: 2m, sizes: [1]}").inner == Inner(Duration(120), [1])
    assert conform("") == Outer()
    marked = yaml_lines.parse("a: {b: {wait: 1s}}", "f")
    assert validation.validate_data(marked, Inner, ("a", "b")) == Inner(Duration(1))
    assert validation.validate_data(marked, Inner, ("a", "x", "y")) == Inner()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("inner:\n  wait: 5", "f:2: inner.wait: expected a duration"),
        (
            "inner:\n  sizes:\n    - 1\n    - x",
            "f:4: inner.sizes.1: expected a whole number, got text",
        ),
        ("inner:\n  sizes: {a: 1}", "f:2: inner.sizes: expected a list, got a mapping"),
        ("any_of:\n  a:\n  - 1\n  - ~", "f:4: any_of.a.1: expected a whole number, got nothing"),
        ("any_of:\n  a: {}", "f:2: any_of.a: expected a list, got a mapping"),
        ("inner: []", "f:1: inner: expected a mapping, got a list"),
        ("inner:\n  wiat: 5", "f:2: unknown key 'inner.wiat'"),
    ],
)
def test_what_does_not_fit_a_type_is_named_with_its_line(text, message):
    """Through unions, annotations, lists and objects."""
    with pytest.raises(ManifestError) as caught:
        conform(text)
    assert str(caught.value).startswith(message)


def test_a_bound_on_a_list_is_named_with_its_line():
    """Each of its items fits, the list does not."""
    with pytest.raises(ManifestError, match="f:2: few: expected a list of length <= 1"):
        validation.validate_data(yaml_lines.parse("\nfew: [a, b]", "f"), Short)


@given(PATHS)
def test_quoted_text_reads_back(text):
    """In quotes where it needs them, plain where it does not."""
    assert yaml_lines.parse(f"a: {yaml_lines.quote_scalar(text)}\n", "f").data == {"a": text}


def test_plain_words_stay_plain():
    """Quotes are used only if YAML would read something else."""
    assert yaml_lines.quote_scalar("a/PROMPT-2.md") == "a/PROMPT-2.md"
    assert yaml_lines.quote_scalar("yes") == '"yes"'


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("just test", ["just", "test"]),
        ("'sh -c \"a && b\"'", ["sh", "-c", "a && b"]),
        ("'./my \"agent; rm\" x\\; $HOME'", ["./my", "agent; rm", "x;", "$HOME"]),
        ("'pytest -k \"a;b\" ''(c|d)'' \"$(e)\"'", ["pytest", "-k", "a;b", "(c|d)", "$(e)"]),
        ("'[ -e cd ]'", ["[", "-e", "cd", "]"]),
        ('["just", "test"]', ["just", "test"]),
    ],
)
def test_a_command_is_a_list_or_a_line(written, words):
    """A line is split as a shell does it; nothing in it is expanded."""
    text = (
        f"version: 1\nagents:\n  a: {{harness: command, until: {written}, command: {written}}}\n"
        f"personas:\n  p: {{adapter: command, command: {written}}}\n"
    )
    found = manifest.parse(text)
    assert found.agents["a"].until == found.agents["a"].command == words
    assert found.personas["p"].command == words


@pytest.mark.parametrize("written", ["'  '", "'a \"b'"])
def test_a_line_that_is_not_a_command_is_refused_with_its_line(written):
    text = f"version: 1\nagents:\n  a:\n    harness: command\n    until: {written}\n"
    with pytest.raises(ManifestError, match="until") as refused:
        manifest.parse(text)
    assert refused.value.line == 5
    assert "--all" in refused.value.hint


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("true && false", "`&&`"),
        ("echo three tests fail; exit 1", "`;`"),
        ("false || true", "`||`"),
        ("cat a | grep b", "`|`"),
        ("make > log", "`>`"),
        ("test -n $(cat a)", "`$(`"),
        ("test -n `cat a`", "a shell for ```"),
        ("./server &", "`&`"),
        ("(make)", "`(`"),
        ("cd src", "`cd`"),
        ("! grep TODO a", "`!`"),
        ("CI=1 make", "`CI=1`"),
        ("echo one\nfalse\n", "several lines"),
    ],
)
@pytest.mark.parametrize("key", ["agents: {a: {harness: x, until", "personas: {p: {command"])
def test_a_line_that_only_a_shell_understands_is_refused(line, shown, key):
    """As arguments of a passing program, its operators would verify nothing."""
    error = refused(f"version: 1\n{key}: {json.dumps(line)}}}}}\n")
    assert error.line == 2
    assert shown in str(error)
    name = key.rpartition(" ")[2].lstrip("{")
    example = error.hint.split("`, or quote")[0].removeprefix("write `")
    accepted = manifest.parse(f"version: 1\nagents: {{a: {{harness: x, {example}}}}}\n")
    assert getattr(accepted.agents["a"], name) == ["sh", "-c", line.strip()]


@pytest.mark.parametrize("key", ["model: opus", "temperature: 0.5", "permissions: {deny: [Bash]}"])
def test_a_key_of_a_persona_in_an_agent_is_refused_with_its_place(key):
    error = refused(f"version: 1\nagents:\n  a:\n    harness: x\n    {key}\n")
    name = key.partition(":")[0]
    assert str(error) == f"rekindle.yaml:5: unknown key 'agents.a.{name}'"
    assert f"`{name}:` belongs to a persona" in error.hint
