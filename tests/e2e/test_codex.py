"""The real Codex resumes after a kill in the middle of a tool call; and works with hooks alone."""

import json
import shlex
import shutil
import signal
import sys

import pytest

from e2e.sandbox import BANNER, RELAY, SERVER, TASK, WORK, Rekindle, killed_in_a_tool_call
from loopback.codex_cli import CONFIG, MODEL
from loopback.openai import COMPACTION
from loopback.script import Forever, Hang, Text, ToolCall, Usage
from rekindle.documents import primer
from rekindle.harnesses.codex import codex_hooks
from rekindle.wiring.access.trust_checks import accept_folder

pytestmark = pytest.mark.timeout(300)

MANIFEST = """\
version: 1
agents:
  trades:
    harness: codex
    prompt: PROMPT.md
    cycles: 1
    until: ["true"]
runtime: {relay: {summarizer: mechanical}}
"""
SETTINGS = """\
sandbox_mode = "danger-full-access"
{config}
[features]
plugin_discovery_prefetch = false

[projects."{project}"]
trust_level = "trusted"

[sandbox_workspace_write]
exclude_slash_tmp = true
exclude_tmpdir_env_var = true
"""
HEADLESS = ("exec", "--json", "--skip-git-repo-check")
CALLS = 50


def shell(command: str, usage: Usage = Usage()) -> ToolCall:  # noqa: B008 - it is frozen
    return ToolCall("exec_command", {"cmd": command, "yield_time_ms": 30_000}, usage)


def long_call() -> ToolCall:
    """Return ten minutes of work that survive a kill of Codex."""
    return shell(f"{shlex.join(['setsid', sys.executable, '-c', WORK])} & wait")


def trusting(rekindle: Rekindle) -> Rekindle:
    """Have the person approve all existing hooks."""
    codex, state = rekindle.cli, {}
    for folder in (codex.settings, codex.project / ".codex"):
        path = folder / "hooks.json"
        if path.exists():
            state |= codex_hooks.make_trust_state(json.loads(path.read_text())["hooks"], str(path))
    config = CONFIG.format(model=MODEL, url=codex.model.url)
    text = SETTINGS.format(config=config, project=codex.project)
    for key, value in state.items():
        hashed = value["trusted_hash"]
        text += f'\n[hooks.state."{key}"]\ntrusted_hash = "{hashed}"\n'
    codex.configure(text)
    return rekindle


@pytest.fixture
def unbriefed(codex, place):
    """Create a project with an agent and its task, without a relay."""
    (codex.project / "rekindle.yaml").write_text(MANIFEST)
    (codex.project / "PROMPT.md").write_text(TASK)
    # The test's own hook reports the start of a tool call and the process of the CLI.
    told = 'echo "$PPID" > hooked.tmp; mv hooked.tmp hooked'
    entry = [{"hooks": [{"type": "command", "command": told, "timeout": 5}]}]
    (codex.settings / "hooks.json").write_text(json.dumps({"hooks": {"PreToolUse": entry}}))
    return trusting(Rekindle(codex, place, [str(codex.program), *HEADLESS]))


@pytest.fixture
def rekindle(unbriefed):
    """Create the same project, with a relay."""
    (unbriefed.project / "relay.md").write_text(RELAY)
    unbriefed("relay", "set", "relay.md")
    return unbriefed


@pytest.fixture
def hooked(rekindle):
    """Create the same project, with our hooks in the project's file, and trusted."""
    rekindle("hooks", "install")
    rekindle("loops", "add", "rate-limit", "How many an hour?")
    return trusting(rekindle)


def session_of(started) -> str:
    return json.loads(started.out.splitlines()[0])["thread_id"]


# Supervised


def with_permissions(rekindle, permissions: dict) -> None:
    persona = json.dumps({"default": {"permissions": permissions}})
    (rekindle.project / "rekindle.yaml").write_text(f"{MANIFEST}personas: {persona}\n")


def test_a_supervised_session_resumes_after_kill_9(rekindle, openai_model):
    """The orphaned tool is stopped before anything else starts, and the same session resumes."""
    resumed = Hang(Text("all done"))
    openai_model.play(long_call(), resumed)
    running = rekindle.start("run")
    killed_in_a_tool_call(rekindle)
    request = openai_model.log.wait_for(lambda request: request.step is resumed, timeout=120)
    assert rekindle.tools() == []  # it would have run for ten minutes
    assert len(rekindle.agents()) == 1
    resumed.release.set()
    assert running.wait() == 0, running.err
    first = openai_model.log.main[0]
    assert request.prompts[0] == first.prompts[0]  # the same conversation
    assert "process was interrupted" in request.prompts[-1]
    assert BANNER not in request.text
    started, ended = rekindle.events("launch.started"), rekindle.events("launch.ended")
    assert [one.get("resumes", False) for one in started] == [False, True]
    assert started[1]["session"] == ended[0]["session"] == ended[1]["session"]
    assert [one["exit"] for one in ended] == ["crash", "clean"]
    assert ended[0]["swept"] >= 1
    assert ended[1]["window"] > ended[1]["tokens"] > 0
    assert [one["source"] for one in rekindle.events("session.started")] == ["startup", "resume"]


def test_processes_in_the_sandbox_of_codex_are_ended_too(rekindle, openai_model):
    """A tool with child processes is stopped, and the session resumes with its limits."""
    with_permissions(rekindle, {"allowed_tools": ["Bash"]})
    resumed = Hang(shell("touch ~/outside"))
    openai_model.play(long_call(), resumed, Text("all done"))
    running = rekindle.start("run")
    killed_in_a_tool_call(rekindle)
    openai_model.log.wait_for(lambda request: request.step is resumed, timeout=120)
    assert rekindle.tools() == []
    resumed.release.set()
    assert running.wait() == 0, running.err
    assert not (rekindle.cli.home / "outside").exists()
    assert "Read-only file system" in openai_model.log.main[-1].results[-1].text


def test_a_wrapper_that_is_killed_leaves_nothing_behind(rekindle, openai_model, codex_program):
    """The wrapper of npm starts the real Codex, which ends too if only the wrapper is killed."""
    modules = next(one for one in codex_program.parents if one.name == "node_modules")
    link = rekindle.cli.bin / "codex"
    link.unlink()
    link.symlink_to(modules / "@openai/codex/bin/codex.js")
    resumed = Hang(Text("all done"))
    openai_model.play(long_call(), resumed)
    running = rekindle.start("run")
    native = rekindle.wait_until_hooked()
    rekindle.place.signal(rekindle.parent_of(native), signal.SIGKILL)
    openai_model.log.wait_for(lambda request: request.step is resumed, timeout=120)
    assert rekindle.tools() == []
    assert len(rekindle.agents()) == 1
    resumed.release.set()
    assert running.wait() == 0, running.err
    ended = rekindle.events("launch.ended")
    assert [one["exit"] for one in ended] == ["crash", "clean"]
    assert len({one["session"] for one in ended}) == 1


def test_a_supervisor_that_is_killed_takes_its_agent_along(rekindle, openai_model):
    """Nothing keeps running unsupervised; the next run resumes the same session."""
    resumed = Hang(Text("all done"))
    openai_model.play(long_call(), resumed)
    running = rekindle.start("run")
    rekindle.wait_until_hooked()
    assert rekindle.agents()
    running.signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    rekindle.place.wait_for(lambda: not rekindle.agents(), timeout=120)
    again = rekindle.start("run")
    openai_model.log.wait_for(lambda request: request.step is resumed, timeout=120)
    assert rekindle.tools() == []
    resumed.release.set()
    assert again.wait() == 0, again.err
    ended = rekindle.events("launch.ended")
    assert [one["exit"] for one in ended] == ["lost", "clean"]
    assert len({one["session"] for one in ended}) == 1


def test_a_session_without_its_rollout_is_replaced_by_a_fresh_one(rekindle, openai_model):
    """Resuming fails, and a fresh session starts at once with the recovery notice."""
    rekindle("loops", "add", "rate-limit", "How many an hour?")
    openai_model.play(long_call(), Text("all done"))
    running = rekindle.start("run")
    rekindle.wait_until_hooked()
    (rollout,) = (rekindle.cli.settings / "sessions").glob("*/*/*/rollout-*.jsonl")
    rollout.unlink()
    killed_in_a_tool_call(rekindle)
    assert running.wait() == 0, running.err
    exits = [one["exit"] for one in rekindle.events("launch.ended")]
    assert exits == ["crash", "resume-failed", "clean"]
    (prompt,) = openai_model.log.main[-1].prompts
    assert prompt.startswith(BANNER)
    assert "  Task: Write the parser's tests\n  Open loops: 1\n" in prompt
    assert RELAY.strip() in prompt
    assert TASK.strip() in prompt


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_from_the_operator_is_not_a_crash(rekindle, openai_model, number):
    """The signal stops the agent and its tool; the next run resumes the same session."""
    openai_model.play(long_call(), Text("all done"))
    running = rekindle.start("run")
    rekindle.wait_until_hooked()
    running.signal(number)
    assert running.wait() == 130, running.err
    assert rekindle.agents() == rekindle.tools() == []
    rekindle("run")
    ended = rekindle.events("launch.ended")
    assert [one["exit"] for one in ended] == ["interrupted", "clean"]
    assert len({one["session"] for one in ended}) == 1


def test_a_long_primer_reaches_the_model_once_and_whole(rekindle, openai_model):
    """The CLI accepts thirty thousand characters of prompt unchanged."""
    task = "# Task\n" + "".join(f"{number}. {'étape ' * 10}\n" for number in range(470))
    (rekindle.project / "PROMPT.md").write_text(task)
    openai_model.play(Text("all done"))
    rekindle("run")
    (request,) = openai_model.log.main
    (prompt,) = request.prompts
    assert len(prompt) > 30_000
    introduced = f"{primer.INTRODUCTION}{primer.TASK_OF_RELAY}\n\n{RELAY.strip()}"
    assert prompt.startswith(f"{introduced}\n\n{task.strip()}\n\nWhen the work of this cycle")
    assert request.text.count(RELAY.strip()) == 1


def test_only_trusted_hooks_run_beside_ours(rekindle, openai_model):
    """Our hooks need no approval, and do not let any other hook in."""
    path = rekindle.cli.settings / "hooks.json"
    hooks = json.loads(path.read_text())["hooks"]
    unseen = {"type": "command", "command": "touch unseen", "timeout": 5}
    hooks["UserPromptSubmit"] = [{"hooks": [unseen]}]
    path.write_text(json.dumps({"hooks": hooks}))
    openai_model.play(shell("true"), Text("all done"))
    rekindle("run")
    assert (rekindle.project / "hooked").exists()
    assert not (rekindle.project / "unseen").exists()
    assert len(rekindle.events("heartbeat")) == len(rekindle.events("prompt.submitted")) == 1


PATCH = "*** Begin Patch\n*** Add File: patched\n+words\n*** End Patch\n"


def test_a_read_only_persona_neither_writes_nor_runs_anything(rekindle, openai_model):
    """No shell is offered, and a call of one anyway is not run; neither is a patch."""
    with_permissions(rekindle, {"deny": ["Write(*)", "Bash(*)"]})
    patch = ToolCall("apply_patch", {"input": PATCH})
    openai_model.play(shell("touch made"), patch, Text("all done"))
    rekindle("run")
    first, *_, last = openai_model.log.main
    offered = {tool.get("name") for tool in first.body["tools"]}
    assert not offered & {"exec_command", "write_stdin", "shell", "shell_command"}
    shell_result, patch_result = (part.text for part in last.results)
    assert shell_result.startswith("unsupported call")
    assert "read-only" in patch_result
    assert not (rekindle.project / "made").exists()
    assert not (rekindle.project / "patched").exists()


def test_a_tool_that_is_allowed_and_denied_is_denied(rekindle, openai_model):
    """A shell that is both allowed and denied is not offered, so it cannot write either."""
    with_permissions(rekindle, {"allowed_tools": ["Read", "Bash"], "deny": ["Bash"]})
    openai_model.play(ToolCall("apply_patch", {"input": PATCH}), Text("all done"))
    rekindle("run")
    assert "read-only" in openai_model.log.main[-1].results[0].text
    assert not (rekindle.project / "patched").exists()


@pytest.mark.parametrize("feature", ["", "hooks = false", "codex_hooks = false"])
def test_a_persona_with_its_own_tools_has_no_server_tools(rekindle, openai_model, feature):
    """The person's approvals, global or for this project, do not matter."""
    server = (
        f'command = "{sys.executable}"\nargs = ["-I", "{SERVER}"]\n'
        'default_tools_approval_mode = "approve"\n'
    )
    config = rekindle.cli.settings / "config.toml"
    text = config.read_text().replace("[features]", f"[features]\n{feature}")
    config.write_text(f"{text}\n[mcp_servers.files]\n{server}")
    (rekindle.project / ".codex").mkdir()
    (rekindle.project / ".codex/config.toml").write_text(f"[mcp_servers.here]\n{server}")
    made = rekindle.project / "made"
    calls = [ToolCall(f"mcp__{name}__put", {"path": str(made)}) for name in ("files", "here")]
    openai_model.play(*calls, Text("all done"))
    with_permissions(rekindle, {"allowed_tools": ["Read"]})
    rekindle("run")
    results = [part.text for part in openai_model.log.main[-1].results]
    assert len(results) == 2
    assert all("blocked by PreToolUse hook" in text for text in results), results
    assert not made.exists()
    assert rekindle.events("prompt.submitted")  # our own hooks run beside it
    # Without a list in the persona, the person's servers are available.
    with_permissions(rekindle, {"deny": ["WebSearch"]})
    openai_model.play(*calls, Text("all done"))
    rekindle("run")
    assert made.exists(), openai_model.log.main[-1].results


def test_a_shell_with_write_access_writes_in_its_folder_and_its_memory(rekindle, openai_model):
    """Its sandbox limits it to these; it sets a relay from inside a subfolder."""
    with_permissions(rekindle, {"allowed_tools": ["Bash"]})
    manifest = rekindle.project / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace("    prompt:", "    dir: work\n    prompt:"))
    (rekindle.project / "work").mkdir()
    relay = shlex.join([sys.executable, "-I", "-m", "rekindle", "relay", "set", "../relay.md"])
    openai_model.play(
        *(shell("touch made; touch ../outside; touch ~/outside"), shell(relay)),
        *(ToolCall("apply_patch", {"input": PATCH}), Text("all done")),
    )
    rekindle("run")
    assert (rekindle.project / "work/made").exists()
    assert (rekindle.project / "work/patched").exists(), openai_model.log.main[-1].results[-1]
    assert not (rekindle.project / "outside").exists()
    assert not (rekindle.cli.home / "outside").exists()
    assert len(rekindle.events("relay.committed")) == 2, openai_model.log.main[-1].results[-1]


def test_a_permission_that_cannot_be_enforced_is_refused(rekindle, openai_model):
    """The error names it before anything starts."""
    with_permissions(rekindle, {"deny": ["Bash(rm *)"]})
    running = rekindle.start("run")
    assert running.wait() == 3
    assert "cannot enforce the permission 'Bash(rm *)'" in running.err
    assert rekindle.events("launch.started") == []
    assert len(openai_model.log) == 0


# Hooks alone, and a person who starts Codex by hand


def test_the_next_session_after_kill_9_is_told(hooked, openai_model):
    """It gets the notice once; later sessions, and one after a clean exit, do not."""
    openai_model.play(long_call(), Text("begun again"), Text("and again"))
    first = hooked.by_hand("count the stars")
    killed_in_a_tool_call(hooked)
    assert first.wait() == -9
    assert hooked.by_hand("hello").wait() == 0
    text = openai_model.log.main[1].text
    assert text.count(BANNER) == 1
    assert "  Task: Write the parser's tests\n  Open loops: 1\n" in text
    assert text.count(RELAY.strip()) == 1
    assert hooked.by_hand("hello again").wait() == 0
    assert BANNER not in openai_model.log.main[2].text
    assert openai_model.log.main[2].text.count(RELAY.strip()) == 1
    assert [one["session"] for one in hooked.events("session.lost")] == [
        hooked.events("session.started")[0]["session"]
    ]


def test_a_resumed_session_is_not_told_that_it_was_interrupted(hooked, openai_model):
    """A resume, fork or compaction shows no banner, even with an unreported killed session."""
    openai_model.play(
        *(Text("all done"), long_call(), Text("resumed"), Text("forked")),
        *(shell("true", Usage(90_000)), Text("compacted")),
    )
    openai_model.play(Text("the gist"), to=COMPACTION)
    first = hooked.by_hand("hello")
    assert first.wait() == 0
    hooked.by_hand("work")
    killed_in_a_tool_call(hooked)
    assert hooked.by_hand("go on", "resume", session_of(first), "-").wait() == 0
    assert hooked.by_hand("go on", "fork", session_of(first), "-").wait() == 0
    limit = ("-c", "model_auto_compact_token_limit=50000")
    assert hooked.by_hand("go on", *limit, "resume", session_of(first), "-").wait() == 0
    sources = [one["source"] for one in hooked.events("session.started")]
    assert sources == ["startup", "startup", "resume", "fork", "resume", "compact"]
    after = openai_model.log.main[-1]
    assert "the gist" in after.text
    assert after.text.count("rate-limit: How many an hour?") == 1
    assert all(BANNER not in one.text for one in openai_model.log.main)


def test_a_primer_of_wide_letters_reaches_the_model_whole(hooked, openai_model):
    """Codex counts bytes where we count letters, so the hook requests a limit in bytes."""
    rules = "[wide] " + "日本語" * 3000
    (hooked.project / "RULES.md").write_text(rules)
    manifest = hooked.project / "rekindle.yaml"
    text = manifest.read_text().replace("    cycles: 1\n", "    cycles: 1\n    rules: RULES.md\n")
    manifest.write_text(text)
    openai_model.play(Text("all done"))
    assert hooked.by_hand("hello").wait() == 0
    (request,) = openai_model.log.main
    (told,) = [text for text in request.injected if "[wide]" in text]
    assert 9_000 < len(told) <= 10_000
    assert told.startswith(rules)
    assert told.count(RELAY.strip()) == 1


def test_hooks_run_if_status_says_so(rekindle, openai_model):
    """They run once a person trusts them and the project, and not before."""
    openai_model.play(Forever(Text("all done")))
    rekindle("hooks", "install")
    for trusted in (False, True):
        if trusted:
            trusting(rekindle)
        assert ("disabled" in rekindle("hooks", "status", code=0 if trusted else 8)) != trusted
        assert rekindle.by_hand("hello").wait() == 0
        assert (RELAY.strip() in openai_model.log.main[-1].text) == trusted


def test_hooks_at_two_levels_count_every_call_once(hooked, openai_model):
    """Fifty tool calls, reported by project and user hooks, make fifty heartbeats."""
    path = hooked.cli.settings / "hooks.json"
    before = path.read_text()
    hooked("hooks", "install", "--for", "user", "--harness", "codex")
    trusting(hooked)
    calls = (shell("false" if number % 10 == 9 else f"echo {number}") for number in range(CALLS))
    openai_model.play(*calls, Text("all done"))
    assert hooked.by_hand("hello").wait(100) == 0
    hooked.fold()
    beats = hooked.events("heartbeat")
    assert len(beats) == len({one["call"] for one in beats}) == CALLS
    assert [one["source"] for one in hooked.events("session.started")] == ["startup"]
    assert [one["text"] for one in hooked.events("prompt.submitted")] == ["hello"]
    assert hooked.events("session.ended")
    assert openai_model.log.main[0].text.count(RELAY.strip()) == 1
    hooked("hooks", "uninstall", "--for", "user", "--harness", "codex")
    assert path.read_text() == before


def test_a_person_s_own_session_beside_a_supervised_one_is_left_alone(hooked, openai_model):
    """It is logged as a visitor, not primed, and not a sign of life of the agent."""
    waits = Hang(Text("all done"))
    openai_model.play(waits, Text("hello person"))
    running = hooked.start("run")
    openai_model.log.wait_for(lambda request: request.step is waits, timeout=120)
    visit = hooked.by_hand("what is this?")
    assert visit.wait() == 0
    assert "Write the parser's tests" not in openai_model.log.main[1].text
    waits.release.set()
    assert running.wait() == 0, running.err
    by_session = {one["session"]: one for one in hooked.events("session.started")}
    assert by_session[session_of(visit)]["visitor"] is True
    (own,) = {one["session"] for one in hooked.events("launch.ended")}
    assert "visitor" not in by_session[own]


def test_an_exported_file_works_in_codex(rekindle, openai_model, tmp_path):
    """In its place and trusted, it primes the session and counts its tool call."""
    folder = tmp_path / "for codex"
    accept_folder(rekindle.project)
    said = rekindle("hooks", "export", str(folder), "--harness", "codex")
    assert f"copy {folder}/hooks.json to .codex in the project" in said
    (rekindle.project / ".codex").mkdir()
    shutil.copy(folder / "hooks.json", rekindle.project / ".codex")
    trusting(rekindle)
    openai_model.play(shell("echo from the tool"), Text("all done"))
    run = rekindle.by_hand("hello")
    assert run.wait() == 0, run.err
    assert openai_model.log.main[0].text.count(RELAY.strip()) == 1
    rekindle.fold()
    assert len(rekindle.events("heartbeat")) == 1
    assert "project: installed" in rekindle("hooks", "status")
