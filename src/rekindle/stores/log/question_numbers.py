"""Store the number of an agent's last question outside the workspace.

The log has this number too, but an agent can rewrite its log. If a number were reused, the command
in an old notification would answer a different question.
"""

import re

from rekindle.policy.projection.projection import Projection
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.stores.log import event_log
from rekindle.system.files import durable_files

_DIGITS = 6
"""Maximum number of digits in a question number. Keeps a forged log from making ids long."""


def load(folder: AgentFolder) -> int:
    """Return the number of the last question, or 0."""
    data = durable_files.read_bytes(folder.private.last_question) if folder.private else None
    return int(data) if data and data.strip().isdigit() else 0


def keep(folder: AgentFolder, number: int) -> None:
    """Record durably that a question number has been used."""
    if folder.private is not None and number > load(folder):
        durable_files.replace_file(folder.private.last_question, b"%d\n" % number)


def keep_accepted(folder: AgentFolder, projection: Projection) -> None:
    """Record a log's question numbers, because accepting the log may lose them.

    The log's lines count only if the user's folder has no number, as in a project from another
    host.
    """
    numbers = [question.number for question in projection.questions.values()]
    if not load(folder):
        pattern = rb'"question":\s*"%s-([0-9]{1,%d})"' % (re.escape(folder.name.encode()), _DIGITS)
        ids = re.compile(pattern)
        for _, line in event_log.read_lines(folder.log, 0):
            numbers += [int(digits) for digits in ids.findall(line)]
    keep(folder, max(numbers, default=0))
