"""The handoff: when it is due, when it would lead nowhere, and that it never fires for nothing."""

import random
from datetime import UTC, datetime

import msgspec
import pytest

from rekindle.documents import events, manifest
from rekindle.documents.launches.brake import Brake
from rekindle.documents.launches.launch_types import WindowUsage
from rekindle.errors import ManifestError
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import codex_harness
from rekindle.harnesses.gemini import gemini_harness
from rekindle.policy.exits.restart import (
    HANDOFF_EXIT,
    EnterSafeMode,
)
from rekindle.policy.exits.session_choice import StartFresh
from rekindle.policy.handoff import window_rule
from rekindle.policy.projection import fold, projection, sessions
from rekindle.policy.projection.projection import Projection
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.settings.runtime_settings import (
    HANDOFFS_MANY,
    HANDOFFS_MOST,
    RelaySettings,
    RuntimeSettings,
)
from rekindle.policy.supervision.run_moves import (
    CloseCycle,
    HandOff,
    decide_next_move,
)

NOW = datetime(2026, 4, 9, 12, tzinfo=UTC)
SEED = 20260409
HISTORIES = 10_000
RUNTIME = RuntimeSettings()
BRAKE = claude_harness.brake(interactive=False)
WINDOWS = (200_000, 272_000, 1_000_000, 1_048_576)


def handed(seq, *, first, at, by="threshold", work=""):
    return LaunchRecord(
        cycle=1,
        session=f"s{seq}",
        resumes=False,
        seq=seq,
        exit=HANDOFF_EXIT,
        ended=NOW,
        ended_seq=seq + 1,
        opened=True,
        handed_by=by,
        percent=at,
        first_percent=first,
        work=work,
    )


MANIFEST = """\
version: 1
agents:
  trades:
    harness: claude-code
    handover:
      compaction: {said}
"""


def said(compaction):
    return manifest.parse(MANIFEST.format(said=compaction)).agents["trades"].handover


def test_a_threshold_is_read_strictly():
    """An unreadable threshold is an error with its line; nothing is guessed."""
    assert window_rule.find_threshold(None, RelaySettings()) == 80
    assert window_rule.find_threshold(said('{trigger: "token_limit_1%"}'), RelaySettings()) == 1
    assert window_rule.find_threshold(said('{trigger: "token_limit_100%"}'), RelaySettings()) == 100
    assert window_rule.find_threshold(said("{persona: summarizer}"), RelaySettings(70)) == 70
    assert window_rule.find_threshold(said("on"), RelaySettings(70)) == 70
    assert window_rule.find_threshold(said("off"), RelaySettings()) is None
    for trigger in ("80%", "token_limit_80", "token_limit_0%", "token_limit_101%", "token_limit_%"):
        with pytest.raises(ManifestError, match=r"rekindle.yaml:6: .* is not a trigger") as error:
            said(f'{{trigger: "{trigger}"}}')
        assert "token_limit_80%" in str(error.value.hint)
    with pytest.raises(ManifestError, match=r"rekindle.yaml:6: 80 is not a trigger") as error:
        said("{trigger: 80}")
    assert "token_limit_80%" in str(error.value.hint)
    for quoted, word in (('"off"', "'off'"), ("80", "80"), ("never", "'never'")):
        with pytest.raises(
            ManifestError, match=f"rekindle.yaml:6: {word} is not a valid value"
        ) as error:
            said(quoted)
        assert "`off`, without quotes" in str(error.value.hint)
    for trigger in ("Token_limit_80%", " token_limit_80%", "token_limit_08%", "token_limit_８０%"):
        with pytest.raises(ManifestError, match="is not a trigger"):
            said(f'{{trigger: "{trigger}"}}')


def test_a_step_of_a_pipeline_is_read_as_strictly():
    step = '{id: one, handover: {compaction: {trigger: "80"}}}'
    with pytest.raises(ManifestError, match=r"rekindle.yaml:4: '80' is not a trigger"):
        manifest.parse(f"version: 1\npipelines:\n  build:\n    steps: [{step}]\n")


def test_what_a_launch_is_held_to():
    """Tokens where the window is known before, a share where every line tells it, else nothing."""
    claude, other, third = (
        one.brake(interactive=False) for one in (claude_harness, codex_harness, gemini_harness)
    )

    def rule(brake, at, windows=None, window=None, *, asked=False):
        found = window_rule.make_brake_rule(
            brake, at, windows or {}, window=window, transcript="/t", at_once=asked
        )
        return found and (found.limit, dict(found.limits))

    assert rule(claude, 80, {"a": 200_000, "b[1m]": 1_000_001}) == (
        "",
        {"a": 160_000, "b[1m]": 800_001},
    )
    assert rule(claude, 80) is None
    assert rule(claude, None, {"a": 200_000}) is None
    assert rule(other, 80) == ("80%", {})
    assert rule(other, None) is None
    assert rule(third, 90, window=1_000_001) == ("900001", {})
    assert rule(third, 90) is None
    assert rule(claude, None, asked=True) == ("0", {})


def test_an_unknown_fill_level_is_never_due():
    assert window_rule.is_handoff_due(WindowUsage(160_000, 200_000, "reported"), 80)
    assert not window_rule.is_handoff_due(WindowUsage(159_999, 200_000, "reported"), 80)
    assert not window_rule.is_handoff_due(WindowUsage(999_999, 200_000, "unknown"), 80)
    assert not window_rule.is_handoff_due(WindowUsage(999_999, None, "reported"), 80)
    assert not window_rule.is_handoff_due(WindowUsage(999_999, 200_000, "exact"), None)
    assert not window_rule.is_handoff_due(None, 80)


def test_a_session_that_is_full_from_its_first_turn_on_halts():
    assert window_rule.decide_halt([handed(1, first=20, at=81)], 80) is None
    found = window_rule.decide_halt([handed(1, first=80, at=80)], 80)
    assert isinstance(found, EnterSafeMode)
    assert "80 % full at the first turn" in found.words
    assert "compaction: off" in found.words


def test_two_handoffs_that_make_no_room_halt():
    """One may happen; what happened before the last that made room is forgotten."""
    tight = [handed(n, first=75, at=81) for n in range(1, 4)]
    assert window_rule.decide_halt(tight[:1], 80) is None
    assert window_rule.decide_halt(tight[:2], 80) is None
    assert isinstance(window_rule.decide_halt(tight, 80), EnterSafeMode)
    roomy = handed(9, first=30, at=81)
    assert window_rule.decide_halt([*tight[:2], roomy, *tight[2:]], 80) is None


def test_sessions_that_leave_no_trace_halt():
    """Two in a row halt, unless the work cannot be seen or a person is present."""

    def found(*work, **how):
        tried = [handed(n, first=10, at=81, work=one) for n, one in enumerate(work)]
        return window_rule.decide_halt(tried, 80, **how)

    assert found("a", "a") is None
    assert found("a", "a", "b") is None
    assert found("a", "b", "b") is None
    assert found("", "", "", "") is None
    halted = found("b", "a", "a", "a")
    assert "no file in git, no commit" in halted.words
    assert "rekindle restart" not in halted.words  # the hint has the command that answers
    assert found("a", "a", "a", stays=True) is None


def test_many_handoffs_are_told_once_and_very_many_halt():
    told = [window_rule.describe_too_many(before) != "" for before in range(10)]
    assert [before + 1 for before, one in enumerate(told) if one] == [HANDOFFS_MANY + 1]
    tried = [handed(n, first=10, at=81, work=str(n)) for n in range(HANDOFFS_MOST)]
    assert window_rule.decide_halt(tried[1:], 80) is None
    assert f"{HANDOFFS_MOST} times" in window_rule.decide_halt(tried, 80).words


def test_what_a_person_asked_for_is_never_too_much():
    asked = [handed(n, first=85, at=86, by="person") for n in range(9)]
    assert window_rule.decide_halt(asked, 80) is None


def test_two_sessions_in_a_row_that_repeat_themselves():
    """The first is handed off; after the second, a person decides."""
    repeated = [handed(n, first=85, at=86, by="repetition") for n in (1, 3)]
    assert window_rule.decide_halt(repeated[:1], 80) is None
    halted = window_rule.decide_halt(repeated, 80)
    assert halted.why == "no-progress"
    assert halted.words.startswith("two sessions in a row repeated themselves; the last one: ")
    between = handed(2, first=20, at=81)
    assert window_rule.decide_halt([repeated[0], between, repeated[1]], 80) is None


def test_a_notice_for_the_agent():
    brake = Brake(event="A", signs=(), after="", counts=(), told_at="B", told_as="C", below="id")
    assert window_rule.render_notice(brake, "/t", 'say "x"', "m-1") == (
        b"event B\nown /t\nbelow id\nmark m-1\nanswer "
        b'{"hookSpecificOutput":{"hookEventName":"C","additionalContext":"say \\"x\\""}}'
    )


def test_one_thing_after_the_other():
    """First the checkpoint, then the fresh session; a halted run continues after a restart."""
    tried = [handed(1, first=20, at=85)]

    def move(run, *, checkpoint=0):
        told = {"now": NOW, "runtime": RuntimeSettings(), "threshold": 80, "checkpoint": checkpoint}
        return decide_next_move(run, tried, **told)

    run = projection.RunState(began=0)
    assert move(run) == HandOff()
    assert move(run, checkpoint=1) == HandOff(), "that one is of an earlier session"
    assert move(run, checkpoint=3) == StartFresh(recovery=False)
    tried = [handed(1, first=85, at=85)]
    assert isinstance(move(run), EnterSafeMode)
    assert move(projection.RunState(began=0, restarted=5)) == HandOff()


def happened(*told):
    numbered = [
        type(one)(**{**{f: getattr(one, f) for f in one.__struct_fields__}, "seq": seq})
        for seq, one in enumerate(told, 1)
    ]
    return fold.fold_events(Projection("a"), numbered)


def test_a_handoff_is_folded_from_the_log():
    triggered = events.HandoffTriggered(
        ts=NOW, launch="l", cycle=1, session="s", by="threshold", tokens=90, window=100, first=20
    )
    ended = events.LaunchEnded(ts=NOW, launch="l", cycle=1, session="s", exit=HANDOFF_EXIT)
    for order in ((triggered, ended), (ended, triggered)):
        one = happened(*order).attempts["l"]
        assert (one.handed_by, one.percent, one.first_percent) == ("threshold", 90, 20)
    learnt = [
        events.WindowSizeReported(ts=NOW, harness="h", model="m", window=size)
        for size in (200, 1000)
    ]
    assert happened(*learnt).windows["h"]["m"].window == 1000
    assert happened(events.HandoffRequested(ts=NOW)).handoff_asked == 1
    assert (
        sessions.select_cycle_launches(happened(triggered, ended).attempts, 1)["l"].exit
        == HANDOFF_EXIT
    )


class Cycle:
    """A cycle of random sessions, driven by the policy; the rules are stated in other words."""

    def __init__(self, dice):
        self.dice, self.at = dice, dice.choice((1, 50, 80, 90, 100))
        self.window = dice.choice(WINDOWS)
        self.known = dice.choice(("reported", "exact", "estimated", "reported", "unknown"))
        # A spiral: however often it is handed off, the next session begins as full as the last.
        self.spirals = dice.random() < 0.3
        self.base = dice.uniform(0.01, 1.2) * self.at
        # The visible work: none is ever done, each session does some, or it cannot be known.
        self.work = dice.choice(("idle", "idle", "idle", "idle", "busy", "unseen"))
        self.projection, self.seq = Projection("a"), 0
        self.happened(events.RunStarted(ts=NOW), events.CycleStarted(ts=NOW, cycle=1))
        self.handed = []
        """Since the operator's last command: the first turn's tokens, the work, and its author."""
        self.triggered, self.checkpoints, self.fresh, self.halts = [], 0, 0, 0
        self.is_over = False

    def happened(self, *told):
        numbered = [msgspec.structs.replace(one, seq=self.seq + n) for n, one in enumerate(told, 1)]
        self.seq += len(numbered)
        self.projection = fold.fold_events(self.projection, numbered)

    def move(self):
        standing = self.projection.documents.get("checkpoint")
        return decide_next_move(
            self.projection.run,
            [*sessions.select_cycle_launches(self.projection.attempts, 1).values()],
            now=NOW,
            runtime=RUNTIME,
            threshold=self.at,
            checkpoint=standing.seq if standing else 0,
        )

    def live(self):
        for _ in range(200):
            match self.move():
                case StartFresh():
                    assert self.fresh == self.checkpoints == len(self.triggered)
                    self.session()
                case HandOff():
                    assert self.checkpoints == len(self.triggered) - 1, "once for each crossing"
                    assert not self.should_halt()
                    self.checkpoints += 1
                    made = {"sha256": "0", "path": str(self.seq), "by": "machine"}
                    self.happened(events.CheckpointCommitted(ts=NOW, **made))
                case EnterSafeMode(why=window_rule.HANDOFF_REASON):
                    assert self.should_halt()
                    self.halts += 1
                    self.happened(events.SafeModeEntered(ts=NOW, why=window_rule.HANDOFF_REASON))
                    assert isinstance(self.move(), EnterSafeMode), "until a person says a word"
                    if self.halts > 1:
                        return
                    self.happened(events.RestartRequested(ts=NOW))
                    self.handed = []
                case CloseCycle():
                    self.is_over = True
                    return
                case other:
                    raise AssertionError(other)
        raise AssertionError("it continues for ever")

    def session(self):
        """Readings that climb by jumps, compacted now and then; ends where it is handed off."""
        launch = f"l{self.fresh}"
        said = {"ts": NOW, "launch": launch, "cycle": 1, "session": f"s{self.fresh}"}
        begun = [events.LaunchStarted(**said, harness="h")]
        if self.fresh:
            resumed = {"launch": launch, "count": self.fresh, "checkpoint": "c"}
            begun.append(events.HandoffResumed(ts=NOW, cycle=1, **resumed))
        self.fresh += 1
        share = self.base if self.spirals else self.dice.uniform(0, 1.2) * self.at
        first, end = None, 10_000 if self.spirals else self.dice.randrange(1, 40)
        for turn in range(end):
            used = int(share * self.window / 100)
            first = used if first is None else first
            by = self.stopped_by(used)
            if by:
                self.triggered.append(said["session"])
                work = {"idle": "w", "busy": f"w{self.fresh}", "unseen": ""}[self.work]
                self.handed.append((first, work, by))
                told = {"by": by, "tokens": used, "first": first, "work": work}
                trigger = events.HandoffTriggered(**said, **told, window=self.window)
                self.happened(*begun, trigger, events.LaunchEnded(**said, exit=HANDOFF_EXIT))
                return
            if self.known == "unknown" and turn > 50:
                break
            share += self.dice.choice((0.5, 1, 5, 30))
            if self.dice.random() < 0.02:
                share /= 3
        self.happened(*begun, events.LaunchEnded(**said, exit="clean"))

    def stopped_by(self, used):
        """Return what stops it here: the hook and the supervisor use the same rule."""
        if not self.spirals and self.dice.random() < 0.01:
            return "person"
        is_known = self.known != "unknown"
        due = window_rule.is_handoff_due(WindowUsage(used, self.window, self.known), self.at)
        assert due is (is_known and used * 100 >= self.at * self.window)
        windows = {"m": self.window} if is_known else {}
        rule = window_rule.make_brake_rule(
            BRAKE, self.at, windows, window=None, transcript="", at_once=False
        )
        assert due is (rule is not None and used >= dict(rule.limits)["m"])
        return "threshold" if due else ""

    def should_halt(self):
        first, _, by = self.handed[-1] if self.handed else (0, "", "person")
        if by == "person":
            return False
        tight = [one * 8 * 100 >= self.at * 7 * self.window for one, _, _ in self.handed[1:]]
        alone = [work for _, work, by in self.handed if by == "threshold"]
        is_idle = len(alone) > 2 and alone[-1] != "" and len({*alone[-3:]}) == 1
        is_full = first * 100 >= self.at * self.window
        return is_full or tight[-2:] == [True, True] or is_idle or len(alone) >= HANDOFFS_MOST


@pytest.mark.heavy
def test_ten_thousand_histories():
    """Never two for one crossing, none on an unknown window, and a spiral always halts."""
    dice = random.Random(SEED)
    fired = spirals = unknown = far = 0
    for _ in range(HISTORIES):
        cycle = Cycle(dice)
        cycle.live()
        assert len({*cycle.triggered}) == len(cycle.triggered), "a session is handed off once"
        handed = window_rule.count_handoffs(cycle.projection.attempts.values())
        assert handed == cycle.checkpoints == max(cycle.fresh - 1, 0)
        fired += len(cycle.triggered)
        if cycle.known == "unknown":
            unknown += 1
            assert {by for _, _, by in cycle.handed} <= {"person"}
            assert cycle.is_over
        elif cycle.spirals:
            spirals += 1
            far += cycle.base < cycle.at / 2
            assert not cycle.is_over
            assert cycle.halts == 2, "also after a person's word"
            most = 3 if cycle.work == "idle" else HANDOFFS_MOST
            assert len(cycle.triggered) <= 2 * most
    assert min(fired, spirals, unknown, far) > 200, "the histories show what they are for"


def test_a_session_that_starts_at_exactly_the_share_of_the_threshold_has_hardly_any_room():
    """At a threshold of 80 %, that is 70 %."""
    first = handed(1, first=20, at=81)
    at_share = [handed(n, first=70, at=81) for n in (2, 3)]
    below_share = [handed(n, first=69, at=81) for n in (2, 3)]
    assert isinstance(window_rule.decide_halt([first, *at_share], 80), EnterSafeMode)
    assert window_rule.decide_halt([first, *below_share], 80) is None


def test_the_notification_of_many_handoffs_counts_the_new_one():
    assert window_rule.describe_too_many(HANDOFFS_MANY).startswith(f"{HANDOFFS_MANY + 1} handoffs")
