"""A policy that is changed in one place is detected.

Each row of the tables that decide over a restart, a hang or a missing supervisor is changed to
every other plausible answer, or dropped; checks are left out or reordered; settings are ignored. A
short life, full of the faults that the change concerns, must break a promise. A change without any
visible effect is listed as such, with the reason.
"""

import msgspec
import pytest
from host import HOUR, YEAR, Host, Scenario
from msgspec.structs import replace

from rekindle.documents.manifest_keys import Budget
from rekindle.flows.launches import progress_bounds
from rekindle.formats.validation import Duration
from rekindle.policy.exits import (
    backoff,
    restart,
    session_choice,
)
from rekindle.policy.exits.restart import (
    EnterSafeMode,
    StopRun,
    WaitUntil,
)
from rekindle.policy.exits.stop_reasons import EXIT_KINDS, REACTIONS, STOP_REASONS, find_reaction
from rekindle.policy.progress import (
    idle,
    work_progress,
)
from rekindle.policy.settings.runtime_settings import (
    LimitSettings,
    ProgressSettings,
    RestartSettings,
    RuntimeSettings,
    WatchSettings,
)
from rekindle.policy.supervision import (
    budget,
    hang,
    next_move,
    run_moves,
    watchdog_table,
)
from rekindle.policy.supervision.run_moves import CloseCycle
from rekindle.policy.supervision.watchdog_table import WatchFacts
from unit.policy.progress import test_idle as idle_table
from unit.policy.progress import test_work_progress as signs_table
from unit.policy.supervision import test_watchdog_table as table

LIVES = 12
"""So many lives, of a few weeks each, at most: one that breaks a promise is enough."""
ALL_CRASHES = {"crash": 1, "crashes": 3, "broken session": 3, "idle hang": 1}
LIMITS = {"limit": 2, "unknown limit": 1, "early limit": 1, "past limit": 1, "crash": 1}
OPERATOR = {"stop": 2, "run": 1, "restart": 1, "restart --fresh": 1, "ctrl-c": 1}
CONCERNS = {
    "clean": {"clean": 1},
    "crash": {"crashes": 1, "crash": 1},
    "hang": {"idle hang": 1, "crash": 1, "crashes": 1},
    "resume-failed": {"broken session": 3, "crash": 1, "crashes": 1},
    "lost": {"kills": 1, "kill -9": 1},
    "context-full": {"full window": 2, "crash": 1, "an operator interrupts": 1},
    "handoff": {"handed off": 2, "crash": 1, "an operator interrupts": 1},
    "limit": LIMITS,
    "overload": {"overload": 1},
    "network": {"network": 1},
    "interrupted": {"an operator interrupts": 1},
    "auth": {"auth": 1},
    "billing": {"billing": 1},
    "misconfigured": {"misconfigured": 1},
    "budget": {"cli budget": 1},
    "no-permission": {"no permission": 1},
}
"""The faults by which each row is put to the test."""
SHORT = WatchSettings(silence=Duration(120), idle_call=Duration(900))
SILENT = {"idle hang": 2, "busy hang": 1, "sigstop": 2, "long call": 2, "background": 2}
SILENT |= {"does not exit": 1, "crash": 1, "hang in a call": 1}


def scenario(mix, **more):
    return Scenario(**{"mix": mix, "gap": HOUR / 2} | more)


def find_violation(scenario, seed):
    """Return the promise that a life of a week breaks, or an empty string."""
    try:
        Host(scenario, seed).live(YEAR / 50)
    except Exception as error:  # noqa: BLE001 - also a policy that breaks is found out
        return repr(error)
    return ""


BLAMELESS = {}
"""The violations without a change: none, if the promises are right."""


def require_blameless(scenario, seed):
    """Fail if a life breaks a promise without a change. Each life is lived once."""
    unchanged = msgspec.structs.replace(scenario, given=None)
    life = (repr(unchanged), seed)
    if life not in BLAMELESS:
        BLAMELESS[life] = find_violation(unchanged, seed)
    assert BLAMELESS[life] == ""


def expect_caught(change, *scenarios):
    """Fail unless a life breaks a promise with the change, and none without it."""
    lives = ((one, seed) for seed in range(LIVES) for one in scenarios)
    caught = next((life for life in lives if find_violation(*life)), None)
    assert caught, "the oracle did not notice"
    change.undo()
    require_blameless(*caught)


def expect_unnoticed(*scenarios):
    for seed in range(2):
        for one in scenarios:
            assert find_violation(one, seed) == ""


@pytest.fixture
def change():
    """Changes of the policy, which can be undone within a test."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def of_row(kind):
    stays = {"stays": True} if kind == "clean" else {}
    often = RestartSettings(max_crashes={"resume-failed": 3, "hang": 5}.get(kind))
    return scenario(CONCERNS[kind], runtime=RuntimeSettings(restart=often), **stays)


EQUIVALENT = {
    ("clean", "person"): "a person at the terminal has ended it: safe mode in either word",
}


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        (kind, other)
        for kind in EXIT_KINDS
        for other in REACTIONS
        if find_reaction(kind) != other and (kind, other) not in EQUIVALENT
    ],
)
def test_another_reaction(change, kind, other):
    """The reaction to every exit, changed to every other one."""
    change.setitem(STOP_REASONS, kind, replace(STOP_REASONS[kind], reaction=other))
    expect_caught(change, of_row(kind))


def with_flag(change, member, flag):
    row = REACTIONS[member]
    change.setitem(REACTIONS, member, replace(row, **{flag: not getattr(row, flag)}))


MIXED = {"crash": 2, "crashes": 1, "broken session": 1, "full window": 1, "overload": 1}
MIXED |= {"handed off": 1}
MIXED |= {"an operator interrupts": 1, "kills": 1, "unknown limit": 1, "past limit": 1}
NEVER_FOLLOWED = {"done", "person", "replace"}
"""Nothing is started after these, or a refused resume is left out: nothing is counted or paused."""


def of_reaction(member, **more):
    """Return lives full of the exits that are reacted to in this way, then mixed ones."""
    mixes = [CONCERNS[kind] for kind in EXIT_KINDS if find_reaction(kind) == member]
    concerned = {fault: weight for mix in mixes for fault, weight in mix.items()}
    mix = {"crash": 1, "crashes": 1} | concerned
    return scenario(mix, gap=HOUR / 4, **more), scenario(MIXED, gap=HOUR / 10, **more)


@pytest.mark.parametrize("member", sorted(set(REACTIONS) - NEVER_FOLLOWED))
def test_another_set_of_what_counts_as_a_crash(change, member):
    with_flag(change, member, "counts")
    # A usage limit is probed after 15 to 60 minutes: a shorter window would hold one of them.
    few = RestartSettings(max_crashes=3, window=Duration(6 * HOUR))
    expect_caught(change, *of_reaction(member, runtime=RuntimeSettings(restart=few)))


@pytest.mark.parametrize("member", sorted(set(REACTIONS) - NEVER_FOLLOWED))
def test_another_set_of_what_is_followed_by_a_pause(change, member):
    with_flag(change, member, "pauses")
    expect_caught(change, *of_reaction(member))


OF_HANGS = (
    scenario(SILENT, runtime=RuntimeSettings(watch=SHORT)),
    scenario(SILENT, runtime=RuntimeSettings(watch=SHORT), tells=False),
    scenario(
        SILENT,
        runtime=RuntimeSettings(
            watch=WatchSettings(silence=Duration(300), tool_timeout=Duration(1800))
        ),
    ),
)


@pytest.mark.parametrize(
    ("place", "answer"),
    [
        (place, answer)
        for place, row in enumerate(hang.HANG_TABLE)
        for answer in ("fine", "say", "end", "reap", "dropped")
        if answer != row.answer
    ],
)
def test_another_answer_to_silence(change, place, answer):
    """Every row of `hang.HANG_TABLE`, with each other answer, and left out."""
    row = hang.HANG_TABLE[place]
    new = () if answer == "dropped" else (hang.HangRow(answer, row.words, row.fits),)
    change.setattr(
        hang, "HANG_TABLE", (*hang.HANG_TABLE[:place], *new, *hang.HANG_TABLE[place + 1 :])
    )
    expect_caught(change, *OF_HANGS)


MISREAD = {
    "an idle child": lambda signs: signs.children_work or signs.children > 0,
    "no child": lambda signs: signs.works and not signs.reports,
    "a CLI that spins": lambda signs: signs.children_work or signs.works,
    "no own work": lambda signs: signs.children_work,
}


@pytest.mark.parametrize("what", MISREAD)
def test_another_process_that_counts_as_working(change, what):
    change.setattr(hang, "is_working", MISREAD[what])
    expect_caught(change, *OF_HANGS)


OF_WATCHDOGS = tuple(
    scenario(
        {"kill -9": 3, "kill all": 2, "reboot": 1, "marker": 3, "clean": 2, "turn": 4}
        | {"full disk": 2}
        | OPERATOR,
        budget=Budget(tokens=300_000),
        stays=stays,
    )
    for stays in (False, True)
)
SAME_DEED = {
    ("running", "dropped"): "of one that is supervised nothing else is asked",
    ("running", "turned"): "before it is started its lock is looked at once more",
} | {
    (row.words, how): "no simulated life damages a log"
    for row in watchdog_table.WATCH_TABLE
    for how in ("turned", "dropped")
    if row.fits(
        WatchFacts(supervised=False, desired="running", is_tampered=True, may_miss_stop=True)
    )
    and not row.starts
}
"""Only a text differs, and no life depends on it: the table's own test has to notice."""


@pytest.mark.parametrize("how", ["turned", "dropped"])
@pytest.mark.parametrize("place", range(len(watchdog_table.WATCH_TABLE)))
def test_another_answer_of_the_watchdog(change, place, how):
    """Every row of `watchdog_table.WATCH_TABLE`, with the other answer, and left out."""
    row = watchdog_table.WATCH_TABLE[place]
    turned = msgspec.structs.replace(row, starts=not row.starts)
    new = (turned,) if how == "turned" else ()
    change.setattr(
        watchdog_table,
        "WATCH_TABLE",
        (*watchdog_table.WATCH_TABLE[:place], *new, *watchdog_table.WATCH_TABLE[place + 1 :]),
    )
    if (row.words, how) not in SAME_DEED:
        expect_caught(change, *OF_WATCHDOGS)
        return
    expect_unnoticed(*OF_WATCHDOGS)
    with pytest.raises(AssertionError):
        run_table()


def run_table():
    for case in table.CASES:
        table.test_every_row(*case)


@pytest.mark.parametrize("counts", [True, False])
def test_another_reading_of_the_marker(change, counts):
    """`.clean-exit` counts if it is older than the operator's command, or never at all."""
    rows = [
        msgspec.structs.replace(row, fits=lambda facts: counts and facts.marker is not None)
        if row.fits is watchdog_table._has_valid_marker
        else row
        for row in watchdog_table.WATCH_TABLE
    ]
    assert rows != list(watchdog_table.WATCH_TABLE)
    change.setattr(watchdog_table, "WATCH_TABLE", tuple(rows))
    expect_caught(change, *OF_WATCHDOGS)


def moves(order):  # noqa: C901 - one for each check
    """`next_move`, with its checks in a given order."""

    def desired(known, tried, **how):
        return StopRun("stopped") if known.desired == "stopped" else None

    def safe(known, tried, **how):
        return EnterSafeMode(known.safe.why, known.safe.words) if known.is_safe else None

    def done(known, tried, *, stays, **how):
        return CloseCycle() if tried and tried[-1].exit == "clean" and not stays else None

    def money(known, tried, *, now, cap, **how):
        words = budget.describe_reached_cap(
            known.run_spending(), cap, began=known.began_at, now=now
        )
        return StopRun("budget", words) if words else None

    def verdict(known, tried, *, now, runtime, stays, **how):
        recent = [one for one in tried if one.seq > known.since]
        return restart.decide_restart(
            recent, now=now, runtime=runtime, stays=stays, stopped=known.stopped
        )

    def went(known, tried, **how):
        found = verdict(known, tried, **how)
        return None if isinstance(found, WaitUntil) else found

    def paused(known, tried, *, runtime, fruitless, **how):
        return idle.decide_pause(fruitless, runtime.progress)

    def waits(known, tried, *, now, runtime, fruitless, **how):
        own = verdict(known, tried, now=now, runtime=runtime, **how)
        found = [own, idle.decide_pace(fruitless, runtime.progress, now)]
        return max((one for one in found if one), key=lambda one: one.until, default=None)

    def whatever_was_said(known, tried, *, now, runtime, stays, **how):
        return restart.decide_restart(
            tried, now=now, runtime=runtime, stays=stays, stopped=known.stopped
        )

    every = (desired, safe, done, money, went, paused, waits, whatever_was_said)
    checks = {one.__name__: one for one in every}

    def next_move(known, tried, **how):
        found = (checks[name](known, tried, **how) for name in order)
        return next(
            (one for one in found if one is not None), None
        ) or session_choice.choose_session(tried)

    return next_move


RIGHT = ("desired", "safe", "done", "money", "went", "paused", "waits")
LAST = ("went", "paused", "waits")
OF_CHECKS = (
    scenario(
        {"turn": 8, "last turn": 2, "auth": 2, "crashes": 1, "kill -9": 1} | OPERATOR,
        budget=Budget(tokens=150_000),
    ),
    scenario({"auth": 2, "clean": 1, "kill -9": 3, "stop": 1}, budget=Budget(hours=2.0)),
    scenario({"crash": 2, "an operator interrupts": 2, "restart": 0.2, "nothing": 4}),
)


def test_the_right_order_of_the_checks(change):
    """The copy that is changed below is, unchanged, as good as the original."""
    change.setattr(run_moves, "decide_next_move", moves(RIGHT))
    expect_unnoticed(*OF_CHECKS)


@pytest.mark.parametrize(
    "order",
    [
        ("safe", "desired", "done", "money", *LAST),
        ("desired", "done", "money", "safe", *LAST),
        ("money", "desired", "safe", "done", *LAST),
        ("desired", "money", "safe", "done", *LAST),
        ("desired", "safe", "money", "done", *LAST),
        ("went", "desired", "safe", "done", "money", "paused", "waits"),
        *[
            tuple(one for one in RIGHT if one != left_out)
            for left_out in RIGHT
            if left_out != "done"
        ],
        ("desired", "safe", "done", "money", "whatever_was_said", "paused", "waits"),
    ],
    ids=" ".join,
)
def test_another_order_of_the_checks(change, order):
    change.setattr(run_moves, "decide_next_move", moves(order))
    expect_caught(change, *OF_CHECKS)


OF_THRESHOLDS = ({"crashes": 4, "crash": 2, "overload": 1}, {"crashes": 1, "idle hang": 1})
OTHER = RestartSettings(
    max_crashes=4,
    window=Duration(400),
    cooldown=Duration(20),
    max_cooldown=Duration(100),
    healthy_after=Duration(200),
)


@pytest.mark.parametrize("name", RestartSettings.__struct_fields__)
def test_a_threshold_of_restarts_that_is_ignored(change, name):
    """The manifest says another number, and the default is gone by instead."""
    ignores = msgspec.structs.replace(OTHER, **{name: getattr(RestartSettings(), name)})
    given = RuntimeSettings(restart=ignores)
    kept = RuntimeSettings(restart=OTHER)
    lives = [scenario(mix, gap=HOUR / 10, runtime=kept, given=given) for mix in OF_THRESHOLDS]
    expect_caught(change, *lives)


@pytest.mark.parametrize(
    ("kept", "mix"),
    [
        (RuntimeSettings(watch=SHORT), SILENT),
        (RuntimeSettings(watch=WatchSettings(tool_timeout=Duration(900))), {"long call": 1}),
        (RuntimeSettings(watch=WatchSettings(idle_call=Duration(900))), {"hang in a call": 1}),
        (RuntimeSettings(limits=LimitSettings(wait=False)), LIMITS),
    ],
    ids=["silence", "tool_timeout", "idle_call", "limits.wait"],
)
def test_another_threshold_that_is_ignored(change, kept, mix):
    expect_caught(change, scenario(mix, runtime=kept, given=RuntimeSettings()))


OF_NIGHTS = scenario({"unknown sentence": 1, "commit": 4, "nothing": 10}, gap=3 * HOUR)
OF_PROGRESS = (
    scenario({"crash": 1}, gap=HOUR / 4, appends=True),
    scenario({"commit": 1, "turn": 2, "crash": 1, "nothing": 40}, gap=HOUR, appends=True),
    scenario({"turn": 20, "commit": 1, "crash": 1, "nothing": 4}, billed=True),
    OF_NIGHTS,
    scenario({"crash": 2, "an operator interrupts": 2, "commit": 2, "restart": 0.2, "nothing": 4}),
    scenario({"clean": 3, "crash": 1, "nothing": 2}, gap=HOUR / 10),
    scenario({"clean": 4, "commit": 1, "nothing": 1}, cycles=10**6, gap=HOUR / 5),
)
"""Lives with more and with less progress."""


SEEN_IN_LIVES = {"a commit", "an artefact that does not change in every launch"}


@pytest.mark.parametrize("place", range(len(work_progress.PROGRESS_TABLE)))
def test_a_kind_of_progress_that_does_not_count(change, place):
    """Commits and files are seen in these lives; for the others, the table's own test notices."""
    dropped = work_progress.PROGRESS_TABLE[place]
    rows = tuple(row for row in work_progress.PROGRESS_TABLE if row is not dropped)
    change.setattr(work_progress, "PROGRESS_TABLE", rows)
    if dropped.words in SEEN_IN_LIVES:
        expect_caught(change, *OF_PROGRESS)
        return
    with pytest.raises(AssertionError):
        signs_table.test_every_kind_of_progress()


@pytest.mark.parametrize(
    ("where", "name", "other"),
    [
        (
            work_progress,
            "PROGRESS_TABLE",
            (work_progress.ProgressRow("anything", lambda signs, before: True),),
        ),
        (
            work_progress,
            "PROGRESS_TABLE",
            (work_progress.ProgressRow("nothing", lambda signs, before: False),),
        ),
        (
            work_progress,
            "PROGRESS_TABLE",
            (
                work_progress.PROGRESS_TABLE[0],
                work_progress.ProgressRow("any file", lambda signs, before: bool(signs.artefacts)),
            ),
        ),
        (idle, "decide_pause", lambda found, bounds: None),
        (idle, "decide_pace", lambda found, bounds, now: None),
        (idle, "render_idle_notice", lambda found, now, wait=None: ""),
        (backoff, "LIMIT_PROBE_SECONDS", 60.0),
        (backoff, "MAX_LIMIT_PROBE_SECONDS", 7200.0),
        (restart, "count_instant_failures", lambda tried: 0),
        (restart, "PROBED_CRASHES", 3),
        (restart, "PROBED_CRASHES", 8),
        (restart, "INSTANT_SECONDS", 1.0),
        (progress_bounds.ProgressGuard, "reached", lambda self, usd, billed: ""),
    ],
    ids=lambda one: one if isinstance(one, str) else None,
)
def test_another_rule_of_progress(change, where, name, other):
    change.setattr(where, name, other)
    expect_caught(change, *OF_PROGRESS)


@pytest.mark.parametrize("forgotten", ["began", "intervened", "cycles", "attempts"])
def test_progress_that_is_measured_from_elsewhere(change, forgotten):
    measure = idle.sum_idle_launches

    def other(attempts, cycles, *, began, intervened, stopped):
        if forgotten == "attempts":
            attempts = [*attempts][-5:]
        return measure(
            attempts,
            {} if forgotten == "cycles" else cycles,
            began=0 if forgotten == "began" else began,
            intervened=0 if forgotten == "intervened" else intervened,
            stopped=stopped,
        )

    change.setattr(next_move.idle, "sum_idle_launches", other)
    if forgotten != "cycles":
        expect_caught(change, *OF_PROGRESS)
        return
    with pytest.raises(AssertionError):  # no relay is written in these lives
        idle_table.test_a_cycle_that_moved_forward_counts_for_its_launches()


OF_STOPS = scenario({"stop": 4, "crash": 1, "run": 1, "nothing": 1})


@pytest.mark.parametrize(
    ("where", "name"), [(idle, "sum_idle_launches"), (restart, "decide_restart")]
)
def test_a_stop_after_which_launches_are_not_counted_again(change, where, name):
    """A `run` after a `stop` would wait for the launches that the operator has ended."""
    original = getattr(where, name)
    change.setattr(where, name, lambda *facts, stopped, **how: original(*facts, stopped=0, **how))
    expect_caught(change, OF_STOPS)


OTHER_BOUNDS = ProgressSettings(paced_after=5, max_launches=15, max_hours=5.0, max_usd=5.0)


@pytest.mark.parametrize("name", ProgressSettings.__struct_fields__)
def test_a_bound_on_work_without_progress_that_is_ignored(change, name):
    """The manifest says another number, and the default is used instead."""
    ignores = msgspec.structs.replace(OTHER_BOUNDS, **{name: getattr(ProgressSettings(), name)})
    kept, given = RuntimeSettings(progress=OTHER_BOUNDS), RuntimeSettings(progress=ignores)
    expect_caught(
        change, *(msgspec.structs.replace(one, runtime=kept, given=given) for one in OF_PROGRESS)
    )


@pytest.mark.parametrize("most", [12, 20])
def test_a_night_that_is_lost_to_an_unknown_sentence(change, most):
    """A default bound of fewer launches would end a night of probes."""
    is_over = idle.find_reached_bound

    def other(found, bounds, **how):
        fewer = msgspec.structs.replace(bounds, max_launches=most)
        return is_over(found, fewer, **how)

    change.setattr(idle, "find_reached_bound", other)
    expect_caught(change, OF_NIGHTS)
