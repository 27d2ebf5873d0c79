"""`rekindle export` and `rekindle import` on one machine, without an agent CLI."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import RELAY
from rekindle.cli import main


@pytest.fixture
def rekindle(tmp_path, monkeypatch, capsys):
    """Run a command in a folder; return its code and its output."""
    monkeypatch.delenv("REKINDLE_AGENT", raising=False)

    def run(folder, *arguments):
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        code = main.run(list(arguments))
        out, err = capsys.readouterr()
        return code, out + err

    return run


@pytest.fixture
def exported(rekindle, tmp_path):
    assert rekindle("here", "init", "trades", "--yes", "--harness", "codex")[0] == 0
    (tmp_path / "here/relay.md").write_text(RELAY)
    assert rekindle("here", "relay", "set", "relay.md")[0] == 0
    assert rekindle("here", "loops", "add", "rate-limit", "How many?")[0] == 0
    code, said = rekindle("here", "export", "trades", "../trades.rekindle")
    assert code == 0, said
    return tmp_path / "trades.rekindle"


def read_tree(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_an_imported_agent_has_its_relay_loops_and_log(rekindle, exported):
    code, said = rekindle("there", "import", str(exported))
    assert code == 0, said
    assert "rate-limit" in rekindle("there", "loops", "trades", "--json")[1]
    assert rekindle("there", "relay", "show", "trades") == rekindle("here", "relay", "show")
    before = rekindle("here", "events", "trades", "--json", "--last", "0")[1].splitlines()
    after = rekindle("there", "events", "trades", "--json", "--last", "0")[1].splitlines()
    assert after[: len(before)] == before
    assert "harness: codex" in Path("rekindle.yaml").read_text()
    assert rekindle("there", "doctor", "trades")[1].count("log") == 0


def test_an_agent_is_never_overwritten(rekindle, exported):
    before = read_tree(Path("../here"))
    code, said = rekindle("here", "import", str(exported))
    assert code == 6
    assert "already an agent trades" in said
    assert read_tree(Path("../here")) == before


def test_a_torn_or_changed_file_is_refused_and_nothing_is_written(rekindle, exported):
    data = exported.read_bytes()
    rng = random.Random(3)
    for number in range(40):
        bad = bytearray(data)
        if number % 2:
            bad = bad[: rng.randrange(len(data))]
        else:
            bad[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        exported.write_bytes(bytes(bad))
        code, said = rekindle("there", "import", str(exported))
        assert code == 4, said
        assert "→" in said
    assert read_tree(Path("../there")) == {}


KILLED = """
import os, sys
from rekindle.system.files import durable_files
left = int(sys.argv[1])
def count(function):
    def call(*arguments, **more):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return function(*arguments, **more)
    return call
for name in ("replace_file", "make_folder", "rename_durably", "append_durably", "remove_file"):
    setattr(durable_files, name, count(getattr(durable_files, name)))
from rekindle.cli import main
sys.exit(main.run(["import", sys.argv[2]]))
"""


@pytest.mark.heavy
@pytest.mark.parametrize("step", [0, 3, 7, 12, 16, 18, 20, 22, 24, 27, 31])
def test_a_killed_import_is_finished_by_the_next_one(rekindle, exported, tmp_path, step):
    """Killed at any write, it leaves no agent that can be used, or one that the same file ends."""
    there = tmp_path / "there"
    there.mkdir()
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(step), str(exported)],
        cwd=there,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        capture_output=True,
    )
    assert killed.returncode == 9, killed.stderr
    code, said = rekindle("there", "import", str(exported))
    assert code == 0, said
    assert "rate-limit" in rekindle("there", "loops", "trades", "--json")[1]
    assert not list((there / ".rekindle/agents").glob(".tmp*"))
