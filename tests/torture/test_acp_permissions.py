"""The real agents ask before they run a command, and obey the rules of a persona."""

import json

import pytest

from loopback import install
from loopback.acp_agents import AGENTS
from loopback.acp_sandbox import sandbox_of
from loopback.chat import Chat
from loopback.fixtures import installed
from loopback.model import Model
from loopback.script import Forever, Text
from rekindle.documents.launches.launch_types import LaunchSpec
from rekindle.documents.manifest import Permissions, Persona
from rekindle.harnesses.acp.acp_harness import find_settings, make_harness
from rekindle.harnesses.acp.acp_presets import PRESETS
from sampling import WHOLE

pytestmark = [pytest.mark.torture, pytest.mark.timeout(300)]

ASKING = [name for name in AGENTS if PRESETS[name].asks]
RULES = (
    ({"allowed_tools": ["Bash"]}, True),
    ({"allowed_tools": ["Read"]}, False),
    ({"allowed_tools": ["Bash"], "deny": ["Bash(touch:*)"]}, False),
    ({"allowed_tools": ["Bash(touch:*)"]}, True),
    ({"allowed_tools": ["Bash(ls:*)"]}, False),
)
"""Permissions, and whether `touch made` may run with them."""


@pytest.fixture
def chat_model(network):
    """Start a model without a script, for chat completions."""
    with Model(Chat(), network.listener) as served:
        yield served


@pytest.fixture
def play(chat_model, place, tmp_path):
    """Run commands of an agent with a persona, as the harness starts the bridge.

    `files` are written to the project after the harness has looked for settings there.
    """

    def run(name, permissions, *commands, **files):
        agent = AGENTS[name]
        if agent.node:
            installed(install.NODE)
        program, root = installed(agent.package), tmp_path / name
        sandbox = sandbox_of(agent)(program, model=chat_model, place=place, root=root)
        start = LaunchSpec(
            session="",
            scratch=str(sandbox.home),
            folder=str(sandbox.project),
            program=sandbox.argv,
            persona=Persona(permissions=permissions),
        )
        made = make_harness(name).command(start)
        for file, text in made.files.items():
            (sandbox.home / file).write_text(text)
        for file, text in files.items():
            (sandbox.project / file).write_text(text)
        chat_model.play(*map(agent.call, commands), Forever(Text("all done")))
        launched = sandbox.launch(list(made.argv), "hello", **made.environment)
        return sandbox, launched.wait(200)

    return run


@pytest.mark.parametrize(
    ("name", "number"),
    [(name, number) for name in ASKING for number in range(len(RULES))] if WHOLE else [("kimi", 2)],
)
def test_a_command_runs_only_if_the_persona_allows_it(name, number, play):
    rules, is_made = RULES[number]
    sandbox, ended = play(name, Permissions(**rules), "touch made")
    assert ended.of("decided"), ended.stdout + ended.stderr
    assert (sandbox.project / "made").exists() is is_made, ended.stdout
    # The agent leaves no settings behind, which would be refused at its next start.
    assert find_settings(str(sandbox.project), PRESETS[name].settings) == ""


WIDER = json.dumps({"agent": {"build": {"permission": {"bash": "allow"}}}})


@pytest.mark.skipif(not WHOLE, reason="takes long: only in `just torture`")
def test_settings_that_an_agent_writes_do_not_widen_its_session(play):
    """The agent reads its settings once. The next launch is refused because of them."""
    rules = Permissions(allowed_tools=["Bash(cp:*)"])
    commands = ("cp wider opencode.json", "touch made")
    sandbox, ended = play("opencode", rules, *commands, wider=WIDER)
    assert [line["decision"] for line in ended.of("decided")] == ["allow", "reject"], ended.stdout
    assert not (sandbox.project / "made").exists()
    assert find_settings(str(sandbox.project), PRESETS["opencode"].settings) != ""


@pytest.mark.skipif(not WHOLE, reason="takes long: only in `just torture`")
def test_settings_in_the_workspace_would_widen_a_persona(play):
    """This is why the harness refuses to start opencode if they exist."""
    rules = Permissions(allowed_tools=["Read"])
    sandbox, ended = play("opencode", rules, "touch made", **{"opencode.json": WIDER})
    assert (sandbox.project / "made").exists(), ended.stdout
