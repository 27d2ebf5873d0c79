"""The notations in which a value follows its name in files, programs and shells."""

import re
from typing import NamedTuple

Q = r"\x01{0,7}[\"'`]"
"""Pattern for a quotation mark, which may have been escaped."""
_GAP = r"[ \t]{0,24}"


class Separator(NamedTuple):
    """A notation for a name and its value."""

    form: str
    pattern: re.Pattern[str]
    needs: str = ""
    """A literal that the separator contains. Looking for it is faster than trying the pattern."""
    reach: int = 0
    """Number of characters after the name that contain the literal."""


SEPARATORS = (
    # An equals sign, a colon or an arrow, after optional quotes, brackets or a type.
    Separator(
        "assigned",
        re.compile(
            rf"(?:{Q})?\*{{0,2}}\]?\)?(?: \([^)\n]{{1,20}}\))?{_GAP}"
            rf"(?:\?=|\+=|:=|\|\|=|=>|==?|:(?!:)"
            rf"(?:{_GAP}[A-Za-z\[\]. |&<>?]{{1,30}}=(?!=))?)\*{{0,2}}{_GAP}"
        ),
    ),
    # The word `value`, next to the name or on the line below it.
    Separator(
        "valued",
        re.compile(
            rf"(?:{Q})?[,;\x01\s]{{1,40}}(?:[^\n]{{0,60}}?[^\w\n])??(?:{Q})?[vV]alue"
            rf"(?:{Q})?{_GAP}[:=]{_GAP}"
        ),
        *("alue", 160),
    ),
    # A block that contains a default or a value.
    Separator(
        "valued",
        re.compile(
            rf"(?:{Q})?[:\s]{{0,4}}{{[^{{}}]{{0,200}}?(?:default|value|content)"
            rf"(?:{Q})?{_GAP}[:=]{_GAP}"
        ),
        *("{", 16),
    ),
    # An XML element, named by its tag, by an attribute, or by the previous element.
    Separator("element", re.compile(r">(?=[^<\s])"), ">", 1),
    Separator(
        "tagged",
        re.compile(rf"{Q}?[ \t][^<>\n]{{0,60}}>(?=[^<\s])|{Q}[^<>\n]{{0,60}}>(?=[^<\s])"),
        *(">", 80),
    ),
    Separator("tagged", re.compile(r"</\w{1,20}>[\s\x01]{0,40}<\w{1,20}>(?=[^<\s])"), "</", 2),
    # The table cell after the name.
    Separator("celled", re.compile(r"`?\*{0,2}[ \t]{0,24}\|[ \t]{1,24}"), "|", 32),
    # The next argument of a call, or its only one.
    Separator("called", re.compile(rf"(?:{Q}{_GAP},|\(){_GAP}(?=[brfu]{{0,2}}{Q})")),
    # A sentence: "the password for staging is …".
    Separator("prose", re.compile(r"s?[ \t][\w \t'\"/\-]{0,40}?\b(?:is|was|to|=|:)[: \t]{1,3}")),
    # A space, as after flags, in netrc and in `aws configure set`.
    Separator(
        "spaced",
        re.compile(
            r"(?:[ \t]{1,8}(?:is|was|are|set|to|now|of|as|=>?|->|by|with)(?=[ :]))?:?[ \t]{1,8}"
        ),
    ),
)
