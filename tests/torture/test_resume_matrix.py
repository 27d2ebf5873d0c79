"""An agent resumes a session that is good, gone, broken, another agent's, cut, or in use.

A wrong session is never adopted: `rekindle run` resumes the session that it started, or starts a
fresh one that is told of the recovery; the model sees no word of another session, and no other
session's file is touched. A session that no longer knows its task is never resumed. And two
processes never write to one session because of us.

Each home has other sessions, in the same project and in another. Every transcript is cut once
before the last prompt, and once after it: the first starts afresh, the second resumes. Then CI cuts
a few at random bytes, and `just torture` a thousand.
"""

import json
import os
import random
import shlex
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from e2e.sandbox import BANNER, TASK, WORK
from loopback.script import Forever, Hang, Text
from rekindle.ports import complete_harness
from rekindle.stores.folders.private_files import find_private_project
from torture.clis import NAMES, Cli

pytestmark = pytest.mark.torture

WHOLE: Final = os.environ.get("REKINDLE_TORTURE") == "whole"
CUTS: Final = (
    {"claude-code": 500, "codex": 450, "gemini": 50}
    if WHOLE
    else {"claude-code": 0, "codex": 2, "gemini": 0}
)
"""The number of transcripts that are cut at random bytes."""
SEED: Final = 20260409
OURS: Final = "the heron — été, 日本"
"""A text that only the agent's own session contains."""
LAST: Final = "the wren"
"""The last prompt of that session."""
THEIRS: Final = ("the magpie", "the cuckoo")
"""Texts that only the other sessions contain: one in the same project, one in another."""
OUR_TASK: Final = TASK.splitlines()[-1].encode()
AFRESH: Final = {"refused by the CLI", "not gone on with"}
GOES_ON: Final = {"whole", "in part"}
ABSENT: Final = {"resume-failed", "crash"}
HANGS: Final = NAMES if WHOLE else ("codex",)
"""The CLIs whose process hangs in the test of a session in use; each costs the ten seconds of a
stop.
"""
SLOW: Final = () if WHOLE else ("claude-code", "gemini")
"""The CLIs that skip one of the two foreign files, because a launch takes seconds."""
SLOWEST: Final = () if WHOLE else ("gemini",)
"""The CLIs that also skip the corrupt file and the other foreign one."""
SUPERVISED: Final = 6


class Sessions:
    """An agent's session, others beside it, and everything as it is before every trial.

    The agent's supervisor was killed when the session had done some work.
    """

    def __init__(self, cli: Cli) -> None:
        self.cli = cli
        self.elsewhere = cli.sandbox.project.with_name("elsewhere")
        self.elsewhere.mkdir()
        self.foreign = self._begun(THEIRS[1], self.elsewhere)
        self.other = self._begun(THEIRS[0])
        self.rekindle = cli.supervised()
        self._store: Path = cli.sandbox.project / ".rekindle"
        others = cli.transcripts()
        asked = Hang()
        work = (f"echo {shlex.quote(OURS)}", "seq 3000", f"echo {shlex.quote(LAST)}")
        cli.model.play(*map(cli.kind.shell, work), asked, Forever(Text("done")))
        running = self.rekindle.start("run")
        cli.asked(asked)
        running.signal(signal.SIGKILL)
        running.wait()
        cli.place.wait_for(lambda: not self.rekindle.agents() or None)
        (self.path,) = cli.transcripts().keys() - others.keys()
        (launched,) = self._events("launch.started")
        # Codex names it, and the file after it.
        self.asked = launched.get("session") or self.path.stem[-36:]
        self._kept = cli.folder.with_name("kept")
        # The seal of the log is kept outside the project: without it a restored log looks forged.
        private = find_private_project(cli.sandbox.project).path
        self._folders = (cli.folder, self._store, private)
        for folder in self._folders:
            shutil.copytree(folder, self._kept / folder.name, symlinks=True)
        cli.model.play(Forever(Text("all done")))

    def _begun(self, words: str, project: Path | None = None) -> str:
        call = self.cli.kind.shell(f"echo {shlex.quote(words)}")
        self.cli.model.play(call, Text(f"I have seen {words}"), Forever(Text("done")))
        outcome = self.cli.run(f"look for {words}", project=project)
        assert outcome.exit.kind == "clean", outcome.told
        return outcome.opened

    def _events(self, kind: str) -> list[dict[str, Any]]:
        log = self._store / "agents" / "trades" / "ops.jsonl"
        found = [json.loads(line) for line in log.read_text().splitlines()]
        return [one for one in found if one["kind"] == kind]

    def restore(self) -> None:
        """Have everything as it was before the trial."""
        for folder in self._folders:
            shutil.rmtree(folder)
            shutil.copytree(self._kept / folder.name, folder, symlinks=True)

    def go_on(self, why: str) -> str:
        """Run the agent, check its actions, and return what it did."""
        asked, before = len(self.cli.model.log), self.cli.transcripts()
        launched = len(self._events("launch.started"))
        run = self.rekindle.start("run")
        code = run.wait()
        started = self._events("launch.started")[launched:]
        exits = [one["exit"] for one in self._events("launch.ended")]
        why = f"{why}: {exits}, {run.out[-2000:]}{run.err[-2000:]}"
        assert (code, exits[0], exits[-1]) == (0, "lost", "clean"), why
        requests = list(self.cli.model.log)[asked:]
        words = "\n".join(one.text for one in requests)
        assert not any(theirs in words for theirs in THEIRS), why
        after = self.cli.transcripts()
        for path, held in before.items():
            if not self._is_asked_for(path):
                assert after.get(path) == held, f"{path.name} was written to; {why}"
        last = started[-1]
        if not last.get("resumes"):
            assert last.get("recovery"), why
            assert BANNER in words, why
            fresh = {one["session"] for one in self._events("launch.ended")[-1:]}
            assert self.asked not in fresh, why
            return "refused by the CLI" if exits[1] == "resume-failed" else "not gone on with"
        assert last["session"] == self.asked, why
        assert all(map(self._is_asked_for, after.keys() - before.keys())), why
        # It resumes, so it must know its task.
        assert OUR_TASK.decode() in words, why
        return "whole" if OURS in words and LAST in words else "in part"

    def prompt_line(self, whole: bytes) -> tuple[int, int]:
        """Return where the line of the last prompt begins and ends in the transcript.

        Without this line the harness would not resume the session; a CLI without ids for prompts
        has the task in it.
        """
        lines = whole.split(b"\n")
        holds = complete_harness(self.cli.kind.harness).has_prompt
        self.rekindle.fold()  # hooks' reports may not be in the log yet
        told = self._events("prompt.submitted")
        (prompt,) = [one["call"] for one in told][-1:] or [""]
        if holds([], prompt):
            place = next(number for number, line in enumerate(lines) if OUR_TASK in line)
        else:
            place = next(n for n in range(len(lines)) if holds(lines[: n + 1], prompt))
        start = sum(len(line) + 1 for line in lines[:place])
        return start, start + len(lines[place])

    def _is_asked_for(self, path: Path) -> bool:
        """Return whether a file is the session's; Gemini CLI starts another each minute."""
        return self.asked in path.name or path.name.endswith(f"-{self.asked[:8]}.jsonl")


def cut(sessions: Sessions) -> Counter[str]:
    """Go on with what is left of a transcript, again and again; how often it came to what."""
    rng, whole, found = random.Random(SEED), sessions.path.read_bytes(), Counter[str]()

    def left(at: int) -> str:
        sessions.path.write_bytes(whole[:at])
        came_to = sessions.go_on(f"cut at byte {at} of {len(whole)}, seed {SEED}")
        sessions.restore()
        found[came_to] += 1
        return came_to

    begins, ends = sessions.prompt_line(whole)
    sessions.restore()
    assert left(begins) in AFRESH
    assert left(ends + 1) in GOES_ON
    for _ in range(CUTS[sessions.cli.name]):
        left(rng.randrange(len(whole)))
    return found


@pytest.mark.parametrize("cli", NAMES, indirect=True)
def test_no_other_session_is_taken_for_the_one_that_was_begun(cli: Cli):
    """Good, missing, corrupt, foreign or cut: it resumes, or a fresh session is told so."""
    sessions = Sessions(cli)
    assert sessions.go_on("good") == "whole"
    sessions.restore()
    sessions.path.unlink()
    assert sessions.go_on("missing") in AFRESH
    if cli.name not in SLOWEST:
        sessions.restore()
        sessions.path.write_bytes(random.Random(SEED).randbytes(sessions.path.stat().st_size))
        assert sessions.go_on("corrupt") in AFRESH
    for why, foreign in {"another's": sessions.other, "a project's": sessions.foreign}.items():
        if cli.name in SLOWEST or (foreign == sessions.other and cli.name in SLOW):
            continue
        sessions.restore()
        sessions.path.write_bytes(cli.transcript(foreign).read_bytes())
        assert sessions.go_on(why) in AFRESH, why
    sessions.restore()
    found = cli.run("go on", resumes=sessions.asked, project=sessions.elsewhere)
    assert found.exit.kind in ABSENT or found.opened == sessions.asked, found.told
    sessions.restore()
    counted = cut(sessions)
    print(f"\n{cli.name}: {counted.total()} cuts, 0 wrong sessions; {dict(counted)}; seed {SEED}")


@pytest.mark.parametrize("cli", NAMES, indirect=True)
def test_a_session_in_use_gets_no_second_writer_from_us(cli: Cli):
    """A hanging process of an agent is killed before its session resumes.

    A person may be at work in the same project: a run of ours starts its own session, and resumes
    only that one. Codex itself refuses a second process in a session that is in use. Claude Code
    and Gemini CLI would let a person into our session; we can only make sure that we start one
    process there.
    """
    rekindle = cli.supervised()
    hers, resumed = Hang(Text("all seen")), Hang(Text("all done"))
    work = f"{shlex.join(['setsid', sys.executable, '-c', WORK])} & wait"
    cli.model.play(hers, cli.kind.shell(work), resumed, Forever(Text("done")))
    start, person = cli.start(f"look for {THEIRS[0]}")
    cli.asked(hers)
    (path,) = rekindle.place.wait_for(lambda: cli.transcripts() or None)
    if cli.name == "codex":
        (begun,) = (line for line in person.out.splitlines() if "thread.started" in line)
        refused = cli.run("go on", resumes=json.loads(begun)["thread_id"])
        assert refused.exit.kind == "resume-failed"
        assert "another process is using the session" in refused.exit.words
        assert len(cli.model.log.main) == 1
    running = rekindle.start("run")
    pid = rekindle.wait_until_hooked()

    second = rekindle.start("run")
    assert second.wait() == SUPERVISED
    assert "is already running" in second.err
    assert len(rekindle.agents()) == 2

    if cli.name in HANGS:
        rekindle.place.signal(pid, signal.SIGSTOP)  # it reacts to no signal but SIGKILL
    running.signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    again = rekindle.start("run")
    request = cli.asked(resumed)
    assert pid in rekindle.place.ended
    assert rekindle.tools() == []
    assert len(rekindle.agents()) == 2
    assert THEIRS[0] not in request.text
    resumed.release.set()
    assert again.wait() == 0, again.err
    ended = rekindle.events("launch.ended")
    assert [one["exit"] for one in ended] == ["lost", "clean"]
    (ours,) = {one["session"] for one in ended}

    hers.release.set()
    found = cli.outcome(start, person)
    assert (found.exit.kind, found.opened == ours) == ("clean", False), found.told
    written = cli.transcripts()
    assert OUR_TASK not in written.pop(path)
    assert written
    assert not any(THEIRS[0].encode() in held for held in written.values())
