"""Translate the words that a person searches for into an expression for the index."""

from collections.abc import Sequence


def render_match(words: Sequence[str], file: str = "") -> str:
    """Return the FTS5 expression for texts with all words, and with tool calls that name a file.

    An argument of several words is a phrase, and a word that ends with `*` matches every word that
    begins with it. Return "" if there is nothing to search for.
    """
    parts = [_render_phrase(word) for word in words if _has_letter(word)]
    if _has_letter(file):
        parts.append(f"calls : {_render_phrase(file)}")
    return " AND ".join(f"({part})" for part in parts)


def _has_letter(text: str) -> bool:
    """Return whether the index has any word of this text. It splits at all other characters."""
    return any(character.isalnum() for character in text)


def _render_phrase(text: str) -> str:
    is_prefix = text.endswith("*") and text[-2:-1].isalnum()
    # A command line may contain bytes that are not text, and the index accepts text only.
    quoted = text.rstrip("*").encode("utf-8", "replace").decode()
    quoted = quoted.replace('"', '""').replace("\0", " ")
    return f'"{quoted}"*' if is_prefix else f'"{quoted}"'
