"""The kinds of events in an agent's log, with functions that parse and render their lines.

from rekindle import events

for event in home.agent("scout").events(follow=True):
match event:
case events.RunEnded(why=why):
print(why)
"""

from rekindle.documents.events import *  # noqa: F403 - the same names
from rekindle.documents.events import __all__ as __all__  # noqa: PLC0414 - public
