"""`rekindle service`: the unit is written, says nothing secret, and is removed again."""

import plistlib
import sys
from pathlib import Path
from random import Random

import pytest

from fakes import drawn
from rekindle.cli import main

SECRETS = {
    name: drawn(Random(name), 24)
    for name in (
        "ANTHROPIC_API_KEY",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "XDG_SECRET",
        "LC_PASSWORD",
        "XDG_COOKIE",
    )
}


@pytest.fixture
def rekindle(tmp_path, monkeypatch, capfd):
    """Run a command in a project, with its own home; return exit code, output and errors."""
    project = tmp_path / "a project, 100% $mine"
    project.mkdir()
    (project / "rekindle.yaml").write_text("version: 1\nagents: {}\n")
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("PATH", "/opt/tools:/bin")
    password = drawn(Random(1), 12)
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:{password}@proxy")
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)

    def run(*arguments):
        code = main.run(["service", *arguments])
        said = capfd.readouterr()
        for secret in (password, *SECRETS.values()):
            assert secret not in said.out + said.err
        return code, said.out, said.err

    run.secrets = (password, *SECRETS.values())
    return run


def units(tmp_path):
    return sorted(path for path in tmp_path.rglob("rekindle-*") if path.is_file())


def test_a_unit_of_systemd_is_written_and_removed(rekindle, tmp_path):
    """It is below ~/.config, with the commands that start it, for the daemon of this Python."""
    code, out, err = rekindle("install", "--kind", "systemd")
    assert code == 0, err
    [unit] = units(tmp_path)
    assert unit.parent == tmp_path / "home/.config/systemd/user"
    assert f"✓ wrote {unit}\n" in out
    assert f"systemctl --user enable --now {unit.name}\n" in out
    assert "loginctl enable-linger" in out
    text = unit.read_text()
    assert f'ExecStart="{sys.executable}" "-P" "-m" "rekindle" "daemon"\n' in text
    assert 'Environment="PATH=/opt/tools:/bin"\n' in text
    assert not any(secret in text for secret in rekindle.secrets)
    code, out, _ = rekindle("uninstall", "--kind", "systemd")
    assert code == 0
    assert out.startswith(f"✓ removed {unit}\n")
    assert f"systemctl --user stop {unit.name}" in out
    assert units(tmp_path) == []


def test_systemd_s_folder_follows_xdg_config_home(rekindle, tmp_path, monkeypatch):
    """Writing it twice leaves one unit."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    assert rekindle("install", "--kind", "systemd")[0] == 0
    assert rekindle("install", "--kind", "systemd")[0] == 0
    [unit] = units(tmp_path)
    assert unit.parent == tmp_path / "settings/systemd/user"


def test_a_property_list_of_launchd_is_written_and_removed(rekindle, tmp_path):
    """It is below ~/Library, and plistlib reads it back."""
    code, out, err = rekindle("install", "--kind", "launchd")
    assert code == 0, err
    [unit] = units(tmp_path)
    assert unit.parent == tmp_path / "home/Library/LaunchAgents"
    found = plistlib.loads(unit.read_bytes())
    assert found["ProgramArguments"] == [sys.executable, "-P", "-m", "rekindle", "daemon"]
    assert found["WorkingDirectory"] == str(tmp_path / "a project, 100% $mine")
    assert found["EnvironmentVariables"]["PATH"] == "/opt/tools:/bin"
    assert not any(secret.encode() in unit.read_bytes() for secret in rekindle.secrets)
    assert f"launchctl bootstrap gui/$(id -u) {unit}" in out
    code, out, _ = rekindle("uninstall", "--kind", "launchd")
    assert (code, units(tmp_path)) == (0, [])
    assert f"launchctl bootout gui/$(id -u)/{found['Label']}" in out


@pytest.mark.parametrize("kind", ["systemd", "launchd"])
def test_a_unit_that_is_only_printed_is_not_written(rekindle, tmp_path, kind):
    """The printed text is the text that would be written."""
    printed = rekindle("install", "--kind", kind, "--print")[1]
    assert units(tmp_path) == []
    rekindle("install", "--kind", kind)
    assert units(tmp_path)[0].read_text() == printed


def test_a_unit_that_is_not_there_cannot_be_removed(rekindle):
    """The error names the place where it was looked for."""
    code, _, err = rekindle("uninstall")
    assert code == 2
    assert "does not exist" in err
    assert "rekindle service install" in err


def test_two_projects_have_two_units(rekindle, tmp_path, monkeypatch):
    """This also holds for folders with the same name."""
    rekindle("install", "--kind", "systemd")
    other = tmp_path / "other" / "a project, 100% $mine"
    other.mkdir(parents=True)
    (other / "rekindle.yaml").write_text("version: 1\nagents: {}\n")
    monkeypatch.chdir(other)
    rekindle("install", "--kind", "systemd")
    assert len(units(tmp_path)) == 2


def test_a_variable_that_no_unit_can_hold_is_left_out(rekindle, tmp_path, monkeypatch):
    """A prompt variable with several lines or colours must not make the unit invalid."""
    monkeypatch.setenv("LC_STRANGE", "one\x1b[0m")
    monkeypatch.setenv("LC_LINES", "one\ntwo")
    code, _, err = rekindle("install", "--kind", "systemd")
    assert code == 0, err
    assert "STRANGE" not in units(tmp_path)[0].read_text()
    assert "LINES" not in units(tmp_path)[0].read_text()
    assert rekindle("uninstall", "--kind", "systemd")[0] == 0


def test_a_folder_that_no_unit_can_hold_is_refused(rekindle, tmp_path, monkeypatch):
    """A line break in its name would be a line of the unit."""
    other = tmp_path / "one\n[Service]"
    other.mkdir()
    (other / "rekindle.yaml").write_text("version: 1\nagents: {}\n")
    monkeypatch.chdir(other)
    code, _, err = rekindle("install", "--kind", "systemd")
    assert (code, "rename the folder" in err) == (2, True)
    assert units(tmp_path) == []


def test_a_timer_for_briefs_is_written_and_removed(rekindle, tmp_path):
    """It is beside the daemon's unit, at the time and in the zone of the manifest."""
    with open("rekindle.yaml", "a") as file:  # noqa: PTH123 - the folder is the current one
        file.write('runtime: {brief: {at: "06:30", zone: Europe/Berlin, on_session_end: true}}\n')
    code, out, err = rekindle("install", "--briefs", "--kind", "systemd")
    assert code == 0, err
    service, timer = units(tmp_path)
    assert timer.suffix == ".timer"
    assert service.stem == timer.stem
    assert service.stem.endswith("-briefs")
    text = service.read_text()
    assert '"-m" "rekindle" "brief" "--due"' in text
    assert "Type=oneshot" in text
    assert "Restart=" not in text
    lines = timer.read_text().splitlines()
    assert "OnCalendar=*-*-* 06:30:00 Europe/Berlin" in lines
    assert "OnCalendar=*:0/15" in lines
    assert "Persistent=true" in lines
    assert f"Next: systemctl --user enable --now {timer.name}\n" in out
    code, out, _ = rekindle("uninstall", "--briefs", "--kind", "systemd")
    assert code == 0
    assert f"systemctl --user stop {timer.name}" in out
    assert units(tmp_path) == []
    assert rekindle("uninstall", "--briefs", "--kind", "systemd")[0] == 2


def test_launchd_looks_again_and_again_whether_one_is_due(rekindle):
    code, out, err = rekindle("install", "--briefs", "--kind", "launchd", "--print")
    assert code == 0, err
    found = plistlib.loads(out.encode())
    assert found["ProgramArguments"][-2:] == ["brief", "--due"]
    assert found["StartInterval"] == 900
    assert "KeepAlive" not in found


def test_a_timer_for_never_is_refused(rekindle):
    with open("rekindle.yaml", "a") as file:  # noqa: PTH123 - as above
        file.write("runtime: {brief: {at: never}}\n")
    code, _, err = rekindle("install", "--briefs", "--kind", "systemd")
    assert code == 2
    assert "is `never`" in err


def test_a_timer_can_be_removed_after_briefs_were_switched_off(rekindle, tmp_path):
    manifest = Path("rekindle.yaml")
    before = manifest.read_text()
    assert rekindle("install", "--briefs", "--kind", "systemd")[0] == 0
    manifest.write_text(f"{before}runtime: {{brief: {{at: never}}}}\n")
    assert rekindle("install", "--briefs", "--kind", "launchd")[0] == 2
    assert rekindle("uninstall", "--briefs", "--kind", "systemd")[0] == 0
    assert units(tmp_path) == []


def test_a_timer_for_the_end_of_sessions_needs_no_time(rekindle, tmp_path):
    with open("rekindle.yaml", "a") as file:  # noqa: PTH123 - the folder is the current one
        file.write("runtime: {brief: {at: never, on_session_end: true}}\n")
    assert rekindle("install", "--briefs", "--kind", "systemd")[0] == 0
    _, timer = units(tmp_path)
    lines = timer.read_text().splitlines()
    assert [one for one in lines if one.startswith("OnCalendar")] == ["OnCalendar=*:0/15"]
