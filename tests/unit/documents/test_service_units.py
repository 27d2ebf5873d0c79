"""The units with which a host starts the daemon: read back as systemd and launchd read them."""

import os
import plistlib
import shutil
import stat
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prerequisites
from rekindle.documents import service_units
from rekindle.documents.service_units import ServiceUnit

STRANGE = ["plain", "two words", "100%h", "$HOME ${HOME} $$", 'it\'s "so"', "back\\slash", "ümlaut"]
WORDS = st.text(
    st.sampled_from(list("ab /-=;%$\"'\\{}ü,:")) | st.characters(categories=["L", "N", "P", "S"]),
    max_size=20,
)


def unit(text):
    """Return the keys as systemd's reader parses them; no line continues after a backslash."""
    lines = [line for line in text.splitlines() if "=" in line]
    assert not any(line.endswith("\\") for line in lines)
    return [tuple(line.split("=", 1)) for line in lines]


def words(value, *, command):
    """A line of words as systemd.syntax(7) splits it; of a command also the dollars."""
    found, place = [], 0
    while place < len(value):
        assert value[place] == '"'
        word, place = "", place + 1
        while value[place] != '"':
            place += value[place] == "\\"
            word += value[place]
            place += 1
        found.append(specified(word))
        place += 2  # the quote, and the space behind it
    return [literal(word) for word in found] if command else found


def specified(word):
    assert "%" not in word.replace("%%", "")
    return word.replace("%%", "%")


def literal(word):
    assert "$" not in word.replace("$$", "")
    return word.replace("$$", "$")


@given(st.lists(WORDS, min_size=1, max_size=4), WORDS, st.dictionaries(st.just("PATH"), WORDS))
def test_every_word_reaches_the_program_as_it_is(arguments, folder, environment):
    """Quotes, percent signs, dollars and backslashes are kept literally."""
    argv = ("/bin/python", *arguments)
    found = unit(service_units.render_systemd(ServiceUnit("a", argv, f"/{folder}", environment)))
    assert words(dict(found)["ExecStart"], command=True) == list(argv)
    kept = [words(value, command=False) for key, value in found if key == "Environment"]
    assert kept == [[f"{name}={value}"] for name, value in environment.items()]
    # The part that systemd strips from the end of a line must not belong to the folder's name.
    there = dict(found)["WorkingDirectory"]
    assert there.strip() == there
    assert specified(there).rstrip("/") == f"/{folder}".rstrip("/")


@pytest.mark.heavy
@pytest.mark.parametrize("name", STRANGE)
def test_systemd_takes_the_unit(tmp_path, name):
    """The reader of systemd itself finds nothing to say, wherever Python and the project are."""
    checker = shutil.which("systemd-analyze")
    if checker is None:
        prerequisites.refuse("systemd-analyze is not installed")
    folder = tmp_path / name
    folder.mkdir()
    program = folder / "python"
    program.write_text("#!/bin/sh\n")
    program.chmod(stat.S_IRWXU)
    found = ServiceUnit("a", (str(program), "-m", name), str(folder), {"PATH": f"/bin:{name}"})
    path = tmp_path / "rekindle-a.service"
    path.write_text(service_units.render_systemd(found))
    ended = subprocess.run(
        [checker, "--user", "verify", str(path)],
        env={"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    # systemd before version 254 ignores this key.
    lines = [line for line in ended.stderr.splitlines() if "'DelegateSubgroup'" not in line]
    assert (ended.returncode, str(path) in "".join(lines)) == (0, False), ended.stderr


@pytest.mark.heavy
@pytest.mark.parametrize("name", STRANGE)
def test_a_program_with_a_strange_path_is_started(tmp_path, name):
    """The test runs what systemd would run, with its arguments unchanged."""
    program = tmp_path / name
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(stat.S_IRWXU)
    found = ServiceUnit("a", (str(program), "-m", name), str(tmp_path), {})
    argv = words(dict(unit(service_units.render_systemd(found)))["ExecStart"], command=True)
    ended = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert ended.stdout == f"-m\n{name}\n"


def test_agents_outlive_the_daemon():
    """Both kinds start it again when it ends, and end it alone when it is stopped."""
    found = ServiceUnit("a", ("/bin/python",), "/project", {})
    keys = dict(unit(service_units.render_systemd(found)))
    assert (keys["Restart"], keys["KillMode"], keys["Delegate"]) == ("always", "process", "yes")
    assert keys["DelegateSubgroup"] == "supervisors"
    plist = plistlib.loads(service_units.render_launchd(found))
    assert (plist["KeepAlive"], plist["AbandonProcessGroup"], plist["RunAtLoad"]) == (True,) * 3


@given(st.lists(WORDS, min_size=1), WORDS, st.dictionaries(WORDS, WORDS))
def test_launchd_s_file_is_a_property_list(argv, folder, environment):
    """Read back by plistlib, it says what it was made from."""
    found = plistlib.loads(
        service_units.render_launchd(ServiceUnit("a-b", tuple(argv), folder, environment))
    )
    assert found["Label"] == "a-b"
    assert found["ProgramArguments"] == argv
    assert found["WorkingDirectory"] == folder
    assert found["EnvironmentVariables"] == environment
