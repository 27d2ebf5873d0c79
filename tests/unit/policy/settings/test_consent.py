"""Which settings need the operator's consent."""

import pytest

from rekindle.documents import manifest
from rekindle.documents.manifest_pipelines import PipelineStep
from rekindle.policy.settings.consent import (
    UNCONTROLLED_KEYS,
    UNCONTROLLED_STEP_KEYS,
    compare_settings,
    render_changes,
    select_controlled,
    select_inherited,
    select_pipeline,
)
from rekindle.thresholds.texts import CONSENT_VALUE_CHARACTERS as SHORT

BASE = """\
version: 1
agents:
  trades:
    harness: command
    prompt: PROMPT.md
    rules: RULES.md
    convergence: true
    handover: {compaction: off}
  docs:
    harness: codex
"""


def controlled(more="", shared=""):
    text = BASE.replace("    rules: RULES.md\n", f"    rules: RULES.md\n{more}") + shared
    return select_controlled(manifest.parse(text), "trades")


def test_a_list_of_clis_is_shown_as_it_is_written():
    """There is no key `harnesses` that the user could write."""
    listed = BASE.replace("harness: command", "harness: [command, {use: codex, persona: p}]")
    after = select_controlled(manifest.parse(listed), "trades")
    changes = compare_settings(controlled(), after)
    shown = 'agents.trades.harness: "command" → ["command", {"use": "codex", "persona": "p"}]'
    assert render_changes(changes) == shown


CHANGES = {
    "harness": ("    harness: codex\n", ""),
    "command": ("    command: [sh, -c, evil]\n", ""),
    "until": ("    until: [sh, -c, evil]\n", ""),
    "env": ("    env: {PYTHONPATH: /evil}\n", ""),
    "budget": ("    budget: {usd: 1000}\n", ""),
    "persona": ("    persona: root\n", ""),
    "dir": ("    dir: elsewhere\n", ""),
    "cycles": ("    cycles: 0\n", ""),
    "mode": ("    mode: stay\n", ""),
    "personas": ("", "personas: {root: {permissions: {allowed_tools: [Bash]}}}\n"),
    "notify": ("", "notify: ['json://evil.example']\n"),
    "prices": ("", "prices: {m: {input: 0, output: 0}}\n"),
    "runtime": ("", "runtime: {restart: {max_crashes: 1000}}\n"),
    "redact": ("", "redact: {allow: ['.*']}\n"),
    "fleet": ("", "fleet: {address: 'evil.example:7233'}\n"),
}


@pytest.mark.parametrize("key", CHANGES)
def test_what_starts_permits_or_pays_is_controlled(key):
    """A change of any of these is seen, and named."""
    more, shared = CHANGES[key]
    if key == "harness":
        text = BASE.replace("harness: command", "harness: codex")
        after = select_controlled(manifest.parse(text), "trades")
    else:
        after = controlled(more, shared)
    [change] = compare_settings(controlled(), after)
    assert key in change.key
    assert change.render() == render_changes([change])


def test_every_key_of_an_agent_is_controlled_or_free():
    """A key that is added to the manifest is controlled unless it is listed as free."""
    keys = set(manifest.AgentEntry.__struct_fields__)
    assert keys >= UNCONTROLLED_KEYS
    assert {"command", "until", "env", "budget", "harness", "persona"}.isdisjoint(UNCONTROLLED_KEYS)


@pytest.mark.parametrize("old", ["RULES.md", "PROMPT.md", "harness: codex"])
def test_the_task_and_other_agents_are_free(old):
    """Another prompt, other rules and another agent's settings change nothing here."""
    text = BASE.replace(old, old.replace("RULES", "MORE").replace("PROMPT", "T").replace("x", "x2"))
    assert text != BASE
    assert compare_settings(controlled(), select_controlled(manifest.parse(text), "trades")) == []


def test_a_path_that_leads_outside_is_controlled():
    """A free key is controlled once it leads outside the project."""
    text = manifest.parse(BASE)
    after = select_controlled(text, "trades", {"agents.trades.prompt": "/etc/passwd"})
    [change] = compare_settings(controlled(), after)
    assert change.render() == 'agents.trades.prompt: added "/etc/passwd"'


def test_changes_are_short_and_harmless():
    """However long or hostile a value is, the line stays one line; further changes are counted."""
    evil = {"a": "x" * 5000 + "\n\x1b]0;title\x07"}
    [change] = compare_settings({}, evil)
    assert len(change.render()) < 200
    assert "5024 characters; see rekindle.yaml" in change.render()
    assert change.render().isprintable()
    many = compare_settings({}, {f"k{number}": number + 1 for number in range(9)})
    assert render_changes(many).endswith("; and 6 more")
    assert compare_settings({"a": 1}, {})[0].render() == "a: 1 → removed"


def test_what_differs_is_shown_however_long_the_value_is():
    """Two values that begin alike do not look alike."""
    begin = "make all; " * 40
    [change] = compare_settings({"a": [begin + "end"]}, {"a": [begin + "touch x; end"]})
    before, after = change.render().split(" → ")
    assert before.endswith('make all; make all; make all; []end"]')
    assert after.endswith('make all; make all; make all; [touch x; ]end"]')
    assert len(after) < 100


def test_an_added_value_is_shown_to_its_end():
    [change] = compare_settings({}, {"a": "x" * 900 + "\ntouch y"})
    assert change.render().endswith('x\\ntouch y"')


def test_characters_that_are_not_seen_are_escaped():
    [change] = compare_settings({"a": "ab"}, {"a": "a\u200bb\u202e\U000e0041"})
    assert change.render() == r'a: "ab" → "a\u200bb\u202e\U000e0041"'


def test_an_address_is_shown_without_its_secrets():
    """Any part of it but the scheme may be a token; a variable is not one."""
    [change] = compare_settings(
        {"notify": ["$ALERTS"]}, {"notify": ["slack://t0ken/b", "ntfys://$TOPIC"]}
    )
    assert change.render() == 'notify: ["$ALERTS"] → ["slack://…", "ntfys://$TOPIC"]'


def change(before, after):
    [found] = compare_settings({"a": before}, {"a": after})
    return found.render()


@pytest.mark.parametrize("size", [SHORT - 3, SHORT - 2, SHORT - 1])
def test_a_short_value_is_shown_whole(size):
    """Its two quotes count; one character more, and only the difference is shown."""
    before, after = "x" * size, "x" * (size - 1) + "y"
    is_short = size + 2 <= SHORT
    assert (change(before, after) == f'a: "{before}" → "{after}"') is is_short


@pytest.mark.parametrize(("common", "lead"), [(28, ""), (29, ""), (30, "…"), (300, "…")])
def test_the_text_around_a_difference(common, lead):
    """Thirty characters on both sides, with a sign where text is left out."""
    begin, end = "b" * common, "e" * 300
    quote = '"' if common < 30 else ""
    found = change(f"{begin}OLD{end}", f"{begin}NEW{end}")
    around = quote + "b" * min(common, 30)
    expected = [f"{lead}{around}[{word}]{'e' * 30}…" for word in ("OLD", "NEW")]
    assert found == f"a: {' → '.join(expected)}"


def test_the_end_of_a_difference():
    """No sign if nothing is left out."""
    begin = "b" * 300
    assert change(f"{begin}OLD", f"{begin}NEW").endswith('[NEW]"')
    assert change(f"{begin}OLD{'e' * 29}", f"{begin}NEW{'e' * 29}").endswith(f'{"e" * 29}"')
    assert change(f"{begin}OLD{'e' * 30}", f"{begin}NEW{'e' * 30}").endswith(f"{'e' * 30}…")
    assert change(f"{begin}x", f"{begin}xx").startswith("a: …")


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, "k0: added 0"), (3, "k0: added 0; k1: added 1; k2: added 2")],
)
def test_all_changes_are_shown_if_they_are_few(count, expected):
    """In the order of their keys."""
    after = {f"k{number}": number for number in range(count)}
    assert render_changes(compare_settings({}, after)) == expected
    more = render_changes(compare_settings({}, {**after, "z": 1}), most=count)
    assert more == f"{expected}; and 1 more"


PIPELINE = """\
version: 1
agents: {trades: {harness: codex}}
personas: {planner: {adapter: claude-code}}
pipelines:
  review:
    copy: [.env]
    prepare: [npm, ci]
    steps:
      - id: plan
        persona: planner
        prompt: Write a plan.
        convergence: true
        outputs: {items: items.json}
        handover:
          compaction: {trigger: "token_limit_80%", persona: planner}
          contract:
            - {type: test_suite, command: [just, test]}
            - {type: non_empty_file, source: items.json}
      - id: lint
        depends_on: [plan]
        run: [just, lint]
  other:
    steps: [{id: plan, persona: planner, prompt: Write.}]
"""


def pipeline(old="", new=""):
    text = PIPELINE.replace(old, new) if old else PIPELINE
    assert (text != PIPELINE) == bool(old)
    return select_pipeline(manifest.parse(text), "review")


def test_the_controlled_settings_of_a_pipeline():
    settings = pipeline()
    assert settings.pop("personas.planner")["adapter"] == "claude-code"
    assert settings == {
        "pipelines.review.copy": [".env"],
        "pipelines.review.prepare": ["npm", "ci"],
        "pipelines.review.steps.plan.persona": "planner",
        "pipelines.review.steps.plan.outputs": {"items": "items.json"},
        "pipelines.review.steps.plan.handover": {
            "contract": [
                {"type": "test_suite", "command": ["just", "test"]},
                {"type": "non_empty_file", "source": "items.json"},
            ]
        },
        "pipelines.review.steps.lint.depends_on": ["plan"],
        "pipelines.review.steps.lint.run": ["just", "lint"],
    }


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("[just, lint]", "[sh, -c, evil]", "pipelines.review.steps.lint.run"),
        ("[npm, ci]", "[sh, -c, evil]", "pipelines.review.prepare"),
        ("[.env]", "[.env, .token]", "pipelines.review.copy"),
        ("[just, test]", "[sh, -c, evil]", "pipelines.review.steps.plan.handover"),
        ("convergence: true", "until: [evil]", "pipelines.review.steps.plan.until"),
        ("convergence: true", "cycles: 0", "pipelines.review.steps.plan.cycles"),
        ("convergence: true", "budget: {usd: 900}", "pipelines.review.steps.plan.budget"),
        ("    copy: [.env]\n", "", "pipelines.review.copy"),
        ("    copy:", "    budget: {usd: 900}\n    copy:", "pipelines.review.budget"),
        ("claude-code}", "codex}", "personas.planner"),
        ("version: 1", "version: 1\nnotify: ['json://evil.example']", "notify"),
        ("version: 1", "version: 1\nredact: {allow: ['.*']}", "redact.allow"),
    ],
)
def test_what_a_pipeline_starts_permits_or_pays_is_controlled(old, new, key):
    [change] = compare_settings(pipeline(), pipeline(old, new))
    assert change.key == key


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Write a plan.", "Write another plan."),
        ("Write a plan.", "{file: plan.md}"),
        ("convergence: true", "convergence: false"),
        ("token_limit_80%", "token_limit_70%"),
        ("prompt: Write.", "prompt: Write, budget: {usd: 1}"),
        ("harness: codex", "harness: codex, budget: {usd: 1}"),
        ("harness: codex", "harness: command"),
        ("personas: {", "personas: {unused: {adapter: codex}, "),
        ("version: 1", "version: 1\nfleet: {address: 'evil.example:7233'}"),
    ],
)
def test_the_task_of_a_step_and_other_pipelines_are_free(old, new):
    assert compare_settings(pipeline(), pipeline(old, new)) == []


def test_the_cli_of_the_agents_is_controlled_if_a_step_uses_it():
    """A persona without an adapter uses the CLI that all agents use."""
    text = PIPELINE.replace("adapter: claude-code", "")
    before = select_pipeline(manifest.parse(text), "review")
    after = select_pipeline(
        manifest.parse(text.replace("harness: codex", "harness: command")), "review"
    )
    [change] = compare_settings(before, after)
    assert change.render() == 'pipelines.review.harness: ["codex"] → ["command"]'


def test_every_key_of_a_step_is_controlled_or_free():
    keys = set(PipelineStep.__struct_fields__)
    assert keys >= UNCONTROLLED_STEP_KEYS
    assert {"run", "until", "budget", "persona", "handover"}.isdisjoint(UNCONTROLLED_STEP_KEYS)


def test_a_path_of_a_pipeline_that_leads_outside_is_controlled():
    outside = {"pipelines.review.steps.plan.prompt.file": "/etc/passwd"}
    after = select_pipeline(manifest.parse(PIPELINE), "review", outside)
    [change] = compare_settings(pipeline(), after)
    assert change.render() == 'pipelines.review.steps.plan.prompt.file: added "/etc/passwd"'


def test_what_workers_take_over_from_agents_is_controlled():
    text = """\
version: 1
agents:
  a: {harness: claude-code, env: {A: b}}
  b: {harness: codex, env: {A: c}}
personas:
  writer: {adapter: claude-code}
pipelines:
  review:
    steps: [{id: write, prompt: Write, persona: writer}]
"""
    parsed = manifest.parse(text)
    taken = select_inherited(parsed, parsed.pipelines["review"])
    assert taken == {"agents with claude-code.env": {"A": "b"}}
    assert taken.items() <= select_pipeline(parsed, "review").items()
    common = manifest.parse(
        text.replace("persona: writer", "cycles: 1").replace("codex", "claude-code")
    )
    assert select_inherited(common, common.pipelines["review"]) == {}, "the agents differ"
