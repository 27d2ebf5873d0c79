"""Keep a relay file inside the project up to date (the `relay:` setting).

Some agents already have instructions that name such a file. When a cycle begins, Rekindle writes
the committed relay to the file. When the cycle ends, the file's content becomes the next relay.
Edits made between two cycles are adopted when the next cycle begins. The author of such an edit is
unknown, because a background process can also write the file; only edits made before the agent's
first launch are attributed to a person.
"""

from pathlib import Path

from rekindle.documents import relay as relays
from rekindle.errors import CheckFailedError, DocumentError
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts, TroubleReport
from rekindle.policy.settings.runtime_settings import RELAY_BYTES, STOP_SECONDS
from rekindle.stores.files.document_writer import find_archived_digest
from rekindle.stores.files.recovery import author_of_edit
from rekindle.system.files import durable_files, inside_folder


class OwnRelay:
    def __init__(self, agent: AgentSpec, world: SupervisorPorts) -> None:
        self._agent, self._ports = agent, world
        self._root, self._name = Path(agent.project), agent.relay

    def begin(self) -> None:
        """Adopt any edit to the file, then write the current relay to it."""
        if not self._name:
            return
        written = self.read_new()
        if written is not None:
            try:
                with self._ports.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
                    by = author_of_edit(writer.projection)
                    writer.commit_relay(relays.parse(written), by=by)
            except (DocumentError, CheckFailedError) as error:
                self._ports.tell(TroubleReport(f"{self._name} cannot be used as a relay: {error}"))
                return  # keep the edit
        self.show()

    def show(self) -> None:
        """Write the committed relay to the file."""
        data = self._ports.store.document(self._agent.name, "relay")
        with self._ports.report_trouble():
            # The CLI receives this path, so its folder has to exist.
            inside_folder.make_folder(self._root, self._name)
            if data is not None and data != inside_folder.read(self._root, self._name, RELAY_BYTES):
                inside_folder.replace(self._root, self._name, data)

    def read_new(self) -> bytes | None:
        """Return the file's content, or None if it matches a committed relay."""
        data = None
        with self._ports.report_trouble():
            data = inside_folder.read(self._root, self._name, RELAY_BYTES)
        return None if data is None or not data.strip() or self._is_known(data) else data

    def _is_known(self, data: bytes) -> bool:
        """Return whether the archive contains this text, as written or in its committed form.

        Archived relays are recognized by the hash at the end of their names. Other files, which an
        agent may have added, are ignored.
        """
        texts = [data]
        try:
            rendered = relays.render(relays.parse(data))
            texts.append(self._ports.store.redaction.text(rendered).encode())
        except DocumentError:
            pass
        digests = {find_archived_digest(text) for text in texts}
        names = durable_files.list_entries(self._ports.store.folder(self._agent.name).archive)
        return any(name.removesuffix(".md").rpartition("-")[2] in digests for name in names)
