"""`rekindle hooks`: its changes in a person's settings, in a temporary home."""

import hashlib
import importlib.util
import json
import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from conftest import put_clis_on_path
from rekindle.documents.hooks import hook_settings
from rekindle.errors import StoreError
from rekindle.flows.hooks import settings_file
from rekindle.formats import json_codec
from rekindle.harnesses.codex import codex_hooks
from rekindle.system.files import (
    bytecode,
    durable_files,
    hook_program,
)
from rekindle.wiring.access.trust_checks import forget_folder

MINE = """\
{
    "permissions": {"allow": ["Bash(ls:*)"]},
    "hooks": {
        "PostToolUse": [
            {"matcher": "Edit", "hooks": [{"type": "command", "command": "make größe"}]}
        ]
    },
    "model": "opus"
}"""
FILES = {
    "local": "project/.claude/settings.local.json",
    "project": "project/.claude/settings.json",
    "user": "home/.claude/settings.json",
}
OLD_PROGRAMS = {
    "local": "project/.rekindle/hook.pyc",
    "project": "project/.rekindle/hook.pyc",
    "user": "home/.local/share/rekindle/hook.pyc",
}


@pytest.fixture
def root(tmp_path, tmp_path_factory, monkeypatch):
    """Create a home and a project, without anything of this machine."""
    put_clis_on_path(tmp_path_factory.mktemp("clis"), monkeypatch)
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in (
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "GEMINI_CLI_HOME",
        "XDG_DATA_HOME",
        "REKINDLE_AGENT",
    ):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def rekindle(root, rekindle):
    """Return a function that runs commands in a project with one agent."""
    assert rekindle("init", "--yes", "--agent", "trades")[0] == 0
    (root / "project/PROMPT.md").write_text("Ship it.\n")
    return rekindle


@pytest.fixture(params=FILES)
def level(request):
    """Yield each place where hooks can be installed."""
    return request.param


def written(root, level, text=MINE):
    path = root / FILES[level]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def commands(path):
    return [one.command for one in hook_settings.find_installed(path.read_text(), "x")]


def states(rekindle):
    code, out, _ = rekindle("hooks", "status", "--json")
    return code, {one["level"]: one["state"] for one in msgspec.json.decode(out)["hooks"]}


def test_uninstalling_restores_the_file(rekindle, root, level):
    """After installing twice and uninstalling, every byte and the mode are back."""
    path = written(root, level)
    path.chmod(0o640)
    code, out, _ = rekindle("hooks", "install", "--for", level)
    assert (code, "installed in" in out, "Next: start `claude`" in out) == (0, True, True)
    once = path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    line = ["statusLine"] if level == "user" and "statusLine" not in MINE else []
    assert list(json.loads(once)) == [*json.loads(MINE), *line]
    assert all(
        hook["timeout"] > 0
        for entries in json.loads(once)["hooks"].values()
        for entry in entries
        for hook in entry["hooks"]
        if hook_program.find_hook_path().name in hook["command"]
    )
    assert "already installed" in rekindle("hooks", "install", "--for", level)[1]
    assert path.read_text() == once
    assert "removed from" in rekindle("hooks", "uninstall", "--for", level)[1]
    assert path.read_text() == MINE
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert not list((root / OLD_PROGRAMS[level]).parent.glob("hook*"))
    assert "Nothing to do" in rekindle("hooks", "uninstall", "--for", level)[1]


def test_a_file_of_our_own_is_removed_again(rekindle, root, level):
    """Without settings before, there are none afterwards, and no folder for them."""
    path = root / FILES[level]
    assert rekindle("hooks", "install", "--for", level)[0] == 0
    assert commands(path)
    assert "contained nothing else" in rekindle("hooks", "uninstall", "--for", level)[1]
    assert not path.parent.exists()


@pytest.mark.parametrize("text", ["", "{}", "{}\n", '{"hooks": {}}', "\ufeff{ }\r\n"])
def test_an_empty_file_comes_back(rekindle, root, text):
    """An existing empty file stays, and stays empty."""
    path = written(root, "local")
    path.write_bytes(text.encode())
    rekindle("hooks", "install")
    assert commands(path)
    rekindle("hooks", "uninstall")
    assert path.read_bytes() == text.encode()


def test_the_user_s_status_line_is_set_only_if_there_is_none(rekindle, root):
    """Another one stays; ours is removed with the hooks, also after other changes."""
    path = written(root, "user")
    path.write_text('{"statusLine": {"type": "command", "command": "date"}}\n')
    rekindle("hooks", "install", "--for", "user")
    assert json.loads(path.read_text())["statusLine"]["command"] == "date"
    rekindle("hooks", "uninstall", "--for", "user")
    path.write_text('{"model": "m"}\n')
    assert "rekindle statusline" in rekindle("hooks", "install", "--for", "user")[1]
    settings = json.loads(path.read_text())
    assert settings["statusLine"]["command"].endswith(" -I -m rekindle statusline")
    path.write_text(json.dumps(settings | {"theme": "dark"}))
    rekindle("hooks", "uninstall", "--for", "user")
    assert json.loads(path.read_text()) == {"model": "m", "theme": "dark"}


def test_later_changes_of_others_stay(rekindle, root, level):
    """A file edited after installing keeps the edit, and loses only our entries."""
    path = written(root, level)
    rekindle("hooks", "install", "--for", level)
    path.write_text(path.read_text().replace('"opus"', '"haiku"'))
    assert "already installed" in rekindle("hooks", "install", "--for", level)[1]
    rekindle("hooks", "uninstall", "--for", level)
    assert path.read_text() == MINE.replace('"opus"', '"haiku"')


def test_a_file_of_our_own_that_others_use_stays(rekindle, root):
    """Settings that we created and another tool extended are not removed."""
    path = root / FILES["local"]
    rekindle("hooks", "install")
    path.write_text(json.dumps({"model": "opus", **json.loads(path.read_text())}, indent=2))
    rekindle("hooks", "uninstall")
    assert path.read_text() == '{\n  "model": "opus"\n}'


def test_without_its_record_only_our_entries_go(rekindle, root):
    """If the record in .rekindle is gone, our entries are still found one by one."""
    path = written(root, "local")
    rekindle("hooks", "install")
    for record in (root / "project/.rekindle").glob("hooks-*"):
        record.unlink()
    rekindle("hooks", "uninstall")
    assert path.read_text() == MINE


def test_an_older_install_is_replaced(rekindle, root):
    """Entries of another interpreter and place are replaced by current ones, each once."""
    path = written(root, "local")
    rekindle("hooks", "install")
    today = path.read_text()
    path.write_text(today.replace(sys.executable, "/gone/python"))
    assert states(rekindle) == (
        8,
        {"local": "outdated", "project": "not installed", "user": "not installed"},
    )
    rekindle("hooks", "install")
    assert path.read_text() == today
    assert states(rekindle)[0] == 0


def test_the_command_is_exactly_ours(rekindle, root, level):
    """It has this interpreter, isolated, the compiled hook, our words, and the agent's folder."""
    rekindle("hooks", "install", "--for", level)
    line = json.loads((root / FILES[level]).read_text())["hooks"]["SessionEnd"][0]["hooks"][0]
    words = shlex.split(line["command"].partition(" || ")[0])
    folder = [] if level == "user" else [str(root / "project/.rekindle/agents/trades")]
    program = str(hook_program.find_hook_path())
    assert words == [sys.executable, "-I", "-S", program, "claude-code", "SessionEnd", *folder]
    assert stat.S_IMODE(Path(program).stat().st_mode) == 0o600


def test_an_installed_hook_runs(rekindle, root, level):
    """The command in the settings, started as it is, leaves its record in the agent's inbox."""
    rekindle("hooks", "install", "--for", level)
    hooks = json.loads((root / FILES[level]).read_text())["hooks"]
    payload = {"session_id": "s-1", "tool_name": "Bash", "tool_use_id": "toolu_1"}
    ended = subprocess.run(
        ["sh", "-c", hooks["PostToolUse"][0]["hooks"][0]["command"]],
        input=json.dumps(payload).encode(),
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
    rekindle("doctor", "--fix")
    assert '"heartbeat"' in rekindle("events", "--json")[1]


def test_a_hook_whose_program_is_gone_blocks_nothing(rekindle, root):
    """Exit code 2 would block every prompt: a removed .rekindle must end with 0."""
    rekindle("hooks", "install")
    hook_program.find_hook_path().unlink()
    hooks = json.loads((root / FILES["local"]).read_text())["hooks"]
    for entries in hooks.values():
        command = entries[0]["hooks"][0]["command"]
        assert (
            subprocess.run(
                ["sh", "-c", command],
                stderr=subprocess.DEVNULL,
                check=False,
                stdin=subprocess.DEVNULL,
            ).returncode
            == 0
        )


def _install_in_workspace(path, root, level):
    """Write settings that name a program in the workspace."""
    old = root / OLD_PROGRAMS[level]
    old.write_bytes(hook_program.compile_hook())
    text = path.read_text().replace(str(hook_program.find_hook_path()), str(old))
    (record,) = old.parent.glob("hooks-*.json")
    kept = json.loads(record.read_text())
    record.write_text(json.dumps({**kept, "written": json_codec.hash_bytes(text.encode())}))
    path.write_text(text)


def test_a_program_in_the_workspace_is_named_and_replaced(rekindle, root, level):
    """Such hooks are outdated; installing again moves the program out."""
    path = written(root, level)
    rekindle("hooks", "install", "--for", level)
    _install_in_workspace(path, root, level)
    code, out, _ = rekindle("hooks", "status")
    assert (code, f"{level}: outdated" in out, "an agent could change it" in out) == (8, True, True)
    assert "an agent could change it" in rekindle("doctor")[1]
    assert rekindle("hooks", "install", "--for", level)[0] == 0
    assert {one.program for one in commands(path)} == {str(hook_program.find_hook_path())}
    assert states(rekindle)[0] == 0
    assert rekindle("hooks", "uninstall", "--for", level)[0] == 0
    assert path.read_text() == MINE


def test_uninstalling_hooks_whose_program_is_in_the_workspace(rekindle, root, level):
    """The old bytes are restored."""
    path = written(root, level)
    rekindle("hooks", "install", "--for", level)
    _install_in_workspace(path, root, level)
    assert rekindle("hooks", "uninstall", "--for", level)[0] == 0
    assert path.read_text() == MINE


def test_a_planted_program_with_a_genuine_header_is_not_used(rekindle, root):
    """A cloned project brings .rekindle/hook.pyc: its header says nothing about the rest."""
    planted = root / OLD_PROGRAMS["local"]
    canary = root / "planted"
    source = f"open({str(canary)!r}, 'w')".encode()
    planted.write_bytes(
        hook_program.compile_hook()[:16] + bytecode.compile_program(source, "planted.py")[16:]
    )
    rekindle("hooks", "install")
    for entries in json.loads((root / FILES["local"]).read_text())["hooks"].values():
        subprocess.run(
            ["sh", "-c", entries[0]["hooks"][0]["command"]], input=b"{}", check=True, timeout=30
        )
    assert not canary.exists()


def test_a_forged_record_puts_nothing_into_the_settings(rekindle, root):
    """The record is in the workspace, so an agent could claim any text to be the earlier one."""
    path = written(root, "local")
    rekindle("hooks", "install")
    (record,) = (root / "project/.rekindle").glob("hooks-*.json")
    kept = json.loads(record.read_text())
    forged = MINE.replace("make größe", "touch /forged")
    record.write_text(json.dumps({**kept, "before": forged}))
    rekindle("hooks", "uninstall")
    assert path.read_text() == MINE


def _no_program(root):
    hook_program.find_hook_path().unlink()


def _one_byte(root):
    path = hook_program.find_hook_path()
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def _another_version(root):
    data = hook_program.compile_hook() + b"1"
    name = f"hook-{hashlib.sha256(data).hexdigest()[:32]}.pyc"
    program = hook_program.find_hook_path().with_name(name)
    program.write_bytes(data)
    path = root / FILES["local"]
    path.write_text(path.read_text().replace(str(hook_program.find_hook_path()), str(program)))


def _no_agent(root):
    (root / "project/.rekindle/agents/trades").rename(root / "elsewhere")


def _no_event(root):
    path = root / FILES["local"]
    value = json.loads(path.read_text())
    del value["hooks"]["SessionEnd"]
    path.write_text(json.dumps(value))


def _twice(root):
    path = root / FILES["local"]
    value = json.loads(path.read_text())
    value["hooks"]["SessionEnd"] *= 2
    path.write_text(json.dumps(value))


@pytest.mark.parametrize(
    ("harm", "state", "said"),
    [
        (_no_program, "outdated", "is missing"),
        (_one_byte, "outdated", "was changed"),
        (_another_version, "outdated", "another version of Rekindle"),
        (_no_agent, "outdated", "agent's folder"),
        (_no_event, "partly", "no hook for SessionEnd"),
        (_twice, "outdated", "twice"),
    ],
)
def test_status_and_doctor_name_what_is_broken_and_fix_it(rekindle, root, harm, state, said):
    """The command after the arrow fixes it, and everything is well then."""
    rekindle("hooks", "install")
    assert states(rekindle)[1]["local"] == "installed"
    harm(root)
    code, out, _ = rekindle("hooks", "status")
    assert (code, f"local: {state}" in out, said in out) == (8, True, True)
    assert said in rekindle("doctor")[1]
    code, out, _ = rekindle("hooks", "status", "--json")
    fix = shlex.split(msgspec.json.decode(out)["hooks"][0]["fix"])
    assert fix[0] == "rekindle"
    assert rekindle(*fix[1:])[0] == 0
    assert states(rekindle)[1]["local"] == "installed"


def test_hooks_that_are_switched_off_are_named(rekindle, root):
    """With disableAllHooks no hook runs, however well it is installed."""
    written(root, "local", '{"disableAllHooks": true}')
    rekindle("hooks", "install")
    code, out, _ = rekindle("hooks", "status")
    assert (code, "disableAllHooks" in out) == (8, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n "a": 1\n "b": 2}', "line 3"),
        ('{"a": 1, "a": 2}', "'a' twice"),
        ('{"hooks": []}', "hooks should be an object"),
        ('{"hooks": {"SessionEnd": "x"}}', "hooks.SessionEnd should be an array"),
    ],
)
def test_settings_that_cannot_be_merged_are_left_alone(rekindle, root, level, text, said):
    """The error names the place; the file keeps its bytes, and no other file is left."""
    path = written(root, level, text)
    code, _, err = rekindle("hooks", "install", "--for", level)
    assert (code, said in err, str(path) in err) == (4, True, True)
    assert path.read_text() == text
    assert os.listdir(path.parent) == [path.name]  # noqa: PTH208 - names are what counts


def test_bytes_that_are_not_text_are_refused(rekindle, root):
    """Any content gives a clear error."""
    path = written(root, "local")
    path.write_bytes(b'{"a": "\xff"}')
    for command in ("install", "uninstall"):
        code, _, err = rekindle("hooks", command)
        assert (code, "UTF-8" in err) == (4, True)
    assert states(rekindle)[0] == 8
    assert path.read_bytes() == b'{"a": "\xff"}'


def test_settings_that_are_a_link_stay_one(rekindle, root, level):
    """The target of the link, such as a dotfile, is changed and changed back."""
    target = root / ("dotfiles.json" if level == "user" else "project/dotfiles.json")
    target.write_text(MINE)
    path = root / FILES[level]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    rekindle("hooks", "install", "--for", level)
    assert path.is_symlink()
    assert commands(target)
    rekindle("hooks", "uninstall", "--for", level)
    assert path.is_symlink()
    assert target.read_text() == MINE


@pytest.mark.parametrize("linked", ["file", "missing file", "folder", "missing folder"])
@pytest.mark.parametrize("level", ["local", "project"])
def test_settings_that_lead_outside_the_project_are_refused(rekindle, root, level, linked):
    """An agent or a cloned repository could have made the link to the user's own settings."""
    path, outside = root / FILES[level], root / "outside"
    if "missing" not in linked:
        outside.mkdir()
        (outside / path.name).write_text(MINE)
    if "folder" in linked:
        path.parent.symlink_to(outside)
    else:
        path.parent.mkdir()
        path.symlink_to(outside / path.name)
    code, _, err = rekindle("hooks", "install", "--for", level)
    assert (code, str(path) in err, "outside the project" in err) == (5, True, True)
    if "missing" in linked:
        assert not outside.exists()
    else:
        assert [one.read_text() for one in outside.iterdir()] == [MINE]


@pytest.mark.parametrize(
    ("module", "step"),
    [
        (settings_file, "write_settings"),
        (durable_files, "replace_file"),
        (settings_file, "remove_settings"),
        (durable_files, "remove_file"),
    ],
)
def test_a_link_out_that_appears_before_the_change_is_refused(
    rekindle, root, monkeypatch, module, step
):
    """A process of the agent exchanges `.claude` for a link after the settings were checked."""
    path, outside = root / FILES["project"], root / "outside"
    command = "uninstall" if "remove" in step else "install"
    if command == "uninstall":
        rekindle("hooks", "install", "--for", "project")
    outside.mkdir()
    (outside / path.name).write_text(MINE)
    change, swapped = getattr(module, step), []

    def swap(at, *args, **options):
        if not swapped and (module is settings_file or at.name == path.name):
            swapped.append(path.parent.rename(root / "moved"))
            path.parent.symlink_to(outside)
        return change(at, *args, **options)

    monkeypatch.setattr(module, step, swap)
    assert rekindle("hooks", command, "--for", "project")[0] == 5
    assert swapped
    assert [one.read_text() for one in outside.iterdir()] == [MINE]


def test_hooks_behind_a_link_out_of_the_project_stay(rekindle, root):
    """Neither a link nor a planted record makes `uninstall` and `forget` edit the user's file."""
    rekindle("hooks", "install", "--for", "user")
    target, path = root / FILES["user"], root / FILES["project"]
    before = target.read_bytes()
    path.parent.mkdir()
    path.symlink_to(target)
    record = root / "project/.rekindle/hooks-claude-code-project.json"
    record.write_text('{"v":1,"before":"","existed":false,"written":"x","made_folder":false}')
    code, _, err = rekindle("hooks", "uninstall", "--for", "project")
    assert (code, str(path) in err) == (5, True)
    code, out, _ = rekindle("forget", ".", "--yes")
    assert (code, f"! not removed: hooks in {path}: " in out) == (0, True)
    assert target.read_bytes() == before


@pytest.mark.parametrize(("accepted", "kept"), [(False, True), (True, False)])
def test_a_folder_outside_counts_only_if_it_was_accepted(rekindle, root, accepted, kept):
    """A cloned manifest may name any folder of the user as `dir:`."""
    other = root / "other"
    other.mkdir()
    (root / "project/rekindle.yaml").write_text(
        f"version: 1\nagents:\n  eve: {{harness: claude-code, dir: {other}}}\n"
    )
    assert rekindle("hooks", "install", "--for", "project")[0] == 0
    path = other / ".claude/settings.json"
    assert commands(path)
    if not accepted:
        forget_folder(root / "project")
        code, _, err = rekindle("hooks", "uninstall", "--for", "project")
        assert (code, str(other) in err) == (3, True)
        assert rekindle("hooks", "uninstall", "--all")[0] == 0
    assert rekindle("forget", ".", "--yes")[0] == 0
    assert path.exists() is kept


def test_a_link_in_a_circle_is_refused(rekindle, root):
    """The error names it, and nothing follows it."""
    path = root / FILES["local"]
    path.parent.mkdir()
    path.symlink_to(path)
    code, _, err = rekindle("hooks", "install")
    assert (code, "Traceback" in err) == (5, False)


@pytest.mark.parametrize(
    "refused", ["settings.local.json", "the program", "hooks-claude-code-local.json"]
)
def test_a_disk_that_refuses_leaves_the_old_file(rekindle, root, monkeypatch, refused):
    """At any write there is a typed error, the settings stay, and no file is left behind."""
    path = written(root, "local")
    real = durable_files.replace_file
    hook_program.find_hook_path().unlink(missing_ok=True)
    name = hook_program.find_hook_path().name if refused == "the program" else refused

    def full(to, data, **options):
        if to.name == name:
            raise StoreError(str(to), "No space left on device", hint="free some space")
        real(to, data, **options)

    monkeypatch.setattr("rekindle.system.files.durable_files.replace_file", full)
    code, _, err = rekindle("hooks", "install")
    assert (code, "No space left" in err) == (5, True)
    assert path.read_text() == MINE
    monkeypatch.undo()
    monkeypatch.chdir(root / "project")
    monkeypatch.setenv("HOME", str(root / "home"))
    assert rekindle("hooks", "install")[0] == 0
    assert rekindle("hooks", "uninstall")[0] == 0
    assert path.read_text() == MINE


def test_a_read_only_file_is_respected(rekindle, root, monkeypatch):
    """A read-only file stays as it is, even if its folder would let us replace it."""
    path = written(root, "local")
    monkeypatch.setattr(settings_file.os, "access", lambda place, how: False)  # for root too
    code, _, err = rekindle("hooks", "install")
    assert (code, "read-only" in err, "chmod u+w" in err) == (5, True, True)
    assert path.read_text() == MINE


def test_other_places_of_the_user_are_honoured(rekindle, root, monkeypatch):
    """CLAUDE_CONFIG_DIR and XDG_DATA_HOME decide; two configurations are kept apart."""
    monkeypatch.setenv("XDG_DATA_HOME", str(root / "data"))
    rekindle("hooks", "install", "--for", "user")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(root / "other/config"))
    path = root / "other/config/settings.json"
    path.parent.mkdir(parents=True)
    path.write_text("{ }")
    rekindle("hooks", "install", "--for", "user")
    assert {one.program for one in commands(path)} == {str(hook_program.find_hook_path())}
    assert len(list((root / "data/rekindle").glob("hooks-*.json"))) == 2
    rekindle("hooks", "uninstall", "--for", "user")
    assert path.read_text() == "{ }"
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    assert states(rekindle)[1]["user"] == "installed"
    rekindle("hooks", "uninstall", "--for", "user")
    assert not (root / "home/.claude").exists()
    assert not list((root / "data/rekindle").glob("hook*"))


def test_with_several_agents_one_must_be_named(rekindle, root):
    """With two agents, --agent names the folder in the hooks; hooks for the user name none."""
    rekindle("init", "--yes", "--agent", "second")
    code, _, err = rekindle("hooks", "install")
    assert (code, "--agent" in err) == (2, True)
    assert rekindle("hooks", "install", "--agent", "second")[0] == 0
    assert {one.folder for one in commands(root / FILES["local"])} == {
        str(root / "project/.rekindle/agents/second")
    }
    assert rekindle("hooks", "install", "--for", "user", "--agent", "second")[0] == 2


def test_outside_of_a_project_only_the_user_s_place_exists(rekindle, root, monkeypatch):
    """Status shows one level, and installing for a project names what is missing."""
    monkeypatch.chdir(root / "home")
    assert states(rekindle) == (0, {"user": "not installed"})
    assert rekindle("hooks", "install")[0] == 3
    assert rekindle("hooks", "install", "--for", "user")[0] == 0
    assert states(rekindle) == (0, {"user": "installed"})


def test_many_at_once_install_once(rekindle, root):
    """Eight parallel installs leave the result of one."""
    path = written(root, "local")
    argv = [sys.executable, "-m", "rekindle", "hooks", "install"]
    running = [subprocess.Popen(argv, stdout=subprocess.DEVNULL) for _ in range(8)]
    assert [one.wait(60) for one in running] == [0] * 8
    found = [(one.program, one.event) for one in commands(path)]
    assert len(found) == len(set(found)) == 10
    rekindle("hooks", "uninstall")
    assert path.read_text() == MINE


def test_no_source_is_checked(rekindle, root):
    """The compiled hook has an unchecked hash, for this Python."""
    rekindle("hooks", "install")
    data = hook_program.find_hook_path().read_bytes()
    assert data[:8] == importlib.util.MAGIC_NUMBER + b"\x01\x00\x00\x00"


# Codex

ITS_FILES = {"project": "project/.codex/hooks.json", "user": "home/.codex/hooks.json"}


@pytest.fixture
def with_codex(rekindle, root):
    """Create a project whose only agent works with Codex."""
    manifest = root / "project/rekindle.yaml"
    manifest.write_text(manifest.read_text().replace("claude-code", "codex"))
    return rekindle


def trusting(root, *, project="trusted"):
    """Approve every hook and trust the project, as a person does."""
    lines = [f'[projects."{root / "project"}"]', f'trust_level = "{project}"']
    for path in map(root.joinpath, ITS_FILES.values()):
        if path.exists():
            state = codex_hooks.make_trust_state(json.loads(path.read_text())["hooks"], str(path))
            for key, value in state.items():
                lines += [f'[hooks.state."{key}"]', f'trusted_hash = "{value["trusted_hash"]}"']
    config = root / "home/.codex/config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text("\n".join(lines))
    return config


@pytest.mark.parametrize(
    ("edit", "said", "fix"),
    [
        (lambda text: "", "does not trust this project", "trust them when it asks"),
        (lambda text: text.split("[hooks")[0], "does not trust these hooks", "start `codex` here"),
        (lambda text: text.replace("sha256:", "sha256:0"), "does not trust these hooks", "/hooks"),
        (lambda text: f"{text}\nenabled = false", "disabled in Codex", "/hooks"),
        (lambda text: f"{text}\n[features]\nhooks = false", "disables hooks", "[features]"),
        (lambda text: "not = [toml", "does not trust this project", "trust them when it asks"),
    ],
)
def test_hooks_that_codex_does_not_run_are_named(with_codex, root, edit, said, fix):
    """Status and doctor name every obstacle, and the next step."""
    with_codex("hooks", "install")
    config = trusting(root)
    assert with_codex("hooks", "status")[0] == 0
    config.write_text(edit(config.read_text()))
    code, out, _ = with_codex("hooks", "status")
    assert (code, "project: disabled" in out, said in out, fix in out) == (8, True, True, True)
    assert said in with_codex("doctor")[1]


def test_a_person_s_own_hooks_for_codex_need_no_trusted_project(with_codex, root):
    """They run in any folder once trusted; an untrusted hook of another tool is not reported."""
    path = root / ITS_FILES["user"]
    path.parent.mkdir()
    path.write_text(MINE)
    with_codex("hooks", "install", "--for", "user")
    config = trusting(root, project="untrusted")
    strangers = [line for line in config.read_text().splitlines() if "post_tool_use:0:0" in line]
    config.write_text(config.read_text().replace(strangers[0], "[stranger]"))
    assert states(with_codex)[1]["user"] == "installed"


GEMINI = {"user": "home/.gemini/settings.json", "project": "project/.gemini/settings.json"}
TRUSTED = "home/.gemini/trustedFolders.json"


@pytest.fixture
def with_gemini(rekindle, root):
    """Create a project whose only agent works with Gemini CLI, in a trusted folder."""
    manifest = root / "project/rekindle.yaml"
    manifest.write_text(manifest.read_text().replace("claude-code", "gemini"))
    (root / "home/.gemini").mkdir()
    (root / TRUSTED).write_text(json.dumps({str(root / "project"): "TRUST_FOLDER"}))
    return rekindle


def changed(path, **more):
    """Change a person's settings."""
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(before | more))


@pytest.mark.parametrize(
    ("level", "where"), [("user", "user"), ("project", "user"), ("project", "project")]
)
def test_hooks_that_are_switched_off_for_gemini_cli_are_named(with_gemini, root, level, where):
    """The person or the project may switch off all of them or single ones."""
    with_gemini("hooks", "install", "--for", level)
    assert states(with_gemini)[1][level] == "installed"
    first, *_ = hook_settings.find_installed((root / GEMINI[level]).read_text(), "x")
    for said, switch in (
        ("enabled is false", {"enabled": False}),
        ("disabled", {"disabled": [first.hook["command"]]}),
    ):
        changed(root / GEMINI[where], hooksConfig=switch)
        code, out, _ = with_gemini("hooks", "status")
        assert (code, f"{level}: disabled" in out, said in out) == (8, True, True)
    changed(root / GEMINI["user"], hooksConfig={"enabled": False})
    changed(root / GEMINI[level], hooksConfig={"enabled": True, "disabled": ["another's"]})
    assert states(with_gemini)[1][level] == "installed"


@pytest.mark.parametrize(
    ("folder", "how", "state"),
    [
        ("project", "TRUST_FOLDER", "installed"),
        ("project/sub", "TRUST_PARENT", "installed"),
        ("", "TRUST_FOLDER", "installed"),
        ("project", "DO_NOT_TRUST", "disabled"),
        ("proj", "TRUST_FOLDER", "disabled"),
    ],
)
def test_a_folder_that_gemini_cli_does_not_trust(with_gemini, root, folder, how, state):
    """A project's hooks do not run there, unless the person has disabled folder trust."""
    with_gemini("hooks", "install")
    (root / TRUSTED).write_text(json.dumps({str(root / folder): how}))
    code, out, _ = with_gemini("hooks", "status")
    assert (code == 8, f"project: {state}" in out) == (state == "disabled", True)
    assert ("start `gemini`" in out) == (state == "disabled")
    changed(root / GEMINI["user"], security={"folderTrust": {"enabled": False}})
    assert states(with_gemini)[1]["project"] == "installed"


@pytest.mark.parametrize("level", GEMINI)
def test_settings_of_gemini_cli_may_have_comments(with_gemini, root, level):
    """They stay in place; commented-out settings do not count, the others do."""
    path = root / GEMINI[level]
    path.parent.mkdir(exist_ok=True)
    text = '{\n  // "hooksConfig": {"enabled": false},\n  "theme": "dark", // not light\n}\n'
    path.write_text(text)
    trusted = root / TRUSTED
    trusted.write_text(f"// mine\n{trusted.read_text()}")
    code, out, err = with_gemini("hooks", "install", "--for", level)
    assert (code, "hooks installed" in out) == (0, True), err
    assert states(with_gemini)[1][level] == "installed"
    assert path.read_text().startswith(text.partition(", // not")[0])
    installed = path.read_text()
    path.write_text(installed.replace("// ", "", 1))
    assert states(with_gemini)[1][level] == "disabled"
    path.write_text(installed + "// seen\n")
    assert with_gemini("hooks", "uninstall", "--for", level)[0] == 0
    assert path.read_text() == text + "// seen\n"
    path.write_text(text)
    with_gemini("hooks", "install", "--for", level)
    assert with_gemini("hooks", "uninstall", "--for", level)[0] == 0
    assert path.read_text() == text


def test_a_moved_home_of_gemini_cli(with_gemini, root, monkeypatch):
    """$GEMINI_CLI_HOME is the home with its folder."""
    monkeypatch.setenv("GEMINI_CLI_HOME", str(root / "elsewhere"))
    assert with_gemini("hooks", "install", "--for", "user")[0] == 0
    assert commands(root / "elsewhere/.gemini/settings.json")
    assert states(with_gemini)[1]["user"] == "installed"
    assert not (root / GEMINI["user"]).exists()


@pytest.mark.parametrize("level", ITS_FILES)
def test_hooks_of_codex_are_in_a_file_of_their_own(with_codex, root, level):
    """They follow the person's own, with a hint on trust; uninstalling restores the file."""
    path = root / ITS_FILES[level]
    path.parent.mkdir()
    path.write_text(MINE)
    how = ("--for", level)
    code, out, _ = with_codex("hooks", "install", *how)
    assert (code, "trust them when it asks" in out, "Next: start `codex`" in out) == (0, True, True)
    assert {one.harness for one in commands(path)} == {"codex"}
    assert states(with_codex) == (
        8,
        {**dict.fromkeys(ITS_FILES, "not installed"), level: "disabled"},
    )
    trusting(root)
    assert states(with_codex)[1][level] == "installed"
    assert with_codex("hooks", "install", *how)[1].startswith("✓ hooks were already installed")
    assert with_codex("hooks", "uninstall", *how)[0] == 0
    assert path.read_text() == MINE
    assert not list(root.glob("*/.claude"))


def test_the_agent_s_own_cli_is_the_default(with_codex, root):
    """The project's file is used, because the CLI has none for one person alone."""
    assert with_codex("hooks", "install")[0] == 0
    path = root / ITS_FILES["project"]
    assert len(commands(path)) == 9
    trusting(root)
    assert states(with_codex) == (0, {"project": "installed", "user": "not installed"})
    assert with_codex("hooks", "uninstall")[0] == 0
    assert not path.parent.exists()
    code, _, err = with_codex("hooks", "install", "--for", "local")
    assert (code, "codex has no local hooks" in err) == (2, True)


def test_a_moved_home_of_codex(with_codex, root, monkeypatch):
    """$CODEX_HOME is the place of the user's hooks."""
    monkeypatch.setenv("CODEX_HOME", str(root / "elsewhere"))
    assert with_codex("hooks", "install", "--for", "user")[0] == 0
    assert commands(root / "elsewhere/hooks.json")


def test_agents_of_two_clis(with_codex, root):
    """With two CLIs the user must choose one; a repair touches the chosen CLI only."""
    assert with_codex("init", "--agent", "other", "--harness", "claude-code")[0] == 0
    code, _, err = with_codex("hooks", "uninstall")
    assert (code, "which CLI's hooks" in err) == (2, True)
    for name in ("trades", "other"):
        assert with_codex("hooks", "install", "--for", "project", "--agent", name)[0] == 0
    assert (root / "project/.claude/settings.json").exists()
    path = root / ITS_FILES["project"]
    trusting(root)
    path.write_text(path.read_text().replace("SessionEnd", "SessionOver"))
    code, out, _ = with_codex("doctor", "--json")
    (problem,) = json.loads(out)["agents"][".codex"]
    assert (code, problem["broken"]) == (8, True)
    assert with_codex(*shlex.split(problem["fix"])[1:])[0] == 0
    assert with_codex("doctor")[0] == 0


def test_an_agent_is_found_by_its_cli(with_gemini, root):
    """--harness is enough if only one of several agents uses it."""
    for name in ("other", "third"):
        assert with_gemini("init", "--agent", name, "--harness", "claude-code")[0] == 0
    assert with_gemini("hooks", "install", "--harness", "gemini")[0] == 0
    assert {one.folder for one in commands(root / GEMINI["project"])} == {
        str(root / "project/.rekindle/agents/trades")
    }
    code, _, err = with_gemini("hooks", "install", "--harness", "claude-code")
    assert (code, "which agent?" in err) == (2, True)


def test_status_names_the_cli_and_the_next_step(with_gemini, root):
    """A step that only a person can take is not shown as a command."""
    with_gemini("hooks", "install")
    assert "✓ gemini, project: installed" in with_gemini("hooks", "status")[1]
    path = root / GEMINI["project"]
    path.write_text(path.read_text().replace("SessionEnd", "SessionOver"))
    code, out, err = with_gemini("hooks", "status")
    assert (code, "gemini, project: partly" in out) == (8, True)
    assert "run the command after each →" in err
    with_gemini("hooks", "install")
    (root / TRUSTED).unlink()
    _, out, err = with_gemini("hooks", "status")
    assert "gemini, project: disabled" in out
    assert "follow the hint after each →" in err


def test_a_package_is_for_one_cli(rekindle, root):
    """The folder of another CLI is refused and left as it is; its own is renewed."""
    kinds = ("gemini", "claude-code", "codex")
    for kind in kinds:
        folder = root / f"for-{kind}"
        for _ in range(2):
            assert rekindle("hooks", "export", str(folder), "--harness", kind)[0] == 0
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for other in set(kinds) - {kind}:
            code, _, err = rekindle("hooks", "export", str(folder), "--harness", other)
            assert (code, f"contains the hooks for {kind}" in err) == (2, True)
        assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
