"""The handoff: when it is due, when it would lead nowhere, and that it never fires for nothing."""

import random
from datetime import UTC, datetime

import pytest

from rekindle.documents import event as events
from rekindle.documents import manifest
from rekindle.documents.launch import Usage
from rekindle.errors import ManifestError
from rekindle.harnesses import claude_code, codex, gemini
from rekindle.policy import fold, handoff, sessions
from rekindle.policy.cycle import Fresh
from rekindle.policy.fold import Projection
from rekindle.policy.restart import HANDED_OFF, Safe
from rekindle.policy.run import HandOn, next_move
from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import Relay, Runtime

NOW = datetime(2026, 4, 9, 12, tzinfo=UTC)
SEED = 20260409
HISTORIES = 10_000
WINDOWS = (200_000, 272_000, 1_000_000, 1_048_576)


def handed(seq, *, first, at, by="threshold"):
    return Attempt(
        cycle=1,
        session=f"s{seq}",
        resumes=False,
        seq=seq,
        exit=HANDED_OFF,
        ended=NOW,
        ended_seq=seq + 1,
        opened=True,
        handed_by=by,
        percent=at,
        first_percent=first,
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
    """What nobody can read is an error with its line; nothing is guessed."""
    assert handoff.threshold(None, Relay()) == 80
    assert handoff.threshold(said('{trigger: "token_limit_1%"}'), Relay()) == 1
    assert handoff.threshold(said('{trigger: "token_limit_100%"}'), Relay()) == 100
    assert handoff.threshold(said("{persona: summarizer}"), Relay(70)) == 70
    assert handoff.threshold(said("on"), Relay(70)) == 70
    assert handoff.threshold(said("off"), Relay()) is None
    for trigger in ("80%", "token_limit_80", "token_limit_0%", "token_limit_101%", "token_limit_%"):
        with pytest.raises(ManifestError, match=r"rekindle.yaml:6: .* is no trigger") as error:
            said(f'{{trigger: "{trigger}"}}')
        assert "token_limit_80%" in str(error.value.hint)
    for trigger in ("Token_limit_80%", " token_limit_80%", "token_limit_08%", "token_limit_８０%"):
        with pytest.raises(ManifestError, match="is no trigger"):
            said(f'{{trigger: "{trigger}"}}')


def test_a_step_of_a_pipeline_is_read_as_strictly():
    step = '{id: one, handover: {compaction: {trigger: "80"}}}'
    with pytest.raises(ManifestError, match=r"rekindle.yaml:4: '80' is no trigger"):
        manifest.parse(f"version: 1\npipelines:\n  build:\n    steps: [{step}]\n")


def test_what_a_launch_is_held_to():
    """Tokens where the window is known before, a share where every line tells it, else nothing."""
    claude, other, third = (one.brake(interactive=False) for one in (claude_code, codex, gemini))

    def rule(brake, at, windows=None, window=None, *, asked=False):
        found = handoff.rule(brake, at, windows or {}, window=window, transcript="/t", asked=asked)
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


def test_what_nobody_knows_is_never_due():
    assert handoff.is_due(Usage(160_000, 200_000, "reported"), 80)
    assert not handoff.is_due(Usage(159_999, 200_000, "reported"), 80)
    assert not handoff.is_due(Usage(999_999, 200_000, "unknown"), 80)
    assert not handoff.is_due(Usage(999_999, None, "reported"), 80)
    assert not handoff.is_due(Usage(999_999, 200_000, "exact"), None)
    assert not handoff.is_due(None, 80)


def test_a_session_that_is_full_from_its_first_turn_on_halts():
    assert handoff.verdict([handed(1, first=20, at=81)], 80) is None
    found = handoff.verdict([handed(1, first=80, at=80)], 80)
    assert isinstance(found, Safe)
    assert "80 % full at its first turn" in found.words
    assert "compaction: off" in found.words


def test_two_handoffs_that_make_no_room_halt():
    """One may happen; what happened before the last that made room is forgotten."""
    tight = [handed(n, first=75, at=81) for n in range(1, 4)]
    assert handoff.verdict(tight[:1], 80) is None
    assert handoff.verdict(tight[:2], 80) is None
    assert isinstance(handoff.verdict(tight, 80), Safe)
    roomy = handed(9, first=30, at=81)
    assert handoff.verdict([*tight[:2], roomy, *tight[2:]], 80) is None


def test_what_a_person_asked_for_is_never_too_much():
    asked = [handed(n, first=85, at=86, by="person") for n in range(9)]
    assert handoff.verdict(asked, 80) is None


def test_one_thing_after_the_other():
    """First the checkpoint, then the fresh session; what halted goes on after a restart."""
    tried = [handed(1, first=20, at=85)]

    def move(run, *, checkpoint=0):
        told = {"now": NOW, "runtime": Runtime(), "threshold": 80, "checkpoint": checkpoint}
        return next_move(run, tried, **told)

    run = fold.Run(began=0)
    assert move(run) == HandOn()
    assert move(run, checkpoint=1) == HandOn(), "that one is of an earlier session"
    assert move(run, checkpoint=3) == Fresh(recovery=False)
    tried = [handed(1, first=85, at=85)]
    assert isinstance(move(run), Safe)
    assert move(fold.Run(began=0, restarted=5)) == HandOn()


def happened(*told):
    numbered = [
        type(one)(**{**{f: getattr(one, f) for f in one.__struct_fields__}, "seq": seq})
        for seq, one in enumerate(told, 1)
    ]
    return fold.fold(Projection("a"), numbered)


def test_a_handoff_is_folded_from_the_log():
    triggered = events.HandoffTriggered(
        ts=NOW, launch="l", cycle=1, session="s", by="threshold", tokens=90, window=100, first=20
    )
    ended = events.LaunchEnded(ts=NOW, launch="l", cycle=1, session="s", exit=HANDED_OFF)
    for order in ((triggered, ended), (ended, triggered)):
        one = happened(*order).attempts["l"]
        assert (one.handed_by, one.percent, one.first_percent) == ("threshold", 90, 20)
    learnt = [
        events.WindowLearnt(ts=NOW, harness="h", model="m", window=size) for size in (200, 1000)
    ]
    assert happened(*learnt).windows["h"]["m"].window == 1000
    assert happened(events.HandoffAsked(ts=NOW)).handoff_asked == 1
    assert sessions.of_cycle(happened(triggered, ended).attempts, 1)["l"].exit == HANDED_OFF


class Cycle:
    """A cycle of random sessions, run as the policy says; what must hold is said in other words."""

    def __init__(self, dice):
        self.dice = dice
        self.at = dice.choice((1, 50, 80, 90, 100))
        self.window = dice.choice(WINDOWS)
        self.known = dice.choice(("reported", "exact", "estimated", "reported", "unknown"))
        self.tried = []
        self.halted = None
        # A spiral: however often it is handed off, the next session begins as full as the last.
        self.spirals = dice.random() < 0.3
        self.base = dice.uniform(0.9, 1.2) * self.at if self.spirals else None

    def first(self):
        return self.base if self.spirals else self.dice.uniform(0, 1.2) * self.at

    def session(self, number):
        """Readings that climb by jumps, compacted now and then; ends where it is handed off."""
        share, first, fired = self.first(), None, 0
        for _ in range(self.dice.randrange(1, 40)):
            reading = Usage(int(share * self.window / 100), self.window, self.known)
            first = reading.percent if first is None else first
            due = handoff.is_due(reading, self.at)
            assert due is (
                self.known != "unknown" and reading.tokens * 100 >= self.at * self.window
            )
            if due:
                fired += 1
                self.tried.append(handed(number * 10, first=first, at=reading.percent))
                break
            share += self.dice.choice((0.1, 1, 5, 30))
            if self.dice.random() < 0.02:
                share /= 3
        assert fired <= 1, "a session is handed off once"
        return fired

    def live(self):
        for number in range(1, 60):
            if not self.session(number):
                return
            self.halted = handoff.verdict(self.tried, self.at)
            if self.halted:
                return


def test_ten_thousand_histories():
    """Never two for one crossing, none on an unknown window, and a spiral always halts."""
    dice = random.Random(SEED)
    fired = spirals = unknown = 0
    for _ in range(HISTORIES):
        cycle = Cycle(dice)
        cycle.live()
        crossings = len({one.session for one in cycle.tried})
        assert crossings == len(cycle.tried)
        if cycle.known == "unknown":
            unknown += 1
            assert not cycle.tried
        fired += len(cycle.tried)
        if cycle.spirals and len(cycle.tried) > 2:
            spirals += 1
            assert cycle.halted, cycle.tried
            assert len(cycle.tried) <= 3
        if cycle.halted:
            last = cycle.tried[-1]
            tight = [one.first_percent * 8 >= cycle.at * 7 for one in cycle.tried[1:]]
            assert last.first_percent >= cycle.at or tight[-2:] == [True, True]
    assert min(fired, spirals, unknown) > 200, "the histories show what they are for"
