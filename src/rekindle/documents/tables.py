"""Checks for tables that must have one row for each value of a type."""

from collections.abc import Collection
from typing import get_args


def require_rows(table: Collection[str], *kinds: object) -> None:
    """Raise TypeError unless a table has exactly the keys that the Literals in `kinds` name."""
    require_same(table, {word for literal in kinds for word in get_args(literal)})


def require_same(table: Collection[str], kinds: Collection[str]) -> None:
    """Raise TypeError unless a table has exactly these keys."""
    if differ := set(table) ^ set(kinds):
        raise TypeError(f"these values have no row, or these rows no value: {sorted(differ)}")
