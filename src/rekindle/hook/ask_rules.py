"""Decide whether a persona's `ask` rules require a person's approval for a tool call."""

WORD_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
REMOVED = frozenset("\"'\\")
ESCAPES = ("\\n", "\\r", "\\t")
"""White space in a quoted text of the shell, such as `$'a\\nb'`."""

EXACT_AFTER = (" ", "/", '"', "'")
"""Characters before a command in the rules for Claude Code."""


def is_asked(rules: list[list[str]], tool: str, arguments: object) -> bool:
    """Return whether one of the rules covers a call. A rule is a tool's name and a text.

    A name that ends with `*` covers every tool whose name starts like that. A rule with a text
    covers the calls whose arguments contain the text at the start of a word. Options may stand
    between its words. Asking too often is safe, so the rule also covers a command inside another
    one, or in quotes.
    """
    texts = [text for name, text in rules if is_named(name, tool)]
    if not all(texts):
        return True
    plain = " ".join(list_texts(arguments)) if texts else ""
    spaced = plain.replace("\\\n", "")
    for escape in ESCAPES:
        spaced = spaced.replace(escape, " ")
    readings = [strip(each) for each in dict.fromkeys((plain, spaced))]
    return any(contains(*each, strip(text)[0]) for text in texts for each in readings)


def find_other_spelling(rules: list[list[str]], tool: str, command: str) -> str:
    """Return the text of a rule that covers a command only in another spelling, or "".

    Claude Code asks about a command only if it contains a rule's exact text. The caller refuses
    other spellings, because the CLI would run them without a question.
    """
    for name, text in rules:
        rest = f" {command}"
        for before in EXACT_AFTER:
            rest = rest.replace(f"{before}{text}", before)
        if text and "*" not in text and is_asked([[name, text]], tool, rest):
            return text
    return ""


def is_named(name: str, tool: str) -> bool:
    return tool.startswith(name[:-1]) if name.endswith("*") else tool == name


def list_texts(value: object) -> list[str]:
    """Return all texts in a JSON value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [text for item in value for text in list_texts(item)] if isinstance(value, list) else []


def strip(text: str) -> tuple[str, bytearray]:
    """Return a text without quotes and backslashes, and a mark for each place where one stood.

    The text has one space between words.
    """
    kept: list[str] = []
    marks = bytearray(len(text) + 1)
    for character in text:
        if character in REMOVED:
            marks[len(kept)] = 1
        elif not character.isspace():
            kept.append(character)
        elif kept and kept[-1] != " ":
            kept.append(" ")
    return "".join(kept), marks


def contains(words: str, marks: bytearray, text: str) -> bool:
    """Return whether the text occurs at the start of a word. `*` in the text matches anything.

    The time grows only with the length, because a slow gate would let a call run in some CLIs.
    """
    end = len(words) + 1
    places = [
        place
        for place in range(end)
        if not place or marks[place] or words[place - 1] not in WORD_CHARACTERS
    ]
    for character in text:
        if not places:
            return False
        if character == "*":
            places = list(range(min(places), end))
        elif character == " ":
            places = pass_options(words, marks, places)
        else:
            places = [place + 1 for place in places if words[place : place + 1] == character]
    return bool(places)


def pass_options(words: str, marks: bytearray, places: list[int]) -> list[int]:
    """Return where the next word can start: after a space or quote, or after options.

    Each option can have a value.
    """
    found = {place + 1 for place in places if words[place : place + 1] == " "}
    found |= {place for place in places if marks[place]}
    waiting = list(found)
    while waiting:
        place = waiting.pop()
        if words[place : place + 1] != "-":
            continue
        ends = list_ends(words, marks, place)
        values = [end for end in ends if words[end : end + 1] != "-"]
        ends += [end for value in values for end in list_ends(words, marks, value)]
        waiting += [end for end in dict.fromkeys(ends) if end not in found]
        found.update(ends)
    return list(found)


def list_ends(words: str, marks: bytearray, start: int) -> list[int]:
    """Return where the next word can start. A word with quotes may contain spaces."""
    end = words.find(" ", start)
    if end < 0:
        return []
    opened = marks.find(1, start, end)
    closed = marks.find(1, max(opened + 1, end)) if opened >= 0 else -1
    last = words.find(" ", closed) if closed >= 0 else -1
    return [end + 1, last + 1] if last > end else [end + 1]
