"""Format counts with a singular or plural noun."""


def render_count(number: float, noun: str, plural: str = "") -> str:
    """Return a count with its noun, such as "1 loop", "1.5 hours" or "1,200 processes"."""
    amount = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{amount} {noun if number == 1 else plural or f'{noun}s'}"
