"""A text on the screen that is painted only if it has changed."""

from rich.text import Text
from textual.widgets import Static


class PlainStatic(Static):
    """A text without markup."""

    def show(self, text: Text) -> None:
        """Show a text, unless it is shown already."""
        if not is_same(self.content, text):
            self.update(text)


def is_same(before: object, after: Text) -> bool:
    """Return whether two texts also have the same colours, which Text's own comparison ignores."""
    return (
        isinstance(before, Text)
        and before == after
        and (before.style, before.spans) == (after.style, after.spans)
    )
