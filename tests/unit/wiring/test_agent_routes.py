"""An agent's routes and accounts, and the checks of them before a start."""

import msgspec
import pytest

from rekindle.config import make_project
from rekindle.documents.launches.route import Route
from rekindle.errors import AgentError, ManifestError
from rekindle.wiring import agent_routes
from rekindle.wiring.agent_environment import make_environment
from rekindle.wiring.open_store import HARNESSES, open_store
from rekindle.wiring.starting.reviewing_agent import with_reviewer
from rekindle.wiring.starting.routed_agent import find_unusable_routes
from rekindle.wiring.starting.start_checks import find_obstacles
from rekindle.wiring.starting.start_notes import find_notes
from rekindle.wiring.summarizer_setup import make_headless

TEXT = """\
version: 1
agents:
  a:
    harness: [claude-code, {{use: codex, persona: other, command: ["sh"]}}]
    accounts: [{named}]
    command: ["sh"]
accounts:
  work: {{harness: claude-code, config_dir: {folder}}}
  own: {{harness: claude-code, config_dir: ~/own}}
  spare: {{harness: gemini, config_dir: ~/spare}}
runtime: {{accounts: {{switch: true}}}}
personas:
  other: {{permissions: {{allowed_tools: {tools}}}}}
"""
OURS = {
    "PATH": "/bin",
    "ANTHROPIC_API_KEY": "k",
    "CLAUDE_CODE_USE_BEDROCK": "1",
    "ANTHROPIC_BASE_URL": "u",
    "HOME": "/home/user",
}


def make(tmp_path, named="work, own", folder="~/work", tools="[Bash]"):
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    (project / "PROMPT.md").write_text("# Task\nDo it.\n")
    return make_project(project, TEXT.format(named=named, folder=folder, tools=tools))


def test_each_route_is_an_agent_of_its_own(tmp_path):
    """It has the CLI, the persona, the program and the account of the route."""
    project = make(tmp_path)
    routes = agent_routes.find_routes(project, "a")
    assert [str(route) for route in routes] == ["claude-code/work", "claude-code/own", "codex"]
    entry = agent_routes.with_route(project, "a", routes[1]).manifest.agents["a"]
    assert (entry.harness, entry.persona, entry.accounts) == ("claude-code", None, ["own"])
    entry = agent_routes.with_route(project, "a", Route("codex")).manifest.agents["a"]
    assert (entry.harness, entry.persona, entry.accounts) == ("codex", "other", None)
    assert entry.harnesses is None


def test_a_summarizer_with_its_own_cli_uses_the_account_of_that_cli(tmp_path):
    """On each route, it gets the listed login and no key."""
    text = TEXT.format(named="work, s", folder=tmp_path / "login", tools="[Bash]")
    text += "  summarizer: {adapter: codex}\n"
    text = text.replace(
        "accounts:\n  work", "accounts:\n  s: {harness: codex, config_dir: /s}\n  work"
    )
    project = make_project(make(tmp_path).path, text)
    routed = agent_routes.with_route(project, "a", Route("claude-code", "work"))
    assert routed.manifest.agents["a"].accounts == ["work", "s"]
    agent_routes.check_accounts(routed, "a")
    headless = make_headless(routed, open_store(project), "a", {"OPENAI_API_KEY": "k"})
    assert headless
    assert headless.environment == {"CODEX_HOME": "/s"}
    (tmp_path / "login").mkdir()
    with pytest.raises(AgentError, match="the folder /s does not exist"):
        agent_routes.check_account_folder(routed, "a")


def test_a_reviewer_with_its_own_cli_uses_the_account_of_that_cli(tmp_path):
    """The accounts of the agent's other CLIs do not prevent the review."""
    text = TEXT.format(named="work, s", folder="~/work", tools="[Bash]")
    text = text.replace("    command:", "    review: reviewer\n    command:", 1)
    text += "  reviewer: {adapter: codex, command: [sh]}\n"
    text = text.replace(
        "accounts:\n  work", "accounts:\n  s: {harness: codex, config_dir: /s}\n  work"
    )
    project = make_project(make(tmp_path).path, text)
    routed = agent_routes.with_route(project, "a", Route("claude-code", "work"))
    reviewing = with_reviewer(routed, "a")
    assert reviewing
    assert not list(find_obstacles(reviewing, "a", on_this_host=False))
    assert make_environment(reviewing, "a").variables["CODEX_HOME"] == "/s"


def test_the_environment_cannot_replace_an_account(tmp_path):
    """The quota would be counted for the account, but the other login used."""
    text = TEXT.format(named="work", folder="~/work", tools="[Bash]")
    text = text.replace("    command:", "    env: {CLAUDE_CONFIG_DIR: /x}\n    command:")
    project = make_project(make(tmp_path).path, text)
    with pytest.raises(ManifestError, match="`env:` sets CLAUDE_CONFIG_DIR"):
        make_environment(project, "a")
    make_environment(agent_routes.with_route(project, "a", Route("codex")), "a")


@pytest.mark.parametrize("folder", ["~nouser/x", '"/x\\0y"', "$HOME/cw", "login"])
def test_a_folder_that_cannot_be_found_is_refused_with_its_line(tmp_path, folder):
    """The message says how to write it."""
    with pytest.raises(ManifestError, match="config_dir") as caught:
        make(tmp_path, folder=folder)
    assert "begins with `~/` or `/`" in caught.value.hint


def test_a_worker_keeps_the_first_account_of_its_cli(tmp_path):
    """It lists the accounts of all agents, also those of other CLIs."""
    project = make(tmp_path, "work, own, spare")
    entry = msgspec.structs.replace(project.manifest.agents["a"], harnesses=None)
    manifest = msgspec.structs.replace(project.manifest, agents={"a": entry})
    worker = msgspec.structs.replace(project, manifest=manifest, workers={"a": tmp_path})
    assert agent_routes.find_routes(worker, "a") == (Route("claude-code", "work"),)
    agent_routes.check_accounts(worker, "a")


def test_an_account_replaces_keys(tmp_path):
    """The CLI would prefer a key to the login in the folder; other variables stay."""
    project, claude = make(tmp_path, folder="/srv/work"), HARNESSES["claude-code"]
    given = agent_routes.select_account(project, "a", claude, OURS)
    assert given["CLAUDE_CONFIG_DIR"] == "/srv/work"
    assert not {"ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_BEDROCK"} & given.keys()
    assert given["ANTHROPIC_BASE_URL"] == "u"
    codex = HARNESSES["codex"]
    assert agent_routes.select_account(project, "a", codex, OURS) == OURS


def test_a_key_in_the_environment_of_the_manifest_stays(tmp_path, monkeypatch):
    """The operator named it for this agent."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "t")
    text = TEXT.format(named="work", folder="~/work", tools="[Bash]")
    text = text.replace(
        "    command:", "    env: {ANTHROPIC_API_KEY: $ANTHROPIC_API_KEY}\n    command:"
    )
    variables = make_environment(make_project(make(tmp_path).path, text), "a").variables
    assert variables["ANTHROPIC_API_KEY"] == "k"
    assert "CLAUDE_CODE_OAUTH_TOKEN" not in variables


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("work, gone", "there is no account named 'gone'"),
        ("work, spare", "account spare belongs to gemini, which it does not use"),
    ],
)
def test_unusable_names_are_refused(tmp_path, named, words):
    """The message names the account and what to change."""
    with pytest.raises(ManifestError, match=words):
        agent_routes.check_accounts(make(tmp_path, named), "a")


def test_the_folder_must_exist_outside_the_project(tmp_path):
    """An agent must not change its own login, and a login must be there."""
    with pytest.raises(AgentError, match="does not exist") as missing:
        agent_routes.check_account_folder(make(tmp_path, folder=tmp_path / "gone"), "a")
    assert f"CLAUDE_CONFIG_DIR={tmp_path / 'gone'} claude" in (missing.value.hint or "")
    for inside in (tmp_path / "project", tmp_path / "project/login", tmp_path):
        with pytest.raises(ManifestError, match="outside the project"):
            agent_routes.check_account_folder(make(tmp_path, folder=inside), "a")
    (tmp_path / "there").mkdir()
    agent_routes.check_account_folder(make(tmp_path, folder=tmp_path / "there"), "a")


def test_a_later_route_that_cannot_enforce_its_persona_prevents_the_start(tmp_path):
    """The reason is that of a start with this route alone, with the line of its persona."""
    project = make(tmp_path, tools='["Bash(git *)"]')
    (error,) = find_obstacles(project, "a", on_this_host=False)
    assert "Bash(git *)" in str(error)
    ((route, same),) = find_unusable_routes(project, "a", on_this_host=False)
    assert (route, str(same)) == (Route("codex"), str(error))
    assert not list(find_obstacles(make(tmp_path), "a", on_this_host=False))


def test_a_missing_program_of_a_later_route_does_not_prevent_the_start(tmp_path):
    """It can be installed while the agent works on the first route."""
    for login in ("work", "own"):
        (tmp_path / login).mkdir()
    text = TEXT.format(named="work", folder=tmp_path / "work", tools="[Bash]")
    text = text.replace('other, command: ["sh"]', 'other, command: ["no-such-program"]')
    project = make_project(make(tmp_path).path, text)
    assert not list(find_obstacles(project, "a"))
    assert [str(route) for route, _ in find_unusable_routes(project, "a")] == ["codex"]


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("claude-code", "`harness:` lists claude-code twice"),
        ("{use: claude, persona: p}", "`harness:` lists claude-code twice"),
        ("codx", "there is no harness named 'codx'"),
        ("{use: codex, persona: x}", "there is no persona named 'x'"),
    ],
)
def test_an_error_in_a_list_names_the_line_of_its_item(tmp_path, item, words):
    """The first error is that of the item, and not of the agent."""
    listed = f"version: 1\nagents:\n  a:\n    harness:\n    - claude-code\n    - {item}\n"
    project = make_project(make(tmp_path).path, f"{listed}    persona: p\npersonas: {{p: {{}}}}\n")
    error = next(find_obstacles(project, "a", on_this_host=False))
    assert f"rekindle.yaml:6: agent a: {words}" in str(error)


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("work, same", "accounts work and same have the same folder"),
        ("work, own, own", "account own is listed twice"),
    ],
)
def test_two_accounts_with_the_same_login_are_refused(tmp_path, named, words):
    """A limit of one is the limit of the other."""
    (tmp_path / "link").symlink_to(tmp_path / "work")
    text = TEXT.format(named=named, folder=tmp_path / "work", tools="[Bash]")
    text = text.replace(
        "accounts:\n  work",
        f"accounts:\n  same: {{harness: claude, config_dir: {tmp_path}/link}}\n  work",
    )
    with pytest.raises(ManifestError, match=words):
        agent_routes.check_accounts(make_project(make(tmp_path).path, text), "a")


def test_notes_tell_what_a_list_does_not_do(tmp_path):
    """A second account needs a setting, and two CLIs have no model in common."""
    text = TEXT.format(named="work, own", folder="~/work", tools="[Bash]")
    text = text.replace("switch: true", "switch: false").replace("persona: other, ", "")
    project = make_project(make(tmp_path).path, f"{text}  default: {{model: opus}}\n")
    notes = " ".join(note.words for note in find_notes(project, "a"))
    assert "only the first is used, not own" in notes
    assert "claude-code, codex all get the model opus" in notes
    assert not list(find_notes(make(tmp_path), "a"))
