"""Checks for tables that must have one row for each value of a type."""

from collections.abc import Collection
from typing import get_args


def require_rows(table: Collection[str], *kinds: object) -> None:
    """Raise TypeError unless a table has one row for each value of the Literals in `kinds`."""
    require_same(table, {word for literal in kinds for word in get_args(literal)})


def require_same(table: Collection[str], kinds: Collection[str]) -> None:
    """Raise TypeError unless a table has exactly these keys."""
    if differ := set(table) ^ set(kinds):
        raise TypeError(f"values without a row, or rows without a value: {sorted(differ)}")
