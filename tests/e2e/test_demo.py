"""`rekindle demo`: the first command of a new user."""

import signal
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "tools"))
import demo_svg

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def demo(place, tmp_path):
    """Start it in an empty home, with its own temporary folder and no network."""
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "tmp"),
        "LC_ALL": "C.UTF-8",
    }
    argv = [sys.executable, "-I", "-m", "rekindle", "demo"]
    return lambda: place.start(argv, env=environment, cwd=tmp_path / "home")


def test_the_demonstration(demo, place, tmp_path):
    """It is killed twice and finishes within 40 s, exactly as the README's picture shows."""
    running = demo()
    assert running.wait(40) == 0, running.err
    told = [
        "killed during that tool call: kill -9",
        "ended by SIGKILL; its tool was still running (1 process)",
        "starts it again, in the same session",
        "its session is destroyed too",
        "=== RECOVERY DETECTED ===",
        "Task: Write chapter-1.md to chapter-6.md",
        "6 chapters were written in 2 sessions; 6 tool calls finished",
        "Next: `rekindle init`",
    ]
    places = [running.out.index(part) for part in told]
    assert places == sorted(places)
    drawn = demo_svg.draw(running.out)
    assert drawn == demo_svg.PICTURE.read_text(), "the picture is old: run `just picture`"
    assert place.processes() == []
    assert [*(tmp_path / "home").iterdir(), *(tmp_path / "tmp").iterdir()] == []


def test_stopping_the_demonstration(demo, place, tmp_path):
    """Ctrl-C ends it with everything that it started."""
    running = demo()
    place.wait_for(lambda: "chapter-2.md" in running.out)
    running.signal(signal.SIGINT)
    assert running.wait() == 130, running.err
    assert "Stopped." in running.err
    assert place.processes() == []
    assert list((tmp_path / "tmp").iterdir()) == []
