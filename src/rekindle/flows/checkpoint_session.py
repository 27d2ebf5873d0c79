"""A session is about to be compacted by its CLI: what it has done is written down before."""

from collections.abc import Callable, Iterator

import msgspec

from rekindle.documents import checkpoint
from rekindle.documents.event import SessionCompacted
from rekindle.documents.transcript import Turn
from rekindle.flows.read_transcript import ReadTranscript
from rekindle.flows.session_turns import without_primer
from rekindle.flows.summarize import Summarize, document, noted
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
    task: str = ""
    stays: bool = False

    def write(self, compacted: SessionCompacted) -> None:
        seen = self.store.read(self.agent)
        life = seen.projection.lives.get(compacted.session)
        if compacted.visitor or life is None or not life.transcript:
            return
        read = ReadTranscript(life.transcript, self.harness)
        known = self.known(seen.committed.began.head)
        try:
            secretless = self.store.redaction.text
            turns: Iterator[Turn]
            turns = (one.without_secrets(secretless) for one in read.all() if not one.thread)
            if life.launch:
                turns = without_primer(turns, self.task, is_supervised=not self.stays)
            made = Summarize(None, cap=0).make("checkpoint", turns, known)
        finally:
            read.close()
        day = compacted.ts.date()
        found = checkpoint.parse(document(made, known, name=self.agent, day=day))
        with self.store.writer(self.agent, wait=LOCK_WAIT_SECONDS) as writer:
            writer.fold()
            writer.append(noted(made, ts=writer.now()))
            # A person's own session goes on with it itself; the next one is asked for other things.
            own = "" if life.launch else compacted.session
            writer.commit_checkpoint(found, by="machine", session=own)
            writer.project()
