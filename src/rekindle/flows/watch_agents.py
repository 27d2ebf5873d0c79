"""The watchdog: looks after the agents' supervisors, and starts those that are gone.

It holds no lock while it looks, and needs none: of any number of supervisors that are started for
one agent, the first has its lock, and the others end without having done anything.
"""

from collections.abc import Callable, Collection, Sequence

import msgspec

from rekindle.errors import RekindleError
from rekindle.policy import watch
from rekindle.policy.run import Run
from rekindle.policy.watch import Facts
from rekindle.stores.files import FileStore


class Looked(msgspec.Struct, frozen=True):
    agent: str
    started: bool
    words: str


class WatchAgents:
    def __init__(
        self, store: FileStore, start: Callable[[str], int], staying: Collection[str] = ()
    ) -> None:
        """`staying` are the agents that need a person's terminal."""
        self._store, self._start, self._staying = store, start, staying
        self._known: dict[str, tuple[object, Run]] = {}

    def look(self, agents: Sequence[str]) -> list[Looked]:
        """Look once at each; one that cannot be read must not keep the others waiting."""
        return [self._look_at(agent) for agent in agents]

    def _look_at(self, agent: str) -> Looked:
        try:
            found = watch.verdict(self._facts(agent))
            if found.starts:
                self._start(agent)
        except RekindleError as error:
            return Looked(agent, started=False, words=str(error))
        return Looked(agent, started=found.starts, words=found.words)

    def _facts(self, agent: str) -> Facts:
        if not self._store.exists(agent):
            return Facts(supervised=False)
        # The lock first: a supervisor that ends after this has left its word in the log before.
        supervised = self._store.is_supervised(agent)
        if supervised:
            return Facts(supervised=True)
        run = self._run(agent)
        return Facts(
            supervised=False,
            desired=run.desired,
            is_over=run.is_over,
            marker=self._store.folder(agent).clean_exit_says(),
            said=max(run.began, run.restarted, run.wanted),
            stays=agent in self._staying,
        )

    def _run(self, agent: str) -> Run:
        """As it was, where nothing was written since: a thousand idle agents cost next to none."""
        stamp = self._store.folder(agent).stamp()
        known = self._known.get(agent)
        if known is None or known[0] != stamp:
            # Stamped before it was read: what is written meanwhile is seen the next time.
            known = (stamp, self._store.read(agent).projection.run)
            self._known[agent] = known
        return known[1]
