"""The style of a text in a terminal."""

from typing import TypedDict


class TextStyle(TypedDict, total=False):
    """Text style for command output."""

    fg: str | None
    bold: bool
    dim: bool
