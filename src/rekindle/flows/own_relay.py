"""A relay file of the agent's own (`relay:`), in the project, for loops that are written for it.

The committed relay is shown there when a cycle begins. What the agent has written there when the
cycle ends is its relay. An edit between two cycles is taken over when the next one begins. Its
author is not known: a process that `keep:` names can write there too. Only an edit before the
agent's first launch counts as the person's.
"""

from pathlib import Path

from rekindle.documents import relay as relays
from rekindle.errors import CheckFailedError, DocumentError, RekindleError
from rekindle.flows.world import Agent, Trouble, World
from rekindle.policy.settings import RELAY_BYTES, STOP_SECONDS
from rekindle.stores.files.recovery import BY_AGENT, BY_HAND
from rekindle.stores.files.writer import archived_digest
from rekindle.system import disk, inside


class OwnRelay:
    def __init__(self, agent: Agent, world: World) -> None:
        self._agent, self._world = agent, world
        self._root, self._name = Path(agent.project), agent.relay

    def begin(self) -> None:
        """Take over what was written since, and show the relay that then counts."""
        if not self._name:
            return
        written = self.read_new()
        if written is not None:
            try:
                with self._world.store.writer(self._agent.name, wait=STOP_SECONDS) as writer:
                    by = BY_AGENT if writer.projection.attempts else BY_HAND
                    writer.commit_relay(relays.parse(written), by=by)
            except (DocumentError, CheckFailedError) as error:
                self._world.tell(Trouble(f"{self._name} cannot be used as a relay: {error}"))
                return  # an edit is not overwritten
        self.show()

    def show(self) -> None:
        """Write the committed relay to the file."""
        data = self._world.store.document(self._agent.name, "relay")
        try:
            inside.make_folder(self._root, self._name)  # a CLI may be given it by its name
            if data is not None and data != inside.read(self._root, self._name, RELAY_BYTES):
                inside.replace(self._root, self._name, data)
        except RekindleError as error:
            self._world.tell(Trouble(str(error)))

    def read_new(self) -> bytes | None:
        """Return what the file holds, if no committed relay has that text; None: nothing new."""
        try:
            data = inside.read(self._root, self._name, RELAY_BYTES)
        except RekindleError as error:
            self._world.tell(Trouble(str(error)))
            return None
        return None if data is None or not data.strip() or self._is_known(data) else data

    def _is_known(self, data: bytes) -> bool:
        """Return whether the archive has this text, as it is or as it would be committed.

        The names of archived documents end with the beginning of their hash, all of one length.
        An agent can put a file of another name there.
        """
        texts = [data]
        try:
            rendered = relays.render(relays.parse(data))
            texts.append(self._world.store.redaction.text(rendered).encode())
        except DocumentError:
            pass
        known = {archived_digest(text) for text in texts}
        names = disk.entries(self._world.store.folder(self._agent.name).archive)
        return any(name.removesuffix(".md").rpartition("-")[2] in known for name in names)
