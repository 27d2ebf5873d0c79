"""Every common mistake ends with a short message that names the next step.

`just errors` prints all of these messages.
"""

import contextlib
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

import worktrees
from rekindle.cli import main
from rekindle.config import load_project
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.system.files import file_locks
from rekindle.wiring.access.trust_checks import accept_folder
from rekindle.wiring.agent_workspaces import AgentWorkspace
from rekindle.wiring.open_store import open_store

MOST_SENTENCES = 3
ALONE = "version: 1\nagents:\n  trades: {harness: claude-code, prompt: PROMPT.md}\n"
PLAIN = ALONE.replace("claude-code", "command, command: [sleep, '600']")
FLEET = "fleet: {address: '127.0.0.1:1'}\n"
CLAUDE = "#!/bin/sh\nexec sleep 600\n"

SUPERVISOR = """\
import pathlib, sys
from rekindle.config import load_project
from rekindle.wiring.open_store import open_store
with open_store(load_project(pathlib.Path())).supervising("trades"):
    print("ready", flush=True)
    sys.stdin.read()
"""


class World:
    """An empty project folder, with a home and a search path of its own."""

    def __init__(self, folder):
        self.path, self.programs, home = folder / "shop", folder / "programs", folder / "home"
        for made in (self.path, self.programs, home):
            made.mkdir()
        (self.path / "PROMPT.md").write_text("Trade.\n")
        self.environment = {
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "HOME": str(home),
            "LC_ALL": "C.UTF-8",
        }
        self.prefix = ()
        self.running = []

    def write(self, text):
        (self.path / "rekindle.yaml").write_text(text)

    def program(self, name, text):
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(stat.S_IRWXU)

    def init(self, name="trades"):
        assert main.run(["init", name, "--yes"]) == 0

    @property
    def agent(self):
        return RekindleFolder(self.path).agent("trades")

    def rekindle(self, *arguments):
        return subprocess.run(
            [*self.prefix, sys.executable, "-m", "rekindle", *arguments],
            cwd=self.path,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def world(tmp_path, monkeypatch):
    made = World(tmp_path)
    monkeypatch.chdir(made.path)
    monkeypatch.delenv("REKINDLE_AGENT", raising=False)
    yield made
    for end in reversed(made.running):
        end()


class Situation(NamedTuple):
    """A mistake, or something that is missing on the host."""

    prepare: Callable[[World], tuple[str, ...]]
    """Prepares the folder, and returns the arguments of the command."""
    code: int
    step: str
    """Part of the message that names the next command or edit."""


def no_manifest(world):
    return ("status",)


def no_cli(world):
    world.init()
    world.environment["PATH"] = str(world.programs)
    return ("run", "trades")


def typo_in_a_key(world):
    world.write(ALONE.replace("harness", "harnes"))
    return ("status",)


def wrong_type(world):
    world.write(ALONE.replace("prompt:", "cycles: many, prompt:"))
    return ("status",)


def bad_budget(world):
    world.write(ALONE.replace("prompt:", "budget: {usd: -5}, prompt:"))
    return ("run", "trades", "--trust")


def invalid_yaml(world):
    world.write("version: 1\nagents:\n  trades: {harness: claude-code\n")
    return ("status",)


def broken_pipeline(world):
    world.write(f"{ALONE}pipelines:\n  ship:\n    steps: [{{id: plan, depends_on: [plna]}}]\n")
    return ("status",)


def newer_manifest(world):
    world.write(ALONE.replace("version: 1", "version: 9"))
    return ("status",)


def locked(world):
    world.init()
    world.program("claude", CLAUDE)
    hold = file_locks.hold_lock(world.agent.lock, 0)
    assert hold.__enter__() is not None
    world.running.append(lambda: hold.__exit__(None, None, None))
    return ("run", "trades")


def full_disk(world):
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "none", str(world.path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    world.running.append(lambda: subprocess.run(["umount", "-l", str(world.path)], check=True))
    os.chdir(world.path)
    (world.path / "PROMPT.md").write_text("Trade.\n")
    world.init()
    with (world.path / "ballast").open("wb", buffering=0) as ballast:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    ballast.write(b"x" * size)
    return ("loops", "add", "rate-limit", "How many?")


def no_permission(world):
    world.init()
    world.agent.path.chmod(0)
    if os.getuid() == 0:
        # Without these capabilities, permissions count for root too.
        world.prefix = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
    world.running.append(lambda: world.agent.path.chmod(stat.S_IRWXU))
    return ("loops", "add", "rate-limit", "How many?")


def no_git(world):
    subprocess.run(["git", "init", "-q"], cwd=world.path, check=True)
    world.init()
    world.environment["PATH"] = str(world.programs)
    return ("relay", "replay", ".:relay.md")


def unknown_agent(world):
    world.init()
    return ("status", "trads")


def two_agents(world):
    world.init()
    world.init("docs")
    return ("run",)


def engine_away(world):
    world.write(ALONE + FLEET)
    world.environment["REKINDLE_TRUST"] = "1"
    return ("status",)


def no_prompt(world):
    world.init()
    world.program("claude", CLAUDE)
    (world.path / "PROMPT.md").unlink()
    return ("run", "trades")


def untouched_prompt(world):
    (world.path / "PROMPT.md").unlink()
    world.init()
    world.program("claude", CLAUDE)
    return ("run", "trades")


def newer_schema(world):
    world.init()
    log = world.agent.path / "ops.jsonl"
    log.write_text(log.read_text().replace('"v":1', '"v":9'))
    return ("loops",)


def untrusted_folder(world):
    world.write(ALONE)
    world.program("claude", CLAUDE)
    return ("run", "trades")


def unknown_command(world):
    return ("stauts",)


def unknown_option(world):
    return ("status", "--wach")


def missing_extra(world):
    world.write(ALONE + FLEET)
    world.environment |= {"REKINDLE_TRUST": "1", "PYTHONPATH": str(world.programs)}
    (world.programs / "sitecustomize.py").write_text(
        "import importlib.util as util\nfind = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'temporalio' else find(name, *more)\n"
    )
    return ("status",)


def start_supervisor(world):
    """Start a process that holds the agent's locks until the end of the test."""
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    world.running.append(supervisor.communicate)
    assert supervisor.stdout.readline() == b"ready\n"


def already_running(world):
    world.init()
    world.program("claude", CLAUDE)
    start_supervisor(world)
    return ("run", "trades")


def called_by_an_agent(world):
    world.init()
    world.program("claude", CLAUDE)
    supervising = open_store(load_project(world.path)).supervising("trades")
    supervising.__enter__()
    world.running.append(lambda: supervising.__exit__(None, None, None))
    return ("run", "trades")


def nothing_to_stop(world):
    world.init()
    return ("stop", "trades")


def nothing_to_hand_off(world):
    world.init()
    return ("handoff", "trades")


def nothing_to_resume(world):
    world.init()
    world.program("claude", CLAUDE)
    return ("restart", "trades")


def changed_log(world):
    world.init()
    (world.agent.path / "ops.jsonl").write_text("not a log\n")
    return ("status",)


def missing_log(world):
    world.init()
    world.program("claude", CLAUDE)
    (world.agent.path / "ops.jsonl").unlink()
    return ("run", "trades")


def unknown_loop(world):
    world.init()
    return ("resolve", "rate-limit", "ten")


def nothing_asked(world):
    world.init()
    return ("approve",)


def not_executable(world):
    world.write(ALONE.replace("harness: claude-code", "harness: command, command: ./agent"))
    (world.path / "agent").write_text(CLAUDE)
    return ("run", "trades", "--trust")


def own_checkout(world, *more, commits=True):
    """Write a manifest whose agent has its own clone, and create the repository."""
    settings = ", ".join(["workspace: clone", *more])
    world.write(PLAIN.replace("prompt:", f"{settings}, prompt:"))
    worktrees.git(world.path, "init", "-q", "-b", "main")
    if commits:
        worktrees.git(world.path, "add", "-A")
        worktrees.git(world.path, "commit", "-qm", "one")


def worked(world):
    """Let the agent change a file in its own clone."""
    own_checkout(world)
    accept_folder(world.path)
    workspace = AgentWorkspace(world.path, world.path, "trades", "clone")
    workspace.open((), lambda: None, updates=True)
    (workspace.folder / "PROMPT.md").write_text("theirs\n")
    worktrees.git(workspace.folder, "commit", "-qam", "theirs")


def clone_without_repository(world):
    world.write(PLAIN.replace("prompt:", "workspace: clone, prompt:"))
    return ("run", "trades", "--trust")


def clone_without_commit(world):
    own_checkout(world, commits=False)
    return ("run", "trades", "--trust")


def clone_with_a_relay(world):
    own_checkout(world, "relay: relay.md")
    return ("run", "trades", "--trust")


def missing_copy(world):
    own_checkout(world, "copy: [.env]")
    return ("run", "trades", "--trust")


def copy_from_outside(world):
    own_checkout(world, "copy: [../secrets]")
    return ("run", "trades", "--trust")


def copy_without_clone(world):
    own_checkout(world)
    world.write(PLAIN.replace("prompt:", "copy: [.env], prompt:"))
    return ("run", "trades", "--trust")


def nothing_of_its_own(world):
    world.init()
    return ("merge", "trades")


def no_clone_yet(world):
    own_checkout(world)
    accept_folder(world.path)
    return ("clean", "trades")


def merge_conflict(world):
    worked(world)
    (world.path / "PROMPT.md").write_text("mine\n")
    worktrees.git(world.path, "commit", "-qam", "mine")
    return ("merge", "trades")


def changed_file_in_the_way(world):
    worked(world)
    (world.path / "PROMPT.md").write_text("mine\n")
    return ("merge", "trades")


def unrelated_history(world):
    worked(world)
    worktrees.git(world.path, "checkout", "-q", "--orphan", "other")
    worktrees.git(world.path, "commit", "-qm", "other")
    return ("merge", "trades")


def clean_while_it_works(world):
    worked(world)
    start_supervisor(world)
    return ("clean", "trades")


def other_kind_of_checkout(world):
    worked(world)
    text = (world.path / "rekindle.yaml").read_text()
    world.write(text.replace("workspace: clone", "workspace: worktree"))
    return ("run", "trades", "--trust")


def branch_checked_out(world):
    worked(world)
    worktrees.git(world.path, "checkout", "-q", "rekindle/trades/work")
    return ("clean", "trades")


def pipeline(world, *words, steps="[{id: plan, run: 'true'}]", more=""):
    world.write(PLAIN + f"pipelines: {{review: {{steps: {steps}{more}}}}}\n")
    return ("pipeline", *words)


def unknown_pipeline(world):
    return pipeline(world, "run", "reviw")


def no_run_yet(world):
    return pipeline(world, "merge", "review")


def pipeline_without_repository(world):
    return pipeline(world, "run", "review", "--trust")


def pipeline_without_input(world):
    return pipeline(world, "run", "review", "--trust", more=", input: required")


def bad_run_budget(world):
    return pipeline(world, "resume", "review", "--budget", "40")


SITUATIONS = {
    "no manifest": Situation(no_manifest, 3, "rekindle init"),
    "no CLI": Situation(no_cli, 9, "install"),
    "typo in a key": Situation(typo_in_a_key, 3, "harness"),
    "wrong type": Situation(wrong_type, 3, "cycles"),
    "bad budget": Situation(bad_budget, 3, "budget"),
    "invalid YAML": Situation(invalid_yaml, 3, "rekindle.yaml:"),
    "broken pipeline": Situation(broken_pipeline, 3, "rekindle.yaml:6: step plan"),
    "newer manifest": Situation(newer_manifest, 4, "upgrade"),
    "locked": Situation(locked, 6, "repeat"),
    "full disk": Situation(full_disk, 5, "free some space"),
    "no permission": Situation(no_permission, 5, "access"),
    "no git": Situation(no_git, 5, "install git"),
    "unknown agent": Situation(unknown_agent, 7, "trades"),
    "two agents": Situation(two_agents, 2, "`rekindle run docs`"),
    "engine away": Situation(engine_away, 10, "rekindle fleet dev"),
    "no prompt": Situation(no_prompt, 3, "PROMPT.md"),
    "untouched prompt": Situation(untouched_prompt, 3, "PROMPT.md"),
    "newer schema": Situation(newer_schema, 4, "upgrade"),
    "untrusted folder": Situation(untrusted_folder, 11, "--trust"),
    "unknown command": Situation(unknown_command, 2, "rekindle status"),
    "unknown option": Situation(unknown_option, 2, "--watch"),
    "missing extra": Situation(missing_extra, 10, "pip install 'rekindle-agents[fleet]'"),
    "already running": Situation(already_running, 6, "rekindle stop trades"),
    "called by an agent": Situation(called_by_an_agent, 14, "may_control: true"),
    "nothing to stop": Situation(nothing_to_stop, 0, "stays stopped"),
    "nothing to hand off": Situation(nothing_to_hand_off, 9, "rekindle status trades"),
    "nothing to resume": Situation(nothing_to_resume, 0, "rekindle run trades"),
    "changed log": Situation(changed_log, 0, "rekindle doctor"),
    "missing log": Situation(missing_log, 4, "backup"),
    "unknown loop": Situation(unknown_loop, 7, "rekindle loops"),
    "nothing asked": Situation(nothing_asked, 7, "rekindle questions"),
    "clone without repository": Situation(clone_without_repository, 3, "git init"),
    "clone without commit": Situation(clone_without_commit, 3, "git add -A && git commit"),
    "clone with a relay": Situation(clone_with_a_relay, 3, "remove `relay:`"),
    "missing copy": Situation(missing_copy, 3, "create it, or remove it from `copy:`"),
    "copy from outside": Situation(copy_from_outside, 3, "use a path such as .env"),
    "copy without clone": Situation(copy_without_clone, 3, "add `workspace: clone`"),
    "nothing of its own": Situation(nothing_of_its_own, 2, "`workspace: clone`"),
    "no clone yet": Situation(no_clone_yet, 7, "rekindle run trades"),
    "merge conflict": Situation(merge_conflict, 8, "git merge rekindle/trades/work"),
    "changed file in the way": Situation(changed_file_in_the_way, 5, "commit, stash or move"),
    "unrelated history": Situation(unrelated_history, 5, "--allow-unrelated-histories"),
    "clean while it works": Situation(clean_while_it_works, 6, "rekindle stop trades"),
    "other kind of checkout": Situation(other_kind_of_checkout, 3, "rekindle clean trades"),
    "branch checked out": Situation(branch_checked_out, 5, "check out another branch"),
    "unknown pipeline": Situation(unknown_pipeline, 7, "use one of: review"),
    "no run yet": Situation(no_run_yet, 7, "rekindle pipeline run review"),
    "pipeline without repository": Situation(pipeline_without_repository, 2, "git init"),
    "pipeline without input": Situation(
        pipeline_without_input, 2, 'rekindle pipeline run review "TEXT"'
    ),
    "bad budget of a run": Situation(bad_run_budget, 2, "--budget usd=40"),
    "not executable": Situation(not_executable, 9, "chmod +x"),
}


def count_sentences(message):
    """Return the number of sentences of a message and its hint."""
    text = message.replace("Error: ", "").replace("  → ", "")
    return len([part for part in re.split(r"[.!?](?=\s|$)|\n", text) if part.strip()])


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_mistake_leads_to_a_short_message_that_names_the_next_step(world, name, capsys):
    situation = SITUATIONS[name]
    arguments = situation.prepare(world)
    ended = world.rekindle(*arguments)
    message = (ended.stderr or ended.stdout).replace(str(world.path.parent), "…")
    if arguments == ("status",) and not ended.returncode:
        lines = [line for line in message.splitlines() if "state:" in line or "→" in line]
        message = "\n".join(lines)
    with capsys.disabled():
        if os.environ.get("REKINDLE_PRINTS_ERRORS"):
            print(f"\n{name}\n$ rekindle {' '.join(arguments)}   (exit code {ended.returncode})")
            print(message.rstrip())
    assert ended.returncode == situation.code, message
    assert situation.step in message
    assert "Traceback" not in message
    assert count_sentences(message) <= MOST_SENTENCES, message
