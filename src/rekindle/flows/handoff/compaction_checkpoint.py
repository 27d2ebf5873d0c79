"""Write a checkpoint before the CLI compacts a session."""

from collections.abc import Callable, Iterator

import msgspec

from rekindle.documents import checkpoint
from rekindle.documents.events import SessionCompacted
from rekindle.documents.transcripts.turns import Turn
from rekindle.flows.transcripts.session_turns import strip_primers
from rekindle.flows.transcripts.summarize_turns import (
    Summarizer,
    make_summary_event,
    render_document,
)
from rekindle.flows.transcripts.transcript_reader import TranscriptReader
from rekindle.policy.settings.runtime_settings import LOCK_WAIT_SECONDS
from rekindle.ports import Harness
from rekindle.stores.files import FileStore
from rekindle.summarizers.mechanical_summary import KnownWork


class CompactionCheckpointer(msgspec.Struct, frozen=True):
    """Writes the checkpoint without a model, because the CLI waits for it."""

    agent: str
    store: FileStore
    harness: Harness
    known: Callable[[str], KnownWork]
    """Returns the work done since a commit."""
    task: str = ""
    stays: bool = False

    def write(self, compacted: SessionCompacted) -> None:
        seen = self.store.read(self.agent)
        life = seen.projection.lives.get(compacted.session)
        if compacted.visitor or life is None or not life.transcript:
            return
        reader = TranscriptReader(life.transcript, self.harness)
        known = self.known(seen.committed.began.head)
        try:
            redact = self.store.redaction.text
            turns: Iterator[Turn]
            turns = (turn.without_secrets(redact) for turn in reader.all() if not turn.thread)
            if life.launch:
                turns = strip_primers(turns, self.task, is_supervised=not self.stays)
            result = Summarizer(None, cap=0).make("checkpoint", turns, known)
        finally:
            reader.close()
        day = compacted.ts.date()
        document = checkpoint.parse(render_document(result, known, name=self.agent, day=day))
        with self.store.writer(self.agent, wait=LOCK_WAIT_SECONDS) as writer:
            writer.fold()
            writer.append(make_summary_event(result, ts=writer.now()))
            # If the user started the session, the checkpoint is only for that session. The next one
            # is probably about something else.
            only_session = "" if life.launch else compacted.session
            writer.commit_checkpoint(document, by="machine", session=only_session)
            writer.project()
