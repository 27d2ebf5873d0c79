"""kill -9 of session, supervisor or both around the delivery of a message: it arrives exactly once.

A run of a real CLI waits in a tool call while a person sends it a message. Then one or both of the
processes are killed: before the supervisor has offered the message to the hook, before the call is
over, or at a random moment of the delivery. A hook that was killed between its mark and its output
is simulated: its mark exists, and the session gets no output. In the end, the last request of the
agent contains the message once, one transcript has it, and the log has one delivery.

CI plays one round for each CLI; `just torture` plays 100.
"""

import collections
import json
import os
import random
import signal
import time
from typing import Any, Final

import pytest

from e2e.handing import KINDS, Handing
from loopback.log import Request
from loopback.script import Forever, Text
from rekindle.documents.person_message import render_sign
from rekindle.stores.folders.brake_files import BrakeFiles
from rekindle.stores.folders.private_files import find_private_project

pytestmark = [pytest.mark.torture, pytest.mark.timeout(7200)]

WHOLE: Final = os.environ.get("REKINDLE_TORTURE") == "whole"
ROUNDS: Final = 100 if WHOLE else 1
SEED: Final = int(os.environ.get("REKINDLE_SEED", "20261118"))
CASES: Final = (
    *((victim, when) for victim in ("session", "supervisor", "both") for when in ("sent", "late")),
    *((victim, "offered") for victim in ("session", "supervisor", "both", "hook", "none")),
)
DELIVERY_SECONDS: Final = 0.8
"""Longest time from the end of the call to a late kill."""
WAITING: Final = "touch began; until [ -e go ]; do sleep 0.02; done"
TRANSCRIPTS: Final = {
    "claude-code": ".claude/projects/**/*.jsonl",
    "codex": ".codex/sessions/**/*.jsonl",
    "gemini": ".gemini/tmp/**/chats/*.json*",
}


class Round:
    """One run of an agent that is told something, and loses processes."""

    def __init__(self, found: Handing, chance: random.Random) -> None:
        self.found, self.chance, self.place = found, chance, found.rekindle.place
        self.first = len(found.model.log.main)
        self.private = find_private_project(found.project).agent("trades").launch

    def play(self, victim: str, when: str) -> str:
        """Play the round, and return the message."""
        for name in ("began", "go"):
            (self.found.project / name).unlink(missing_ok=True)
        wait, more = self.found.bash(WAITING), self.found.bash("true")
        self.found.model.play(wait, more, more, Forever(Text("done")))
        run = self.found.rekindle.start("run", "trades", "--cycles", "3")
        self.place.wait_for((self.found.project / "began").exists)
        told = json.loads(self.found.rekindle("tell", "trades", "Use the blue one.", "--json"))
        if when != "sent":
            self.wait_until_offered(told["message"])
        if victim == "hook":
            self.mark(told["message"])
        if when == "late" or victim in {"hook", "none"}:
            (self.found.project / "go").touch()
            if when == "late":
                time.sleep(self.chance.uniform(0, DELIVERY_SECONDS))
        if victim in {"supervisor", "both"}:
            self.place.signal(run.pid, signal.SIGKILL)
            assert run.wait() == -signal.SIGKILL
        if victim in {"session", "both"}:
            self.kill_session()
        (self.found.project / "go").touch()
        if victim in {"supervisor", "both"}:
            run = self.found.rekindle.start("run", "trades", "--cycles", "3")
        assert run.wait(300) == 0, run.out + run.err
        return str(told["message"])

    def wait_until_offered(self, message: str) -> None:
        sign = render_sign(message).encode()
        self.place.wait_for(
            lambda: any(sign in path.read_bytes() for path in self.private.glob("notice-*"))
        )

    def mark(self, message: str) -> None:
        """Leave the mark of a hook that was killed before its output."""
        (notice,) = self.private.glob("notice-*")
        launch = notice.name.removeprefix("notice-")
        BrakeFiles(self.private, self.private).told(launch, f"message-{message}").touch()

    def kill_session(self) -> None:
        """Kill the CLI, unless it has just finished."""
        agents = self.found.rekindle.agents()
        for pid, argv in self.place.living().items():
            if argv in agents:
                self.place.signal(pid, signal.SIGKILL)

    def check(self, message: str) -> str:
        """Return how the message was delivered, once."""
        sign, requests = render_sign(message), self.found.model.log.main[self.first :]
        counts = [count_sign(one, sign) for one in requests]
        assert max(counts) == counts[-1] == 1, counts
        (delivered,) = (
            one
            for one in self.found.rekindle.events("message.delivered")
            if one["message"] == message
        )
        paths = self.found.cli.home.glob(TRANSCRIPTS[self.found.HARNESS])
        shown = [path for path in paths if sign.encode() in path.read_bytes()]
        assert len(shown) == 1, shown
        return str(delivered["how"])


def count_sign(request: Request, sign: str) -> int:
    """Count the parts of a request that contain the message.

    Gemini CLI repeats the result of a call, with its id, if it was killed right after the call.
    """
    shown = {(part.call, part.text) for part in request.parts if sign in part.text}
    assert sum(text.count(sign) for _, text in shown) == len(shown)
    return len(shown)


@pytest.mark.parametrize("name", [*KINDS])
def test_a_message_arrives_exactly_once(request: pytest.FixtureRequest, place: Any, name: str):
    kind, model = KINDS[name]
    found = kind(request.getfixturevalue(name), place, request.getfixturevalue(model)).begin(99)
    chance = random.Random(f"{SEED} {name}")
    cases = chance.sample(CASES, len(CASES))
    ways: collections.Counter[str] = collections.Counter()
    for number in range(ROUNDS):
        case = cases[number % len(cases)]
        played = Round(found, chance)
        how = played.check(played.play(*case))
        ways[f"{' '.join(case)}: {how}"] += 1
    print(name, dict(ways))
    assert ways.total() == ROUNDS
