"""An agent that repeats itself is found; one that works, waits or retries is not."""

from pathlib import Path

import pytest

from rekindle.documents.launches.launch_types import (
    AssistantText,
    CompactionReport,
    ToolCallStarted,
)
from rekindle.documents.transcripts.turns import Passage, PromptText, ToolResult
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import codex_harness
from rekindle.harnesses.gemini import gemini_harness
from rekindle.policy.supervision.repetition import (
    Repetition,
    RepetitionDetector,
    render_notice,
)
from rekindle.testing.recordings import load_recordings
from simulated_sessions import SimulatedSession

RECORDINGS = Path(__file__).parents[3] / "recordings"
SAMPLES = Path(__file__).parents[4].parent / "shared/facts/samples"
CLIS = {
    "claude-code": (claude_harness, "claude/transcript-*.jsonl"),
    "codex": (codex_harness, "codex/rollout-*.jsonl"),
    "gemini-cli": (gemini_harness, "gemini/chat-*.jsonl"),
}


class Session:
    """A session whose passages a test writes."""

    def __init__(self) -> None:
        self.detector = RepetitionDetector()
        self.found: list[Repetition] = []
        self._calls = 0

    def take(self, what, at="2026-01-01T00:00:00Z", **more) -> "Session":
        if found := self.detector.take(Passage(what=what, at=at, **more)):
            self.found.append(found)
        return self

    def call(self, about, shown="", *, ok=True, seconds=0, tool="Bash", **more) -> "Session":
        self._calls += 1
        name = f"call-{self._calls}"
        self.take(ToolCallStarted(tool, name, about, {"command": about}), **more)
        end = f"2026-01-01T00:{seconds // 60:02}:{seconds % 60:02}Z"
        return self.take(ToolResult(name, ok, shown), end, **more)

    @property
    def last(self) -> tuple[str, int] | None:
        return (self.found[-1].pattern, self.found[-1].count) if self.found else None


def repeat(times, *steps, **more) -> Session:
    session = Session()
    for _ in range(times):
        for about, shown in steps:
            session.call(about, shown, **more)
    return session


def test_the_same_call_with_the_same_result():
    assert repeat(5, ("ls", "a")).found == []
    six = repeat(6, ("ls", "a"))
    assert six.found == [Repetition("call", 6, "Bash ls")]
    assert six.found[0].is_notable
    assert not six.found[0].is_over
    nine = repeat(9, ("ls", "a"))
    assert nine.last == ("call", 9)
    assert [one.is_over for one in nine.found] == [False, False, False, True]


def test_another_input_or_result_starts_the_count_again():
    session = repeat(5, ("ls", "a")).call("ls -l", "a")
    for _ in range(5):
        session.call("ls", "a")
    assert session.found == []
    session.call("ls", "b")
    for _ in range(5):
        session.call("ls", "a")
    assert session.found == []
    assert session.call("ls", "a").last == ("call", 6)


def test_times_in_a_result_are_not_news():
    session = Session()
    for number in range(6):
        session.call("make", f"built in 1.{number}s at 2026-01-0{number + 1} 10:0{number}:00")
    assert session.last == ("call", 6)
    counted = Session()
    for number in range(20):
        counted.call("make", f"{number} of 40 files")
    assert counted.found == []


def test_a_call_that_fails_again_and_again():
    """Numbers in its output differ from failure to failure."""
    session = Session()
    for number in range(6):
        session.call("./x", f"process {number} died, see /tmp/x{number}a", ok=False)
    assert session.found == [Repetition("failure", 6, "Bash ./x")]
    other = Session()
    for letter in "abcdefghijk":
        other.call("./x", f"cannot find {letter}", ok=False)
    assert other.found == []


def test_a_failure_that_takes_long_still_counts():
    """Only waiting is an excuse."""
    assert repeat(6, ("pytest", "red"), ok=False, seconds=50).last == ("failure", 6)
    assert repeat(20, ("sleep 50; pytest", "red"), ok=False, seconds=50).found == []
    assert repeat(6, ("sleep 50", "not here"), ok=False).last == ("failure", 6)


@pytest.mark.parametrize("length", [2, 3])
def test_calls_in_turn(length):
    steps = [(name, name) for name in "abc"[:length]]
    assert repeat(5, *steps).found == []
    session = repeat(6, *steps)
    assert session.last == ("alternation", 6)
    about = " · ".join(f"Bash {name}" for name in "abc"[:length])
    assert session.found[-1].about == about
    assert repeat(9, *steps).found[-1].is_over


@pytest.mark.parametrize(
    "how",
    [
        {"seconds": 10},
        {"tool": "TaskOutput"},
        {"tool": "write_stdin"},
        {"tool": "collaboration__wait_agent"},
    ],
)
def test_waiting_is_not_repetition(how):
    assert repeat(40, ("same", "same"), **how).found == []


def test_a_wait_between_two_calls_makes_them_polling():
    session = Session()
    for _ in range(20):
        session.call("tail -f log & sleep 2", "nothing", seconds=2).call("cat log", "nothing")
    assert session.found == []


@pytest.mark.parametrize(("seconds", "kind"), [(0, "call"), (1, None)])
def test_a_wait_takes_time(seconds, kind):
    """A command that only looks like a wait counts."""
    session = repeat(6, ("tail log", "x"), seconds=seconds)
    assert (session.last[0] if session.last else None) == kind


def at_minute(minute: int) -> str:
    return f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00Z"


@pytest.mark.parametrize("tool", ["Bash", "mcp__ci__status"])
@pytest.mark.parametrize(("minutes", "kind"), [(0, "call"), (1, None), (5, None)])
def test_a_pause_between_calls_makes_them_polling(tool, minutes, kind):
    session = Session()
    for number in range(9):
        at = at_minute(number * minutes)
        session.take(ToolCallStarted(tool, f"c{number}", "gh run view 7", {"run": 7}), at)
        session.take(ToolResult(f"c{number}", ok=True, text="in progress"), at)
    assert (session.last[0] if session.last else None) == kind


@pytest.mark.parametrize(("minutes", "is_found"), [(0, True), (60, False)])
def test_a_prompt_that_a_scheduler_repeats(minutes, is_found):
    """A prompt after a pause is new work, even if the answer is the same."""
    session, silent = Session(), Session()
    for number in range(12):
        at = at_minute(number * minutes)
        session.take(PromptText("check"), at)
        session.take(ToolCallStarted("Bash", f"c{number}", "ls queue", {}), at)
        session.take(ToolResult(f"c{number}", ok=True, text="empty"), at)
        session.take(AssistantText("Nothing to do."), at)
        silent.take(PromptText("check"), at).take(AssistantText("Nothing to do."), at)
    assert bool(session.found) == bool(silent.found) == is_found


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("browser_press_key", {"key": "PageDown"}),
        ("mcp__playwright__browser_click", {"element": "Next"}),
        ("computer", {"action": "scroll", "by": 5}),
        ("computer", {"action": "left_click"}),
        ("debugger_next", {}),
        ("debug.continue", {}),
        ("Bash", {"command": "tmux send-keys -t game Down"}),
    ],
)
def test_input_to_another_program_is_not_repetition(tool, arguments):
    """The program changes with each input, unless the input fails."""

    def enter(ok):
        session = Session()
        for number in range(12):
            session.take(ToolCallStarted(tool, f"c{number}", "", arguments))
            session.take(ToolResult(f"c{number}", ok=ok, text="done"))
        return session

    assert enter(ok=True).found == []
    assert enter(ok=False).last == ("failure", 12)


@pytest.mark.parametrize("tool", ["get_api_key", "Bash", "pressure", "context", "Read"])
def test_other_tools_are_not_input(tool):
    assert repeat(6, ("cat next", "a"), tool=tool).last == ("call", 6)


@pytest.mark.parametrize(
    "shown",
    [
        "{} failed, 3 passed in 1.2s",
        "Found {} errors in 3 files",
        "FAILED (failures={})",
        "aborting due to {} previous errors",
        "  {} failing",
        "Failed: {}",
        "{} of 40 done",
    ],
)
def test_a_failure_with_another_count_is_progress(shown):
    session = Session()
    for number in range(12):
        session.call("pytest", shown.format(30 - number), ok=False)
    assert session.found == []
    for _ in range(5):
        session.call("pytest", shown.format(19), ok=False)
    assert session.last == ("failure", 6)


def test_work_of_sub_agents_between_two_calls_starts_the_count_again():
    session = Session()
    for _ in range(12):
        session.call("pytest", "red", ok=False).call("fix", "x", tool="Edit", thread="helper")
    assert session.found == []
    for _ in range(12):
        session.call("pytest", "red", ok=False).call("fix it", "done", tool="Task")
    assert session.found == []
    assert repeat(6, ("fix it", "no such agent"), tool="Task", ok=False).last == ("failure", 6)


@pytest.mark.parametrize("command", ["sed -i s/{}/b/ x.py", "apply {}"])
def test_edits_between_two_calls_start_the_count_again(command):
    session = Session()
    for number in range(12):
        session.call("pytest", "red", ok=False).call(command.format(number), "ok")
    assert session.found == []


def test_the_same_message():
    session = Session()
    for _ in range(5):
        session.take(AssistantText(" I look now. "))
    assert session.found == []
    assert session.take(AssistantText("I look now.")).last == ("message", 6)
    assert session.call("ls", "a").take(AssistantText("I look now.")).last == ("message", 6)
    assert len(session.found) == 1, "a call starts the count again"


def test_a_message_that_the_cli_writes_again():
    session = Session()
    for _ in range(9):
        session.take(AssistantText("I look now."), message="m1", repeats_message=True)
    assert session.found == []


def test_prompts():
    """A new prompt starts the count again; one that a hook repeats does not."""
    session = Session()
    for number in range(12):
        session.take(PromptText(f"again {number}")).call("ls", "a")
        session.take(AssistantText("Done."))
    assert session.found == []
    for _ in range(7):
        session.take(PromptText("more")).take(AssistantText("Done."))
    assert session.last == ("message", 7)


def test_compactions_without_work_between_them():
    def compacted(times, calls, seconds=0):
        session = Session()
        for number in range(times):
            for call in range(calls):
                session.call(f"{number} {call}", "x", seconds=seconds)
            session.take(CompactionReport(None, None))
        return session

    assert compacted(2, 2).found == []
    assert compacted(3, 2).last == ("compaction", 3)
    assert not compacted(3, 2).found[-1].is_over
    assert compacted(4, 0).found[-1].is_over
    assert compacted(9, 3).found == []
    assert compacted(9, 1, seconds=30).found == [], "a long call is work"


def test_a_compaction_that_is_reported_twice():
    session = Session()
    for _ in range(4):
        session.take(CompactionReport(1, 2), message="same")
    assert session.found == []


def test_sub_agents_do_not_count():
    session = Session()
    for _ in range(9):
        session.call("ls", "a", thread="helper")
    assert session.found == []


def test_results_in_parts():
    """A CLI may report a call, its success and its text one after the other, or twice."""
    session = Session()
    for number in range(6):
        name = f"c{number}"
        for _ in range(2):
            session.take(ToolCallStarted("exec", name, "false", {}))
        session.take(ToolResult(name, ok=False)).take(ToolResult(name, None, "no"))
        session.take(ToolResult(name, ok=False, text="no"))
    assert session.found == [Repetition("failure", 6, "exec false")]


def test_a_call_that_the_cli_writes_again_with_its_result():
    session = Session()
    for _ in range(9):
        session.take(ToolCallStarted("Bash", "c1", "ls", {}))
        session.take(ToolResult("c1", ok=True, text="a"))
    assert session.found == []


def test_success_and_failure_in_turn_are_not_the_same():
    """Even if the output is the same, something else has changed."""
    session = Session()
    for number in range(9):
        session.call("make", "x", ok=number % 3 > 0)
    assert [one.pattern for one in session.found] == []


def test_results_without_text():
    """They count as soon as the next call or message begins."""
    session = repeat(6, ("true", ""))
    assert session.found == []
    assert session.call("ls", "a").last == ("call", 6)


def test_calls_without_an_end():
    """The detector remembers only some of them."""
    session = Session()
    for number in range(500):
        session.take(ToolCallStarted("Bash", f"c{number}", "x", {}))
    session.take(ToolResult("c0", ok=True, text="x")).take(ToolResult("c499", ok=True, text="x"))
    assert session.found == []


def test_times_that_are_not_times():
    session = Session()
    for number in range(6):
        session.take(ToolCallStarted("Bash", f"c{number}", "x", {}), at="noon")
        session.take(ToolResult(f"c{number}", ok=True, text="x"), at="2026-01-01T00:00:00")
    assert session.last == ("call", 6)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("call", "the same call with the same result 7 times in a row: Bash ls"),
        ("failure", "the same call failed 7 times in a row: Bash ls"),
        ("alternation", "the same calls in turn 7 times in a row: Bash ls"),
        ("message", "the same message 7 times in a row: Bash ls"),
        ("compaction", "7 compactions in a row with hardly any work between them"),
    ],
)
def test_the_notice_says_what_is_repeated(pattern, words):
    found = Repetition(pattern, 7, "Bash ls")
    assert found.describe() == words
    assert words in render_notice(found)
    assert found.has_boundary == (pattern in {"call", "failure", "alternation"})


def find_alarms(passages) -> list[Repetition]:
    detector = RepetitionDetector()
    return [found for passage in passages if (found := detector.take(passage))]


@pytest.mark.parametrize("cli", CLIS)
def test_recorded_sessions_raise_no_alarm(cli):
    """One of them repeats a call, and its CLI stops it earlier."""
    harness, samples = CLIS[cli]
    (folder,) = (RECORDINGS / cli).iterdir()
    texts = [recording.transcript for recording in load_recordings(folder)]
    texts += [path.read_bytes() for path in SAMPLES.glob(samples)]
    read = [
        [passage for line in text.splitlines() for passage in harness.read_transcript(line)]
        for text in texts
    ]
    assert sum(map(len, read)) > 100
    assert [find_alarms(passages) for passages in read if find_alarms(passages)] == []


@pytest.mark.heavy
def test_a_thousand_sessions_at_work_raise_no_alarm():
    alarms = {
        seed: found
        for seed in range(1_000)
        if (found := find_alarms(SimulatedSession(seed).passages))
    }
    assert alarms == {}


def test_the_simulation_would_show_a_repetition():
    """At the end of any simulated session, ten identical calls are found."""
    for seed in range(20):
        session = SimulatedSession(seed)
        for _ in range(10):
            session._call("Bash", "ls", "a")
        found = find_alarms(session.passages)
        assert [one.pattern for one in found] == ["call"] * 5
