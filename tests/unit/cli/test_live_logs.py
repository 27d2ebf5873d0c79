"""`rekindle logs -f` of a program without hooks: its output as it comes, each line once."""

import signal
import sys

from rekindle.wiring.access.trust_checks import accept_folder

AGENT = """\
import os, time
print("first of two", flush=True)
print("second of two", flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
print("after go", flush=True)
while not os.path.exists("end"):
    time.sleep(0.01)
"""


def test_output_is_shown_while_the_program_waits_silently(place, tmp_path):
    """A line is shown without another line after it, and before the end of the launch."""
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "PROMPT.md").write_text("Ship it.\n")
    (tmp_path / "rekindle.yaml").write_text(
        "version: 1\nagents:\n  trades:\n    harness: command\n    cycles: 1\n"
        f"    until: ['true']\n    command: [{sys.executable}, agent.py]\n"
    )
    accept_folder(tmp_path)

    def start(*arguments):
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
        argv = [sys.executable, "-I", "-m", "rekindle", *arguments]
        return place.start(argv, env=env, cwd=tmp_path)

    running = start("run", "trades")
    following = start("logs", "-f", "trades")
    place.wait_for(lambda: "second of two" in following.out, 25)
    (tmp_path / "go").touch()
    place.wait_for(lambda: "after go" in following.out, 25)
    (tmp_path / "end").touch()
    assert running.wait() == 0, running.err
    place.wait_for(lambda: "verified" in following.out)
    following.signal(signal.SIGINT)
    assert following.wait() == 130
    said = [line.split("  ")[-1] for line in following.out.splitlines() if "  " in line]
    words = ("first of two", "second of two", "after go")
    assert [line for line in said if line in words] == [*words]
    logs = start("logs", "trades")
    assert logs.wait() == 0
    assert [line.split("  ")[-1] for line in logs.out.splitlines() if line.endswith(words)] == [
        *words
    ]
