"""The watchdog: looks after the agents' supervisors, and starts those that are gone.

It holds no lock while it looks, and needs none: of any number of supervisors that are started for
one agent, the first has its lock, and the others end without having done anything. One of which
nothing comes is tried more and more seldom, and a person is told.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, tzinfo

import msgspec

from rekindle.errors import RekindleError
from rekindle.policy import mornings, watch
from rekindle.policy.fold import Projection
from rekindle.policy.mornings import Due
from rekindle.policy.run import TAMPERED
from rekindle.policy.settings import ARCHIVE_EVERY_SECONDS, BRIEF_RETRY_SECONDS, Brief, Restart
from rekindle.policy.watch import Facts, Tried
from rekindle.stores.files import FileStore


class Looked(msgspec.Struct, frozen=True):
    agent: str
    started: bool
    words: str
    failed: bool = False
    """It was started before, and did not come up."""


class Around(msgspec.Struct, frozen=True):
    """What a watchdog has around it."""

    start: Callable[[str], str]
    """Start a supervisor; returns where, in words, if that is to be reported."""
    last_words: Callable[[str], str]
    """What a supervisor said last that did not come up."""
    notify: Callable[[str, str], Sequence[str]]
    """Tell a person who is not there, of an agent and in which words; returns what went wrong."""
    clock: Callable[[], datetime]
    in_window: Callable[[str], bool] = lambda _: False
    """Whether an agent's supervisor has a tmux window, which is a terminal."""
    archive: Callable[[str], None] = lambda _: None
    """Keep what an agent's sessions have told; a supervisor does that itself."""
    limits: Restart = Restart()
    briefs: "Briefs | None" = None


class Briefs(msgspec.Struct, frozen=True):
    """What a watchdog needs to have briefs written."""

    start: Callable[[], None]
    """Have those written that are due, by somebody else: asking a model takes its time."""
    zone: tzinfo
    limits: Brief = Brief()


class WatchAgents:
    def __init__(self, store: FileStore, around: Around, staying: Collection[str] = ()) -> None:
        """`staying` are the agents that need a person's terminal."""
        self._store, self._around, self._staying = store, around, staying
        self._known: dict[str, tuple[object, Projection]] = {}
        self._kept: dict[str, datetime] = {}
        """When the transcripts of an agent were last kept."""
        self._seen: dict[str, Projection] = {}
        """What was known of an agent in this look."""
        self._begun: dict[str, tuple[Due, int, datetime]] = {}
        """The brief of an agent that was begun last, after which event, and when."""

    def look(self, agents: Sequence[str]) -> list[Looked]:
        """Look once at each; one that cannot be read must not keep the others waiting."""
        self._seen.clear()
        looked = [self._look_at(agent) for agent in agents]
        return self._briefed(looked) if self._around.briefs else looked

    def _look_at(self, agent: str) -> Looked:
        try:
            facts = self._facts(agent)
            if facts.supervised:
                self._store.folder(agent).forget_started()
            found = watch.verdict(facts)
            looked = self._start(agent, facts) if found.starts else _left(agent, found)
            return looked if facts.supervised else self._archived(looked)
        except RekindleError as error:
            return Looked(agent, started=False, words=str(error))

    def _briefed(self, looked: list[Looked]) -> list[Looked]:
        """Have the briefs written that are due: one after the other, whoever's they are."""
        due = {one.agent for one in looked if self._is_due(one.agent)}
        if due and self._around.briefs:
            try:
                self._around.briefs.start()
                words = "its brief is being written"
            except RekindleError as error:
                words = f"its brief is not written: {error}"
            add = {one.agent: f"{one.words}; {words}" for one in looked if one.agent in due}
            looked = [
                msgspec.structs.replace(one, words=add.get(one.agent, one.words)) for one in looked
            ]
        return looked

    def _is_due(self, agent: str) -> bool:
        """Whether a brief is to be written that was not begun a moment ago."""
        briefs, now = self._around.briefs, self._around.clock()
        try:
            if briefs is None or not self._store.exists(agent):
                return False
            # As it was a moment ago, where it was looked at: looking costs more than all else.
            known = self._seen.pop(agent, None) or self._projection(agent)
        except RekindleError:
            return False  # it was told when it was looked at
        found = mornings.due(
            now,
            briefs.zone,
            briefs.limits,
            known.briefed,
            lives=known.lives,
            attempts=known.attempts,
            last_active=known.last_active,
        )
        if found is None:
            return False
        before = self._begun.get(agent)
        is_begun = before is not None and before[:2] == (found, known.briefed.seq)
        if is_begun and before and abs((now - before[2]).total_seconds()) < BRIEF_RETRY_SECONDS:
            return False
        self._begun[agent] = (found, known.briefed.seq, now)
        return True

    def _archived(self, looked: Looked) -> Looked:
        """Keep what sessions have told that a person has started: nobody else does."""
        agent, now = looked.agent, self._around.clock()
        before = self._kept.get(agent)
        is_due = before is None or abs((now - before).total_seconds()) >= ARCHIVE_EVERY_SECONDS
        if not is_due or not self._store.exists(agent):
            return looked
        self._kept[agent] = now
        try:
            if any(life.transcript for life in self._projection(agent).lives.values()):
                self._around.archive(agent)
        except RekindleError as error:
            words = f"{looked.words}; its transcripts are not kept: {error}"
            return msgspec.structs.replace(looked, words=words)
        return looked

    def _start(self, agent: str, facts: Facts) -> Looked:
        """Start its supervisor, unless the last one that was started has not come up yet."""
        now, seq = self._around.clock(), self._projection(agent).seq
        before = self._tried(agent, seq)
        if self._store.is_supervised(agent):
            # Between the lock and the log: what it has written since makes the note void.
            return _left(agent, watch.verdict(Facts(supervised=True)))
        rests = watch.rests(before, now, self._around.limits)
        found = watch.verdict(msgspec.structs.replace(facts, rests=rests))
        if before is None:
            where = self._begin(agent, Tried(seq, now))
            return Looked(agent, started=True, words="; ".join(filter(None, (found.words, where))))
        if not found.starts and before.times == 1:
            return _left(agent, found)  # it may be coming up just now
        words = f"it did not come up: {self._around.last_words(agent)}"
        if found.starts:
            self._begin(agent, Tried(seq, now, before.times + 1, told=True))
            if not before.told:
                words = "; ".join([words, *self._around.notify(agent, words)])
        return Looked(agent, started=found.starts, words=words, failed=True)

    def _begin(self, agent: str, tried: Tried) -> str:
        # Noted before: killed in between, it passes for started, which costs a pause at most.
        self._store.folder(agent).note_started(msgspec.json.encode(tried))
        return self._around.start(agent)

    def _tried(self, agent: str, seq: int) -> Tried | None:
        """What was started last, if nothing has come of it."""
        said = self._store.folder(agent).started_says()
        try:
            tried = msgspec.json.decode(said, type=Tried) if said else None
        except msgspec.MsgspecError:
            return None
        return tried if tried is not None and tried.seq == seq else None

    def _facts(self, agent: str) -> Facts:
        # The lock first: a supervisor that ends after this has left its word in the log before.
        # Also of a folder that is gone: its supervisor may be ending the agent just now.
        if self._store.is_supervised(agent):
            return Facts(supervised=True)
        if not self._store.exists(agent):
            return Facts(supervised=False)
        known = self._seen[agent] = self._projection(agent)
        run = known.run
        return Facts(
            supervised=False,
            desired=run.desired,
            is_over=run.is_over,
            marker=self._store.folder(agent).clean_exit_says(),
            said=max(run.began, run.restarted, run.wanted),
            is_tampered=run.is_safe and run.safe.why == TAMPERED,
            may_miss_stop=known.may_miss_stop,
            stays=agent in self._staying and not self._around.in_window(agent),
        )

    def _projection(self, agent: str) -> Projection:
        """As it was, where nothing was written since: a thousand idle agents cost next to none."""
        stamp = self._store.stamp(agent)
        known = self._known.get(agent)
        if known is None or known[0] != stamp:
            # Stamped before it was read: what is written meanwhile is seen the next time.
            known = (stamp, self._store.read(agent).projection)
            self._known[agent] = known
        return known[1]


def _left(agent: str, found: watch.Row) -> Looked:
    return Looked(agent, started=False, words=found.words)
