"""Decide whether a persona's `ask` rules require a person's approval for a tool call."""

WORD_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
REMOVED = {ord(character): None for character in "\"'\\"}


def is_asked(rules: list[list[str]], tool: str, arguments: object) -> bool:
    """Return whether one of the rules covers a call. A rule is a tool's name and a text.

    A name that ends with `*` covers every tool whose name starts like that. A rule with a text
    covers the calls whose arguments contain the text at the start of a word. Asking too often is
    safe, so the rule also covers a command inside another one, or in quotes.
    """
    words = normalize(" ".join(list_texts(arguments)))
    return any(
        is_named(name, tool) and (not text or contains(words, normalize(text)))
        for name, text in rules
    )


def is_named(name: str, tool: str) -> bool:
    return tool.startswith(name[:-1]) if name.endswith("*") else tool == name


def list_texts(value: object) -> list[str]:
    """Return all texts in a JSON value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [text for item in value for text in list_texts(item)] if isinstance(value, list) else []


def normalize(text: str) -> str:
    """Return a text without quotes and backslashes, with one space between words."""
    return " ".join(text.translate(REMOVED).split())


def contains(words: str, text: str) -> bool:
    """Return whether the text occurs at the start of a word. `*` in the text matches anything."""
    first, *others = text.split("*")
    start = words.find(first)
    while start >= 0:
        if not start or words[start - 1] not in WORD_CHARACTERS:
            position = start + len(first)
            for other in others:
                position = words.find(other, position) if position >= 0 else -1
                position = position + len(other) if position >= 0 else -1
            if position >= 0:
                return True
        start = words.find(first, start + 1)
    return False
