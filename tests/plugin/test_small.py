"""A harness is small: six members are required, and every other has a default."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from plugin.test_echo import loaded
from rekindle import config, hook, plugins, ports
from rekindle.cli.setup import doctor_command
from rekindle.documents.launches.launch_types import LaunchSpec
from rekindle.documents.launches.one_shot import OneShotQuestion
from rekindle.errors import ManifestError, PluginError, UsageError
from rekindle.ports import complete_harness
from rekindle.wiring import summarizer_setup

SIX = {"NAME", "INSTALL", "CAN", "command", "read_stream", "classify"}
PARTS = (
    ports.HarnessEnvironment,
    ports.HarnessSandbox,
    ports.HarnessHooks,
    ports.HarnessTranscripts,
    ports.HarnessHandoff,
    ports.HarnessQuestions,
)
ECHO = loaded()


def public(kind: object) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


def plugged_in(**members: object) -> plugins.Harnesses:
    """Return the harnesses of an environment whose package brings one with these members."""
    harnesses = plugins.Harnesses()
    harnesses.__dict__["_find_plugins"] = {"echo": lambda: SimpleNamespace(**members)}
    return harnesses


def test_six_members_are_required_and_the_example_has_no_other():
    """The example defines exactly the required members."""
    assert set(ports.REQUIRED_MEMBERS) == SIX
    source = ast.parse(Path(ECHO.__file__).read_text("utf-8"))
    defined = {node.name for node in source.body if isinstance(node, ast.FunctionDef)} | {
        ast.unparse(node.targets[0]) for node in source.body if isinstance(node, ast.Assign)
    }
    assert {name for name in defined if not name.startswith("_")} == SIX
    assert not public(ECHO) & set.union(*map(public, PARTS))


@pytest.mark.parametrize("lacking", sorted(SIX))
def test_a_plugin_without_one_of_the_six_is_refused(lacking):
    """The error names the missing member."""
    own = {name: getattr(ECHO, name) for name in SIX}
    assert plugged_in(**own)["echo"].NAME == "echo"
    del own[lacking]
    with pytest.raises(PluginError, match=f"has no {lacking}$"):
        plugged_in(**own)["echo"]


def test_every_other_member_has_a_default():
    """Nothing happens where a CLI has no such part; a question is refused with a hint."""
    whole = complete_harness(ECHO)
    assert (whole.PASSED_PREFIXES, whole.BLOCKED_VARIABLES, whole.HOOK_FILES) == ((), (), None)
    assert whole.hooks(("hook",), supervised=True) == {}
    assert (
        whole.find_hook_obstacle(None),
        whole.render_hook_output("x", "text"),
        whole.read_hook(None),
    ) == (None, "", None)
    assert (whole.usage(b"x", {}), whole.turn(b"x"), whole.read_transcript(b"x")) == (
        None,
        None,
        (),
    )
    assert (whole.asides("path", "id"), whole.has_prompt((), "id")) == (None, True)
    assert (whole.brake(interactive=False), whole.measure(()), whole.parse_window_sizes(())) == (
        None,
        None,
        {},
    )
    assert whole.answer([b"x"]) is None
    with pytest.raises(UsageError) as refused:
        whole.ask(OneShotQuestion(scratch="/scratch"))
    assert "adapter" in refused.value.hint
    assert set.union(*map(public, PARTS)) | SIX == {
        name for name in dir(ports.Harness) if not name.startswith("_")
    }


def test_a_class_may_take_a_part_and_change_one_member():
    """The rest of the part keeps its defaults."""

    class Measuring(ports.HarnessHandoff):
        NAME, INSTALL, CAN = ECHO.NAME, ECHO.INSTALL, ECHO.CAN
        command, read_stream, classify = map(staticmethod, (ECHO.command, ECHO.read_stream, str))

        def parse_window_sizes(self, output):
            return {"model": len([*output])}

    whole = complete_harness(Measuring())
    assert whole.parse_window_sizes([b"a", b"b"]) == {"model": 2}
    assert whole.brake(interactive=True) is None
    session = "0a1b2c3d-0000-4000-8000-000000000001"
    assert whole.command(LaunchSpec(session=session)).argv[0] == "echo-agent"


@pytest.mark.parametrize("module", [hook, doctor_command], ids=lambda one: one.__name__)
def test_the_hook_and_doctor_name_no_cli(module):
    """Their knowledge of a CLI comes from its harness."""
    names = {*plugins.BUILT_IN, *plugins.ALIASES, "claude", "codex", "gemini"} - {"command"}
    source = Path(module.__file__).read_text("utf-8")
    assert re.findall("|".join(names), source, re.IGNORECASE) == []


def test_the_program_of_each_harness_is_known():
    """`doctor` and `init` look for it; a harness without one of its own has none."""
    found = {one.NAME: plugins.find_program(one) for one in plugins.Harnesses().working()}
    assert found["claude-code"] == "claude"
    assert found["command"] == ""
    assert plugins.find_program(complete_harness(ECHO)) == "echo-agent"


def test_a_cli_that_cannot_be_asked_is_not_a_summarizer(tmp_path, monkeypatch):
    """Its own agent gets no model; as a persona's adapter it is refused with its line."""
    monkeypatch.setattr(
        summarizer_setup, "HARNESSES", plugged_in(**{name: getattr(ECHO, name) for name in SIX})
    )
    manifest = tmp_path / "rekindle.yaml"
    manifest.write_text("version: 1\nagents:\n  parrot: {harness: echo}\n")
    project = config.load_project(tmp_path)
    summarizer_setup.check_summarizer(project, "parrot")
    assert summarizer_setup.make_headless(project, None, "parrot", {}) is None
    manifest.write_text(f"{manifest.read_text()}personas:\n  summarizer: {{adapter: echo}}\n")
    with pytest.raises(ManifestError, match="cannot write summaries") as refused:
        summarizer_setup.check_summarizer(config.load_project(tmp_path), "parrot")
    assert (refused.value.line, "mechanical" in refused.value.hint) == (5, True)
