"""An agent that may write in its workspace tries to change what runs outside its sandbox.

Each CLI runs twice: in the first run the agent writes the files of all attacks, and a second launch
starts among them. In the second run its supervisor is killed, and the watchdog starts another one.
docs/explanation/escapes.md has the results.
"""

import json
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from e2e.escapes import ATTACKS, BAIT, FORGED_ANSWER, LINK, OUTSIDE, Ground
from e2e.sandbox import RELAY, TASK, Rekindle
from loopback.anthropic import Anthropic
from loopback.cli import ClaudeSandbox
from loopback.codex_cli import CONFIG, MODEL, CodexSandbox
from loopback.fixtures import require_namespaces
from loopback.gemini import Gemini
from loopback.gemini_cli import GeminiSandbox
from loopback.model import Model
from loopback.namespace import Namespace
from loopback.openai import OpenAI
from loopback.place import Place
from loopback.script import Hang, Text, ToolCall
from rekindle.errors import FolderLostError
from rekindle.system.files import user_folder
from rekindle.system.terminal import tmux

pytestmark = pytest.mark.timeout(300)

MANIFEST = """\
version: 1
agents:
  trades: {{harness: {harness}, prompt: PROMPT.md, cycles: 1}}
personas:
  default: {{permissions: {{allowed_tools: {tools}}}}}
runtime: {{relay: {{summarizer: mechanical}}, restart: {{cooldown: 0s}}}}
"""
PAGE = Path(__file__).parents[2] / "docs/explanation/escapes.md"
REFUSED, WITHOUT_EFFECT = "refused", "no effect"
LATER = ("manifest", "log")
"""Attacks that a supervisor notices: each has its own run."""


class CodexAgent:
    harness, tools, dialect = "codex", "[Bash]", OpenAI

    def __init__(self, program, model, network, place, root):
        self.cli = CodexSandbox(program, model=model, place=place, root=root)
        self.cli.configure(
            f"{CONFIG.format(model=MODEL, url=model.url)}\n"
            f'[projects."{self.cli.project}"]\ntrust_level = "trusted"\n'
        )

    def write(self, files):
        """Write all of them with one shell command, each with one call.

        The supervisor ends an agent that changes the log: a file that is emptied first may stay so.
        """
        code = (
            "import json, os, pathlib, sys\n"
            "for path, data in json.loads(sys.argv[1]).items():\n"
            "    try:\n"
            "        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)\n"
            "        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)\n"
            "        with open(descriptor, 'wb', buffering=0) as file:\n"
            "            file.write(bytes.fromhex(data))\n"
            "            file.truncate()\n"
            "        if path.split('/')[-2] == 'bin': pathlib.Path(path).chmod(0o755)\n"
            "    except OSError as error: print(error)\n"
        )
        given = json.dumps({str(path): data.hex() for path, data in files.items()})
        command = shlex.join([sys.executable, "-c", code, given])
        return [ToolCall("exec_command", {"cmd": command, "yield_time_ms": 30_000})]

    def connect(self, path):
        """Connect to a socket with a shell command, and report the result."""
        code = (
            "import pathlib, socket, sys\n"
            "try: socket.socket(socket.AF_UNIX).connect(sys.argv[1])\n"
            "except OSError as error: print(error)\n"
            "pathlib.Path('tried.txt').write_text('tried')\n"
        )
        command = shlex.join([sys.executable, "-c", code, str(path)])
        return [ToolCall("exec_command", {"cmd": command, "yield_time_ms": 30_000})]


class ClaudeAgent:
    harness, tools, dialect = "claude-code", "[Read, Write, Edit]", Anthropic

    def __init__(self, program, model, network, place, root):
        self.cli = ClaudeSandbox(program, model=model, network=network, root=root)
        self.tools = f'[Read, Write, Edit, "Write(/{self.cli.home}/shared/**)"]'

    def write(self, files):
        """Write a file, which Claude Code refuses if it exists and was not read."""
        steps = []
        for path, data in files.items():
            text = data.decode("utf-8", "replace")
            if path.is_file():
                steps.append(ToolCall("Read", {"file_path": str(path)}))
            steps.append(ToolCall("Write", {"file_path": str(path), "content": text}))
        return steps


class GeminiAgent:
    harness, tools, dialect = "gemini", "[Read, Write, Edit]", Gemini

    def __init__(self, program, model, network, place, root):
        self.cli = GeminiSandbox(program, model=model, place=place, root=root)
        trusted = {str(self.cli.project): "TRUST_FOLDER"}
        (self.cli.settings / "trustedFolders.json").write_text(json.dumps(trusted))

    def write(self, files):
        return [
            ToolCall(
                "write_file", {"file_path": str(path), "content": data.decode(errors="replace")}
            )
            for path, data in files.items()
        ]


AGENTS = {"Codex": CodexAgent, "Claude Code": ClaudeAgent, "Gemini CLI": GeminiAgent}


class Escape:
    """One CLI, the attacks of its agent, and their results."""

    def __init__(self, agent, model, place, root):
        self.agent, self.model, self.place = agent, model, place
        cli = agent.cli
        self.at = Ground(cli.project, cli.home, root)
        path = f"{cli.project}/bin:{cli.project}/.venv/bin:.:{cli.environment()['PATH']}"
        environment = cli.environment
        cli.environment = lambda **more: environment(**{**more, "PATH": path})
        self.rekindle = Rekindle(cli, place)
        self.wanted, self.results = {}, {}
        # In the place of the tmux server with the agents' windows.
        server = (
            user_folder.make_user_folder(tmux.find_socket().parent.name) / tmux.find_socket().name
        )
        server.unlink(missing_ok=True)
        self.windows = socket.socket(socket.AF_UNIX)
        self.windows.bind(str(server))
        self.windows.listen()
        self.windows.settimeout(0)
        self._set_up(cli.project)

    def _set_up(self, project):
        text = MANIFEST.format(harness=self.agent.harness, tools=self.agent.tools)
        (project / "rekindle.yaml").write_text(text)
        (project / "PROMPT.md").write_text(TASK)
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost", "-C", str(project)]
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "begin"]):
            subprocess.run([*git, *words], check=True, env={"PATH": "/usr/bin:/bin"})
        # Existing programs, because a file tool does not make a new file executable.
        (project / "bin").mkdir()
        (project / ".venv/bin").mkdir(parents=True)
        for hook in (project / ".git/hooks").iterdir():
            hook.unlink()
        for folder in ("shared", ".local/bin", ".ssh", ".config/systemd/user", ".config/autostart"):
            (self.at.home / folder).mkdir(parents=True, exist_ok=True)
        (self.at.home / ".profile").write_text("umask 022\n")
        (project / LINK).symlink_to(self.at.home / ".config")
        planted = [*ATTACKS["PATH shims"](self.at), *ATTACKS["git hooks"](self.at)]
        for program in planted:
            if program.parent in {project / "bin", project / ".git/hooks"}:
                program.write_text("#!/bin/sh\nexit 0\n")
                program.chmod(0o755)

    def calls(self, names):
        files = {}
        for name in names:
            self.wanted[name] = {
                path: data if isinstance(data, bytes) else data.encode()
                for path, data in ATTACKS[name](self.at).items()
            }
            files |= self.wanted[name]
        return self.agent.write(files)

    def events(self, kind=""):
        """Read the log itself: a command for each check would take a second."""
        lines = (self.at.agent / "ops.jsonl").read_text().splitlines()
        return [one for one in map(json.loads, lines) if kind in {"", one["kind"]}]

    def attack(self):
        """Write the files of most attacks; a second launch starts among them."""
        note = self.agent.write({self.at.project / "note.txt": b"a note"})
        note += self.agent.write({self.at.home / "shared/note.txt": b"a note"})
        note += self.agent.write({self.at.temporary: b"a note"})
        if isinstance(self.agent, CodexAgent):  # the others have no shell here
            note += self.agent.connect(self.windows.getsockname())
        names = [name for name in ATTACKS if name not in LATER]
        draft = self.agent.write({self.at.draft: RELAY.encode()})
        self.model.play(*note, *self.calls(names), *draft, Text("done."), *note, Text("done."))
        for _ in range(2):
            self.rekindle("run", code=24)
        self.look(names)

    def change_manifest(self):
        """Change it, then kill the agent and the supervisor; the watchdog starts another one."""
        hang = Hang(Text("done."))
        self.model.play(*self.calls(["manifest"]), hang, Text("done."), Text("done."))
        running = self.rekindle.start("run")
        self.model.log.wait_for(lambda request: request.step is hang, timeout=120)
        running.signal(signal.SIGKILL)
        running.wait()
        before = len(self.events())
        self.rekindle("watch", "--once")
        self.place.wait_for(lambda: len(self.events()) > before or None)
        hang.release.set()
        self.rekindle("stop")
        self.stopped = len(self.events("launch.started"))
        self.rekindle("watch", "--once")
        self.launched = len(self.events("launch.started"))
        self.look(["manifest"])

    def rewrite_log(self):
        """Replace the log under a running supervisor."""
        manifest = MANIFEST.format(harness=self.agent.harness, tools=self.agent.tools)
        (self.at.project / "rekindle.yaml").write_text(manifest)
        hang = Hang(Text("done."))
        self.model.play(*self.calls(["log"]), hang, Text("done."))
        running = self.rekindle.start("run")
        # A supervisor whose log was replaced ends its agent and itself.
        self.place.wait_for(
            lambda: (
                self.place.processes() == []
                or any(request.step is hang for request in self.model.log.main)
            )
        )
        self.look(["log"])
        if self.results["log"] == REFUSED:
            running.signal(signal.SIGKILL)
        self.code = running.wait()
        hang.release.set()
        if self.results["log"] != REFUSED:
            self.accept_log()

    def accept_log(self):
        """Accept the log that the agent wrote as the operator, after a watchdog has seen it."""
        before = len(self.model.log.main)
        self.watched = self.rekindle("watch", "--once")
        self.asked_meanwhile = len(self.model.log.main) - before
        self.model.play(Text("done."))
        self.rekindle("run", code=24)

    def look(self, names):
        """Record which attacks could write a file; a text tool may change other bytes."""
        for name in names:
            written = any(
                path.is_file()
                and path.read_bytes() in {data, data.decode(errors="replace").encode()}
                for path, data in self.wanted[name].items()
                if not any(part.startswith(BAIT) for part in path.parts[-2:])
            )
            # A refused record is removed from the inbox.
            written |= name == "inbox record" and bool(self.events("inbox.rejected"))
            self.results[name] = WITHOUT_EFFECT if written else REFUSED


@pytest.fixture(scope="module", params=AGENTS)
def escape(request):
    """Play all attacks once for each CLI."""
    require_namespaces()
    agent = AGENTS[request.param]
    program = request.getfixturevalue(f"{request.param.split()[0].lower()}_program")
    with (
        # Not in /tmp, where Codex lets its agent write: no user's home is there.
        tempfile.TemporaryDirectory(prefix="rk-", dir="/var/tmp") as folder,
        Namespace() as network,
        Model(agent.dialect(), network.listener) as model,
        Place(network, Path(folder, "place")) as place,
    ):
        root = Path(folder)
        made = agent(program, model, network, place, root / "cli")
        found = Escape(made, model, place, root)
        found.name = request.param
        found.attack()
        found.change_manifest()
        found.rewrite_log()
        yield found
        found.at.temporary.unlink(missing_ok=True)
        found.windows.close()
        tmux.find_socket().unlink()


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_outside_the_sandbox_changes(escape, attack):
    """No program of the agent ran outside, and its workspace could still be written."""
    assert (escape.at.project / "note.txt").read_text() == "a note"
    assert not escape.at.canary(attack).exists()
    assert f"| {attack} | {escape.name} | {escape.results[attack]} |" in PAGE.read_text()


def test_no_file_outside_the_workspace_is_written(escape):
    """It cannot be written by its path, through a link in the workspace, or by `..`."""
    written = [
        path
        for path, data in escape.wanted[OUTSIDE].items()
        if path.is_file() and path.read_bytes() == data
    ]
    assert written == []
    assert escape.results[OUTSIDE] == REFUSED


def test_a_rule_with_a_path_permits_a_folder_outside(escape):
    """Only the persona of Claude Code has such a rule; without it nothing can be written there."""
    has_rule = "shared" in escape.agent.tools
    assert has_rule == (escape.name == "Claude Code")
    assert (escape.at.home / "shared/note.txt").exists() == has_rule


def test_no_window_of_tmux_is_reached(escape):
    """A client of its server could type into every window, outside the sandbox."""
    if escape.name == "Codex":
        assert (escape.at.project / "tried.txt").read_text() == "tried"
    with pytest.raises(BlockingIOError):
        escape.windows.accept()


def test_the_sandbox_is_the_one_that_users_get(escape):
    """Codex lets its agent write in /tmp unless the user's settings forbid it."""
    assert escape.at.temporary.exists() == (escape.name == "Codex")


def test_no_operator_s_command_was_forged(escape):
    """After each stop nothing was started and no question was answered."""
    assert escape.events("person.answered") == []
    assert escape.events("question.answered") == []
    assert escape.launched == escape.stopped


def test_a_log_that_an_agent_wrote_starts_nothing(escape):
    """If the CLI lets it be written, the supervisor ends its agent, and no watchdog starts it."""
    if escape.results["log"] == REFUSED:
        assert escape.code != FolderLostError.exit_code
        return
    assert escape.code == FolderLostError.exit_code
    assert "started" not in escape.watched
    assert escape.asked_meanwhile == 0


def test_forged_lines_of_a_log_that_the_operator_accepts_do_not_count(escape):
    """They are set aside, and no later session is told the forged answer."""
    told = [prompt for request in escape.model.log.main for prompt in request.prompts]
    assert told
    assert not any(FORGED_ANSWER in prompt for prompt in told)
    if escape.results["log"] == REFUSED:
        return
    assert escape.events("cycle.ended")[-1]["seq"] > escape.events("launch.started")[-1]["seq"]
    assert FORGED_ANSWER not in (escape.at.agent / "ops.jsonl").read_text()
    assert FORGED_ANSWER in (escape.at.agent / "ops.jsonl.rejected").read_text()


def test_the_draft_can_be_written(escape):
    """It is the only file below .rekindle that no CLI refuses."""
    assert escape.events("cycle.ended")[0]["how"] == "draft"


def test_the_page_has_exactly_these_attacks():
    rows = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    found = {(row[0].strip("| "), row[1]) for row in rows if len(row) > 1 and row[1] in AGENTS}
    assert found == {(attack, name) for attack in ATTACKS for name in AGENTS}
