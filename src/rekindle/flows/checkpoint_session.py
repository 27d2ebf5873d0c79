"""A session is about to be compacted by its CLI: what it has done is written down before."""

from collections.abc import Callable

import msgspec

from rekindle.documents import checkpoint
from rekindle.documents import event as events
from rekindle.documents.event import SessionCompacted
from rekindle.flows.read_transcript import ReadTranscript
from rekindle.flows.summarize import Summarize, document
from rekindle.policy.settings import LOCK_WAIT_SECONDS
from rekindle.ports import Harness
from rekindle.stores.files import FileStore
from rekindle.summarizers.mechanical import Known


class CheckpointSession(msgspec.Struct, frozen=True):
    """Without a model: the CLI waits, and is about to ask one for a summary of its own."""

    agent: str
    store: FileStore
    harness: Harness
    known: Callable[[str], Known]
    """What is known of the work since a commit."""

    def write(self, compacted: SessionCompacted) -> None:
        seen = self.store.read(self.agent)
        life = seen.projection.lives.get(compacted.session)
        if compacted.visitor or life is None or not life.transcript:
            return
        read = ReadTranscript(life.transcript, self.harness)
        known = self.known(seen.committed.began.head)
        try:
            turns = (one for one in read.all() if not one.thread)
            made = Summarize(None, cap=0).make("checkpoint", turns, known)
        finally:
            read.close()
        day = compacted.ts.date()
        found = checkpoint.parse(document(made, known, name=self.agent, day=day))
        with self.store.writer(self.agent, wait=LOCK_WAIT_SECONDS) as writer:
            writer.fold()
            writer.append(
                events.SummaryMade(
                    ts=writer.now(), document="checkpoint", how=made.how, turns=made.turns
                )
            )
            writer.commit_checkpoint(found, by="machine")
            writer.project()
