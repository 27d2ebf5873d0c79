"""Generate the page on rekindle.yaml: every key with its type, default, meaning and an example.

Keys, types, defaults and meanings come from the JSON Schema, which is derived from the types that
read the manifest. The examples are here; a key without one, or an example that Rekindle refuses, is
an error.
"""

import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

from rekindle.documents import manifest
from rekindle.formats.validation import DURATION_PATTERN
from rekindle.policy.pipelines.pipeline_checks import require_valid_pipelines
from rekindle.policy.schedules.schedule_checks import require_valid_schedules
from rekindle.policy.settings.manifest_schema import describe_manifest
from rekindle.policy.settings.runtime_settings import resolve_settings
from rekindle.system.clock import find_zone

INTRODUCTION = """\
# The manifest

`rekindle.yaml` lists a project's agents and how to run them. `rekindle init` writes a short one,
and every key that it leaves out has a default. An empty key counts as missing, and an unknown key
is an error.

```yaml
version: 1
agents:
  trades:
    harness: claude-code
    prompt: PROMPT.md
    until: just test
    budget: {usd: 20}
```

`rekindle config explain KEY` shows a key's value in your project and the line that set it.

## Completion and checks in an editor

The manifest has a JSON Schema: [rekindle.schema.json](rekindle.schema.json). `rekindle init` saves
it as `.rekindle/rekindle.schema.json` and refers to it in the first line of the manifest:

```yaml
# yaml-language-server: $schema=.rekindle/rekindle.schema.json
version: 1
```

Editors with the YAML language server (VS Code with the YAML extension, Neovim, Helix and others)
use this line to complete keys, show their meaning and flag errors, even offline. If your manifest
does not have the line yet, add it. After you update Rekindle, run `rekindle init` to save the new
schema, or `rekindle config schema` to print it.

## Types

| type | examples |
|---|---|
| string | `PROMPT.md`, `"06:00"`; quote a string that contains a colon |
| duration | `10s`, `15m`, `2h`, `7d`, or `none` for no limit |
| boolean | `true`, `false`, `on`, `off` |
| command | `just test`, or a list of words: `[just, test]` |
| list of strings | `[Read, Grep]` |
| mapping | keys and values, indented or in braces: `{usd: 20, hours: 8}` |

Commands do not run in a shell. To use pipes or variables, call a shell explicitly: `[sh, -c, "make
&& make test"]`.
"""


class Part(NamedTuple):
    """A section of the page: the keys below one path, and an example that sets all of them."""

    path: str
    title: str
    words: str
    example: str


PARTS = [
    Part(
        "version",
        "version",
        "Required. This page describes version 1, the only one so far.",
        "version: 1\n",
    ),
    Part(
        "agents.NAME",
        "agents",
        "Each key below `agents` is an agent's name, which has up to 63 characters from a-z, 0-9, "
        "`-` and `_`. Only `harness` is required.",
        """\
agents:
  trades:
    harness: claude-code
    prompt: PROMPT.md
    dir: services/trades
    rules: RULES.md
    relay: memories/consensus.md
    mode: loop
    persona: builder
    cycles: 25
    until: [just, test]
    until_claimed: true
    review: reviewer
    budget: {usd: 20, tokens: 5000000, hours: 8}
    convergence: off
    handover:
      compaction: {trigger: "token_limit_75%", persona: summarizer}
    env: {GH_TOKEN: $GH_TOKEN, LOG_LEVEL: debug}
    keep: ["postgres -D *", "node */vite*"]
    may_control: false
    priority: high
    every:
      {cron: "0 6 * * 1-5", zone: Europe/Zurich, jitter: 10m, missed: run, overlap: skip}
  words:
    harness: command
    command: [python3, agent.py]
    workspace: clone
    copy: [.env]
    prepare: npm ci
    sandbox:
      {write: [cache], read: [~/.gitconfig], network: [api.example.org], memory: 8G, processes: 512,
       cpu: 1.5, container: true}
    every: {interval: 6h}
  docs:
    harness: [claude-code, {use: codex, persona: builder, command: codex}]
    accounts: [work, own]
""",
    ),
    Part(
        "personas.NAME",
        "personas",
        "A persona is a set of permissions, a model and a system prompt. `persona:` selects the "
        "one that an agent uses. Other personas can write its summaries (`summarizer`) and review "
        "its work (`review:`).",
        """\
personas:
  builder:
    model: opus
    system_prompt_file: personas/builder.md
    permissions:
      allowed_tools: [Read, Grep, Glob, Edit, Write, "Bash(just test)"]
      ask: ["Bash(git push*)"]
      deny: ["Bash(rm:*)"]
  reviewer:
    adapter: codex
    temperature: 0.2
    permissions: {allowed_tools: [Read, Grep]}
    sandbox: {write: [], read: [reports], network: [], memory: 1.5G, processes: 64, cpu: 2,
              container: false}
  summarizer:
    adapter: command
    command: [./summarize, --short]
""",
    ),
    Part(
        "accounts.NAME",
        "accounts",
        "An account is a configuration folder in which you have logged in a CLI. Agents name their "
        "accounts in order, but switch only with `runtime: {accounts: {switch: true}}`. See "
        "[Continue on another CLI or account](../guides/accounts.md).",
        """\
accounts:
  work:
    harness: claude-code
    config_dir: ~/claude-work
    quota:
      reserve: 30%
      per_day: {usd: 20, tokens: 20000000}
      per_month: {usd: 300, tokens: 500000000}
  own: {harness: claude-code, config_dir: ~/claude-own}
""",
    ),
    Part(
        "prices.NAME",
        "prices",
        "Prices let Rekindle enforce `budget.usd` for a CLI that reports tokens but no cost. Each "
        "key below `prices` is a model name, a prefix of one, or `default`. Rekindle knows the "
        "[list prices](prices.md) of most models. An entry here overrides them.",
        """\
prices:
  gpt-5: {input: 1.25, output: 10, cached: 0.125, cache_write: 1.25}
  default: {input: 3, output: 15}
""",
    ),
    Part(
        "quota",
        "quota",
        "These keys control how the agents share a quota with you and with each other. See [the "
        "guide](../guides/quota.md).",
        """\
quota:
  reserve: 20%
  per_day: {usd: 20, tokens: 20000000}
  per_month: {usd: 300, tokens: 500000000}
""",
    ),
    Part(
        "notify",
        "notify",
        "Rekindle notifies you when an agent needs you. Each address is an "
        "[Apprise](https://github.com/caronc/apprise) URL. To install Apprise, install "
        "`rekindle-agents[notify]`. If an address contains a password, keep it in an environment "
        "variable.",
        """\
notify: ["ntfys://$TOPIC", $ALERTS]
""",
    ),
    Part(
        "redact",
        "redact",
        "Before it writes a file, Rekindle removes any text that looks like a secret.",
        """\
redact:
  allow: [EXAMPLEKEY1234567890]
""",
    ),
    Part(
        "runtime.relay",
        "runtime.relay",
        "These settings control the relay between cycles and the handoff between sessions.",
        """\
runtime:
  relay:
    token_threshold_percent: 75
    strategy: summarize_to_checkpoint
    max_relay_tokens: 3000
    summarizer: headless
    summarizer_max_input_tokens: 100000
    summarizer_max_usd: 1.5
""",
    ),
    Part(
        "runtime.restart",
        "runtime.restart",
        "These settings control restarts after a crash.",
        """\
runtime:
  restart:
    max_crashes: 5
    window: 15m
    cooldown: 10s
    max_cooldown: 5m
    healthy_after: 10m
""",
    ),
    Part(
        "runtime.watch",
        "runtime.watch",
        "These settings control the watchdog, which detects hung sessions.",
        """\
runtime:
  watch:
    every: 15s
    silence: 10m
    tool_timeout: 2h
    idle_call: 1h
""",
    ),
    Part(
        "runtime.accounts",
        "runtime.accounts",
        "Whether agents switch between accounts of the same CLI. Check the terms of your plans "
        "first.",
        """\
runtime:
  accounts: {switch: true}
""",
    ),
    Part(
        "runtime.limits",
        "runtime.limits",
        "These settings control what happens when your account reaches a usage limit.",
        """\
runtime:
  limits: {wait: true}
""",
    ),
    Part(
        "runtime.stall",
        "runtime.stall",
        "These settings control how Rekindle detects agents that repeat themselves. See "
        "[Stalls](../explanation/stalls.md).",
        """\
runtime:
  stall: {identical: false, tell: true, pause: true, ask: false}
""",
    ),
    Part(
        "runtime.questions",
        "runtime.questions",
        "These settings control the [questions](questions.md) that agents ask you.",
        """\
runtime:
  questions: {deadline: 2d, wait: 5m}
""",
    ),
    Part(
        "runtime.progress",
        "runtime.progress",
        "These limits stop work that makes no progress. `rekindle run --budget none` disables "
        "them for one run.",
        """\
runtime:
  progress: {paced_after: 5, max_launches: 20, max_hours: 6, max_usd: 10}
""",
    ),
    Part(
        "runtime.loops",
        "runtime.loops",
        "Open loops are items that an agent tracks until they are resolved.",
        """\
runtime:
  loops: {stale_after_days: 14, keep_resolved_days: 7}
""",
    ),
    Part(
        "runtime.brief",
        "runtime.brief",
        "These settings control the [daily brief](../guides/briefs.md).",
        """\
runtime:
  brief:
    at: "07:30"
    zone: Europe/Berlin
    on_session_end: false
    max_tokens: 600
    max_usd: 2
""",
    ),
    Part(
        "runtime.archive",
        "runtime.archive",
        "These settings control the [transcript](../explanation/transcripts.md) archive.",
        """\
runtime:
  archive: {transcripts: true}
""",
    ),
    Part(
        "runtime.snapshots",
        "runtime.snapshots",
        "Snapshots of the work tree let you undo an agent's work.",
        """\
runtime:
  snapshots: {take: true}
""",
    ),
    Part(
        "runtime.metrics",
        "runtime.metrics",
        "With these keys, `rekindle daemon` exports [metrics](../guides/metrics.md) of the agents.",
        """\
runtime:
  metrics: {prometheus: 127.0.0.1:9464, otlp: http://127.0.0.1:4318}
""",
    ),
    Part(
        "fleet",
        "fleet",
        "This section connects to a [fleet](../guides/fleet.md) engine. Without it, agents run on "
        "this host and need no engine.",
        """\
fleet:
  address: engine.example.com:7233
  namespace: trading
  pool: gpu
  team: shop
  heartbeat_timeout: 75s
  fold_seconds: 10m
  pushes_per_minute: 6
  tls: {ca: certs/ca.pem, cert: certs/host.pem, key: certs/host.key, server_name: engine}
  api_key: $ENGINE_KEY
  codec: {keys: [$NEW_KEY, $OLD_KEY], strict: true}
  metrics: {prometheus: 127.0.0.1:9464}
---
fleet:
  tls: true
  codec: {key_files: [keys/new, keys/old]}
  metrics: {otlp: http://127.0.0.1:4318}
""",
    ),
    Part(
        "pipelines.NAME",
        "pipelines",
        "A [pipeline](../guides/pipelines.md) breaks a task into steps. Each key below "
        "`pipelines` is a pipeline's name. A step starts as soon as the steps in `depends_on` are "
        "done, and continues from their results. It has either a `prompt` for an agent or a "
        "command to `run`. With a matrix, a step has one worker for each item in a list. Rekindle "
        "also accepts the keys `dependencies`, `exec`, `output_artifacts`, `handover.contracts`, "
        "`retry.max_attempts` and `strategy: {type: matrix, items_source: STEP/FILE}` from Wave, "
        "another pipeline runner.",
        """\
personas:
  planner: {adapter: claude-code, permissions: {allowed_tools: [Read, Grep, Glob, Write]}}
  builder: {adapter: codex}
  reviewer: {adapter: claude-code, permissions: {allowed_tools: [Read, Grep, Glob, Write]}}
pipelines:
  migrate:
    base: main
    input: required
    budget: {usd: 30, tokens: 50000000, hours: 6}
    copy: [.env]
    prepare: npm ci
    steps:
      - id: plan
        persona: planner
        prompt: |
          Break down: {{ input }}. Write items.json, a list of {"id": …, "task": …}.
        outputs: {items: items.json}
        handover:
          contract:
            - {type: json_schema, source: items.json, schema_path: contracts/items.schema.json}
            - {type: non_empty_file, source: items.json}
      - id: implement
        depends_on: [plan]
        persona: builder
        prompt: "Do this and nothing else: {{ item.task }}"
        cycles: 3
        until: just lint
        convergence: off
        budget: {usd: 4, tokens: 5000000, hours: 2}
        handover:
          compaction: {trigger: "token_limit_80%", persona: summarizer}
          contract: {type: test_suite, command: just test}
        retry: {attempts: 2}
        strategy:
          matrix: {from: plan.items, max_concurrency: 4, key: id, fail_fast: false, needs: all}
        merge: {conflicts: agent, persona: builder}
      - id: lint
        depends_on: [plan]
        run: just lint
        optional: true
      - id: judge
        depends_on: [implement, lint]
        persona: reviewer
        prompt: {file: prompts/judge.md}
        outputs: {report: review.md}
  audit:
    every: {cron: "@weekly", zone: Europe/Zurich, jitter: 10m, missed: skip, overlap: queue}
    steps: [{id: report, persona: reviewer, prompt: Report problems in REPORT.md.}]
  refresh:
    every: {interval: 12h}
    steps: [{id: data, run: just refresh}]
""",
    ),
]


class Key(NamedTuple):
    path: str
    schema: dict[str, Any]
    required: bool


def list_keys(schema: dict[str, Any], path: str = "") -> Iterator[Key]:
    """Yield every key of a schema that has a meaning, with NAME for names that a user chooses."""
    for option in schema.get("anyOf", [schema]):
        for name, below in option.get("properties", {}).items():
            if "description" in below:
                yield Key(f"{path}{name}", below, name in option.get("required", ()))
            yield from list_keys(below, f"{path}{name}.")
        if isinstance(option.get("additionalProperties"), dict):
            yield from list_keys(option["additionalProperties"], f"{path}NAME.")
        if "items" in option:
            yield from list_keys(option["items"], path)


def name_type(schema: dict[str, Any]) -> str:
    """Return the type of a value in the words of the page."""
    if "anyOf" in schema:
        options = [option for option in schema["anyOf"] if option != {"type": "null"}]
        names = [name_type(option) for option in options]
        return "command" if names == ["list of strings", "string"] else " or ".join(names)
    if "enum" in schema:
        switches = True in schema["enum"]
        return "boolean" if switches else " or ".join(f"`{one}`" for one in schema["enum"])
    if schema.get("pattern") == DURATION_PATTERN:
        return "duration"
    if schema["type"] == "array":
        return "list of strings" if schema["items"].get("type") == "string" else "list of mappings"
    if schema["type"] == "object":
        return "mapping"
    kind: str = schema["type"]
    return kind + _name_bounds(schema)


def _name_bounds(schema: dict[str, Any]) -> str:
    if "minimum" in schema and "maximum" in schema:
        least, most = schema["minimum"], schema["maximum"]
        return f" {least}" if least == most else f" from {least} to {most}"
    if "minimum" in schema:
        return f", at least {schema['minimum']}"
    return ", above 0" if schema.get("exclusiveMinimum") == 0 else ""


def _name_default(key: Key) -> str:
    if key.required:
        return "required"
    if "default" not in key.schema:
        return "-"
    value = key.schema["default"]
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _list_set_keys(data: Any, path: str = "") -> Iterator[str]:
    """Yield the path of every key that an example sets, without the numbers of list items."""
    if isinstance(data, list):
        for item in data:
            yield from _list_set_keys(item, path)
    elif isinstance(data, dict):
        for name, value in data.items():
            is_chosen = path in {"agents.", "personas.", "accounts.", "prices.", "pipelines."}
            below = f"{path}{'NAME' if is_chosen else name}"
            yield below
            yield from _list_set_keys(value, f"{below}.")


def _check(part: Part, keys: list[Key]) -> None:
    """Raise an error if an example is refused or does not set one of the part's keys."""
    set_keys = set[str]()
    for text in part.example.split("---\n"):
        whole = text if text.startswith("version:") else f"version: 1\n{text}"
        parsed, marked = manifest.read_manifest(whole)
        resolve_settings(marked)
        require_valid_pipelines(parsed, marked)
        require_valid_schedules(parsed, marked, find_zone)
        # The reader moves a list in `harness:` to a field of its own.
        set_keys.update(
            key.replace(".harnesses", ".harness") for key in _list_set_keys(marked.data)
        )
    if missing := [key.path for key in keys if key.path not in set_keys]:
        raise ValueError(f"no example in tools/manifest_page.py sets {', '.join(missing)}")


def page() -> str:
    # A contract may be a mapping or a list of them, which have the same keys.
    left = list({key.path: key for key in list_keys(describe_manifest())}.values())
    lines = [INTRODUCTION]
    for part in PARTS:
        keys = [key for key in left if f"{key.path}.".startswith(f"{part.path}.")]
        left = [key for key in left if key not in keys]
        _check(part, keys)
        lines += [
            f"## {part.title}\n",
            f"{textwrap.fill(part.words, 100, break_on_hyphens=False)}\n",
        ]
        lines += [f"```yaml\n{text}```\n" for text in part.example.split("---\n")]
        lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
        for key in keys:
            name = key.path.removeprefix(f"{part.path}.")
            unit = key.schema.get("x-unit", "count")
            kind = name_type(key.schema) + (f" ({unit})" if unit != "count" else "")
            cells = (f"`{name}`", kind, _name_default(key), key.schema["description"])
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    if left:
        raise ValueError(f"no part of the page has {', '.join(key.path for key in left)}")
    return "\n".join(lines)
