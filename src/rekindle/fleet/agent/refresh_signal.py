"""Continue a workflow as a new one on request, with the current key and on the current build.

A worker encrypts with its first key, but an idle workflow keeps the history that it has. Until a
new run replaces that history, all workers need the key that was current when it was written, and
one worker must run the build that wrote it.
"""

from temporalio import workflow

from rekindle.fleet.agent.continued_runs import must_continue

REFRESH_SIGNAL = "refresh"


class RefreshSignal:
    """Adds the signal to a workflow that counts its messages."""

    _messages: int
    _is_refresh_due = False

    @workflow.signal(name=REFRESH_SIGNAL)
    def refresh(self) -> None:
        self._is_refresh_due = True
        self._messages += 1

    def _must_continue(self, most_events: int) -> bool:
        return self._is_refresh_due or must_continue(most_events)
