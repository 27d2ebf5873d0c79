"""Read, compare and edit an agent's relays."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import unified_diff
from itertools import islice
from typing import TYPE_CHECKING

from rekindle.documents import relay as documents
from rekindle.documents.events import DocumentRejected, RelayCommitted, RelayProposed
from rekindle.documents.relay import Relay, RelayField
from rekindle.errors import CheckFailedError, NotFoundError
from rekindle.policy.relay.relay_check import classify_relay
from rekindle.policy.settings.runtime_settings import LOCK_WAIT_SECONDS
from rekindle.stores.files import FileStore
from rekindle.system import clock
from rekindle.thresholds.screens import STOP_POLL_SECONDS

if TYPE_CHECKING:
    from rekindle.api.home import Home


class RelayDraft:
    """A relay that is being edited. `text` and the fields can be read and set."""

    def __init__(self, relay: Relay) -> None:
        self.relay = relay

    @property
    def text(self) -> str:
        return documents.render(self.relay)

    @text.setter
    def text(self, text: str) -> None:
        self.relay = documents.parse(text)

    @property
    def next_action(self) -> str:
        return self[RelayField.NEXT_ACTION]

    @next_action.setter
    def next_action(self, words: str) -> None:
        self[RelayField.NEXT_ACTION] = words

    def __getitem__(self, field: RelayField | str) -> str:
        return self.relay.content(RelayField(field)) or ""

    def __setitem__(self, field: RelayField | str, content: str) -> None:
        self.relay = self.relay.with_content(RelayField(field), content)


class AgentRelays:
    """An agent's relays."""

    def __init__(self, home: "Home", agent: str) -> None:
        self._home, self._agent = home, agent

    def text(self) -> str:
        """Return the current relay's text.

        Raises:
            NotFoundError: The agent has no relay yet.
        """
        store = self._home.store
        data = store.document(self._agent, "relay") if store.exists(self._agent) else None
        if data is None:
            is_here = self._home.project.settings.fleet is None
            raise NotFoundError(
                f"{self._agent} has no relay yet",
                hint="set one with `rekindle relay set FILE`"
                if is_here
                else "the agent's first cycle will write one",
            )
        return documents.render(documents.parse(data))

    def read(self) -> Relay:
        return documents.parse(self.text())

    def revisions(self, last: int | None = None) -> list[RelayCommitted]:
        """Return the committed relays, newest first."""
        files = self._home.require_files("relay history")
        if not files.exists(self._agent):
            return []
        committed = (
            event for event in files.newest_events(self._agent) if isinstance(event, RelayCommitted)
        )
        return list(islice(committed, last))

    def revision_text(self, revision: RelayCommitted) -> str:
        """Return the text of an earlier relay."""
        data = self._home.require_files("relay history").committed_relay(self._agent, revision)
        if data is None:
            raise NotFoundError(
                f"{revision.path} is missing from the archive", hint="restore it from a backup"
            )
        return data.decode("utf-8", "replace")

    def diff(self, older: int | None = None, newer: int | None = None) -> list[str]:
        """Return the lines of a unified diff of two relays, by default of the last two."""
        revisions = self.revisions()
        after = self._find_revision(revisions, newer, 0)
        before = self._find_revision(revisions, older, 1)
        return self.compare(before, after)

    def compare(self, before: RelayCommitted, after: RelayCommitted) -> list[str]:
        return list(
            unified_diff(
                self.revision_text(before).splitlines(),
                self.revision_text(after).splitlines(),
                f"relay {before.seq}",
                f"relay {after.seq}",
                lineterm="",
            )
        )

    def _find_revision(
        self, revisions: list[RelayCommitted], seq: int | None, place: int
    ) -> RelayCommitted:
        matches = [each for each in revisions if each.seq == seq]
        if seq is None:
            matches = revisions[place : place + 1]
        if not matches:
            what = "fewer than two relays" if seq is None else f"no relay {seq}"
            raise NotFoundError(
                f"{self._agent} has {what}",
                hint=f"list the relays with `rekindle relay history {self._agent}`",
            )
        return matches[0]

    def base(self) -> str:
        """Return the hash of the committed relay, or "" if there is none yet."""
        store = self._home.store
        if not store.exists(self._agent):
            return ""
        committed = store.read(self._agent).committed.documents.get("relay")
        return committed.sha256 if committed else ""

    def set(self, text: str, *, base: str = "", take_over: bool = False) -> bool:
        """Replace the relay. Return False if the supervisor has not committed it yet.

        Raises:
            CheckFailedError: The relay is not usable, or `base` is not the hash of the current one.
        """
        files = self._home.require_files("relay set")
        proposed = documents.parse(files.redaction.data(text.encode()))
        require_usable(proposed, self._home.project.settings.runtime.relay.max_relay_tokens)
        before = files.read(self._agent).committed.seq if files.exists(self._agent) else 0
        record = RelayProposed(
            ts=clock.read_clock(), text=documents.render(proposed), by="person", base=base
        )
        is_folded = files.submit(self._agent, record, take_over=take_over)
        deadline = time.monotonic() + (0 if is_folded or not base else LOCK_WAIT_SECONDS)
        while not (is_folded or self._has_decided(files, before)):
            if time.monotonic() >= deadline:
                return False
            time.sleep(STOP_POLL_SECONDS)
        self._require_committed(files, before, record.text)
        return True

    def _list_since(
        self, files: FileStore, seq: int
    ) -> Iterator[RelayCommitted | DocumentRejected]:
        """Yield the relays that were committed or refused after an event, newest first."""
        for event in files.newest_events(self._agent):
            if event.seq <= seq:
                return
            if isinstance(event, RelayCommitted) or (
                isinstance(event, DocumentRejected) and event.document == "relay"
            ):
                yield event

    def _has_decided(self, files: FileStore, seq: int) -> bool:
        return files.read(self._agent).proposed is None and any(self._list_since(files, seq))

    def _require_committed(self, files: FileStore, seq: int, text: str) -> None:
        """Raise an error if this text was refused. Other writers' relays may be in the log too."""
        from rekindle.stores.files.document_writer import find_archived_digest  # noqa: PLC0415 - only writers need it

        digest = find_archived_digest(text.encode())
        for event in self._list_since(files, seq):
            if isinstance(event, DocumentRejected) and digest in event.path:
                raise CheckFailedError(
                    f"the relay was not saved: {event.reason}",
                    hint=f"your text is in {event.path}; repeat the edit on the current relay",
                )

    @contextmanager
    def edit(self) -> Iterator[RelayDraft]:
        """Change the relay, unless it is replaced by another one in the meantime.

        If the supervisor is busy for several seconds, it commits or refuses the edit later.

        Raises:
            CheckFailedError: Another relay was committed since the edit began.
        """
        # Otherwise, the writer would commit a manual edit first, and refuse this one.
        self._home.store.adopt_edits(self._agent)
        # Read the hash first. If a relay is committed in between, this edit is refused.
        base = self.base()
        draft = RelayDraft(self.read())
        before = draft.text
        yield draft
        if draft.text != before:
            self.set(draft.text, base=base)


def require_usable(proposed: Relay, most_tokens: int) -> None:
    """Refuse a relay that the next cycle could not use."""
    report = classify_relay(proposed, most_tokens)
    if not report.usable:
        raise CheckFailedError(
            f"this relay cannot be used: {report.findings[0].message}",
            hint="add a `## Next Action` with one directive; the old relay is unchanged",
        )
