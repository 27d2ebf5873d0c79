"""Work continues on another CLI or account when one refuses, with the real CLIs."""

import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import prerequisites
from e2e.handing import MARK
from e2e.routing import Clis, Routing, call, refuse, shell
from loopback import anthropic
from loopback.anthropic import Anthropic
from loopback.gemini import Gemini
from loopback.model import Model
from loopback.openai import OpenAI
from loopback.script import Forever, Hang, Text, ToolCall
from rekindle.stores.folders.private_files import find_private_project
from rekindle.system.sandbox import probe

pytestmark = pytest.mark.timeout(400)

MANIFEST = """\
version: 1
agents:
  trades:
    harness: [claude-code, codex, {use: gemini, persona: of-gemini}]
    prompt: PROMPT.md
    cycles: 1
    until: ["true"]
runtime: {relay: {summarizer: mechanical}}
personas:
  default: {permissions: {allowed_tools: [Bash, Read]}}
  of-gemini: {permissions: {allowed_tools: [run_shell_command, read_file]}}
"""


ACCOUNTS = """\
version: 1
agents:
  trades:
    harness: [claude-code, codex]
    accounts: [work, own, spare]
    prompt: PROMPT.md
    cycles: {cycles}
    until: ["{until}"]
accounts:
  work: {{harness: claude-code, config_dir: {home}/work}}
  own: {{harness: claude-code, config_dir: {home}/own}}
  spare: {{harness: codex, config_dir: {home}/spare}}
runtime:
  relay: {{summarizer: mechanical}}
  accounts: {{switch: {switch}}}
personas:
  default: {{permissions: {{allowed_tools: [Bash, Read]}}}}
"""


@pytest.fixture
def programs(claude_program: Path, codex_program: Path, gemini_program: Path) -> dict[str, Path]:
    return {"claude": claude_program, "codex": codex_program, "gemini": gemini_program}


@pytest.fixture
def routing(programs, network, place, tmp_path: Path) -> Iterator[Routing]:
    """Return a project with all three CLIs, each with its own model."""
    with (
        Model(Anthropic(), network.listener) as one,
        Model(OpenAI(), network.listen(0)) as two,
        Model(Gemini(), network.listen(0)) as three,
    ):
        models = {"claude": one, "codex": two, "gemini": three}
        yield Routing(Clis(tmp_path / "clis", programs, models), place)


@pytest.fixture
def own_model(network) -> Iterator[Model]:
    """Start the model of a second account of Claude Code."""
    with Model(Anthropic(), network.listen(0)) as served:
        yield served


@pytest.fixture
def accounts(routing, own_model) -> Routing:
    """Return a project with two accounts of Claude Code and one of Codex."""
    clis, home = routing.clis, routing.clis.home
    clis.make_claude(home / "work", routing.claude)
    clis.make_claude(home / "own", own_model)
    clis.make_codex(home / "spare", key="sk-test-spare")
    routing.own = own_model
    return routing


def begin(routing, *, cycles=1, until="true", switch="true"):
    home = routing.clis.home
    routing.begin(ACCOUNTS.format(home=home, cycles=cycles, until=until, switch=switch))


def run(routing, code=0):
    started = routing.rekindle.start("run", "trades")
    assert started.wait() == code, started.out + started.err
    return started.out + started.err


def test_a_session_continues_on_the_next_account(accounts):
    """The session keeps its id and its turns; another CLI gets a checkpoint after that."""
    begin(accounts)
    accounts.claude.play(call("claude", "a"), Forever(refuse("claude")))
    accounts.own.play(call("claude", "b"), Forever(refuse("claude")))
    accounts.codex.play(call("codex", "c"), Text("all done"))
    said = run(accounts)
    routes = ["claude-code/work", "claude-code/own", "codex/spare"]
    assert accounts.routes() == routes, said
    assert "the same session continues on claude-code/own" in said
    told = accounts.rekindle("status", "trades")
    assert "(codex/spare, because claude-code/work is blocked until" in told
    assert accounts.worked == "abc"
    first, second, third = accounts.rekindle.events("launch.started")
    assert first["session"] == second["session"] != third["session"]
    assert [one.text for one in accounts.own.log.main[0].results] != []


def test_one_cycle_moves_from_claude_code_to_codex_to_gemini(routing):
    """Each keeps the persona's limits and gets all items so far, and one log records the cycle."""
    routing.begin(MANIFEST)
    project, outside = routing.project, routing.clis.home / "outside"
    written = {"file_path": str(project / "denied.py"), "content": "x"}
    routing.claude.play(
        ToolCall("Write", written),
        shell("claude", "touch lexer.py"),
        Forever(refuse("claude")),
    )
    routing.codex.play(
        shell("codex", f"touch {outside}"),
        shell("codex", "touch parser.py"),
        Forever(refuse("codex")),
    )
    routing.gemini.play(
        ToolCall("write_file", written),
        shell("gemini", "touch printer.py"),
        Text("all done"),
    )
    said = run(routing)
    assert routing.routes() == ["claude-code", "codex", "gemini"], said
    made = sorted(path.name for path in project.glob("*r.py"))
    assert made == ["lexer.py", "parser.py", "printer.py"]
    assert not (project / "denied.py").exists()
    assert not outside.exists()
    (codex,) = [one for one in routing.codex.log.main if not one.results]
    (gemini,) = [one for one in routing.gemini.log.main if not one.results]
    assert MARK in codex.text
    assert "lexer.py" in codex.text
    assert {"lexer.py", "parser.py"} <= set(gemini.text.replace("`", " ").split())
    kinds = [one["kind"] for one in routing.rekindle.events()]
    assert kinds.count("cycle.started") == kinds.count("cycle.ended") == 1
    assert kinds.count("handoff.resumed") == 2


def test_an_expired_login_moves_the_work_but_not_to_another_account_by_default(accounts):
    """The agent does not wait for a person while another CLI can work."""
    begin(accounts, switch="false")
    accounts.claude.play(call("claude", "a"), Forever(anthropic.UNAUTHORIZED))
    accounts.codex.play(call("codex", "b"), Text("all done"))
    said = run(accounts)
    assert accounts.routes() == ["claude-code/work", "codex/spare"], said
    assert accounts.exits() == ["auth", "clean"]
    assert accounts.worked == "ab"
    assert accounts.own.log.main == []


def test_a_person_moves_the_work_until_the_cycle_ends(accounts):
    """The session stops between two calls, and the next cycle returns to the first route."""
    begin(accounts, cycles=2, until="false")
    waits = Hang(call("claude", "a"))
    accounts.claude.play(waits, Text("done with the second cycle"))
    accounts.codex.play(call("codex", "b"), Text("done"))
    running = accounts.rekindle.start("run", "trades")
    accounts.claude.log.wait_for(lambda request: request.step is waits, timeout=120)
    said = accounts.rekindle("handoff", "trades", "--to", "codex")
    assert "a fresh one continues on codex/spare with a checkpoint" in said
    private = find_private_project(accounts.project).agent("trades").launch
    # Before the request, the rule has the limit of the window.
    accounts.rekindle.place.wait_for(
        lambda: any(b"\nlimit 0\n" in path.read_bytes() for path in private.glob("brake-*"))
    )
    refused = accounts.rekindle.start("handoff", "trades", "--to", "gemini")
    assert refused.wait() == 2
    assert "use one of: claude-code/work, claude-code/own, codex/spare" in refused.err
    waits.release.set()
    assert running.wait() == 24, running.out + running.err
    routes = ["claude-code/work", "codex/spare", "claude-code/work"]
    assert accounts.routes() == routes, running.out + running.err
    assert accounts.worked == "ab"


def test_a_supervisor_that_dies_on_the_second_account_is_continued_there(accounts):
    """The same session continues, although the first account has its transcript too."""
    begin(accounts)
    works = Hang(Text("never said"))
    accounts.claude.play(call("claude", "a"), Forever(refuse("claude")))
    accounts.own.play(call("claude", "b"), works, call("claude", "c"), Text("all done"))
    running = accounts.rekindle.start("run", "trades")
    accounts.own.log.wait_for(lambda request: request.step is works, timeout=120)
    running.signal(signal.SIGKILL)
    running.wait()
    said = run(accounts)
    assert accounts.routes() == ["claude-code/work", *["claude-code/own"] * 2], said
    assert len({one["session"] for one in accounts.rekindle.events("launch.started")}) == 1
    assert accounts.worked == "abc"


def test_a_sandbox_shows_only_the_account_in_use(accounts):
    """The session moves between the accounts, and no agent sees or changes the login of another."""
    obstacle = probe.find_obstacle()
    prerequisites.require(obstacle.words if obstacle else None)
    begin(accounts)
    home, manifest = accounts.clis.home, accounts.project / "rekindle.yaml"
    models = {"work": accounts.claude, "own": accounts.own, "spare": accounts.codex}
    hosts = [urlsplit(model.url).netloc for model in models.values()]
    sandbox = f"cycles: 1\n    sandbox: {{network: {hosts}}}"
    manifest.write_text(manifest.read_text().replace("cycles: 1", sandbox))
    for name in models:
        (home / name / "login").touch()

    def look(cli, account):
        each = f"test -e {home}/$one/login && echo $one >>seen-{account}"
        write = f"mkdir -p {home}/$one; touch {home}/$one/from-{account}"
        return shell(cli, f"for one in {' '.join(models)}; do {each}; {write}; done; true")

    accounts.claude.play(look("claude", "work"), Forever(refuse("claude")))
    accounts.own.play(look("claude", "own"), Forever(refuse("claude")))
    accounts.codex.play(look("codex", "spare"), Text("all done"))
    said = run(accounts)
    assert accounts.routes() == ["claude-code/work", "claude-code/own", "codex/spare"], said
    first, second, _ = accounts.rekindle.events("launch.started")
    assert first["session"] == second["session"]
    seen = {name: (accounts.project / f"seen-{name}").read_text().split() for name in models}
    assert seen == {name: [name] for name in models}
    written = {(path.parent.name, path.name) for path in home.glob("*/from-*")}
    # Codex writes its state beside its settings, so its own folder is writable.
    assert written <= {("spare", "from-spare")}
