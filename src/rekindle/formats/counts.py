"""Counts with their noun, in the singular or the plural."""


def render_count(number: int, noun: str, plural: str = "") -> str:
    """Return a count and its noun, such as "1 loop", "2 loops" or "1,200 processes"."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
