"""Test the shape of a single value: whether it looks random, like a placeholder, or like code.

For most secrets, the name is enough evidence. These tests are used only if the name is ambiguous.
They look at the value's shape first, and then at the number of different characters.
"""

import re
from itertools import pairwise

PLACEHOLDER_CHARACTER = "\x02"
"""Character that replaces each character of a placeholder during the search."""

_PLACEHOLDER = re.compile(
    r"""(?ix)
    [^a-z0-9]* (?:
        \$[A-Za-z_]\w* | \$[{(] .* | %\w+% | %[-\w(){}]* | \{\{ .* | < [^>]* >? | \[ [^\]]* \]?
      | \{[a-z_][\w.]*[\[(] .*
      | null | none | nil | undefined | true | false | yes | no | on | off | n/?a | todo | tbd
      | string | bytes | number | int | integer | float | bool(?:ean)? | object | any | str
      | required | optional | default | empty | unset | hidden | masked | removed | redacted .*
      | change[-_ ]?(?:me|it|this) .* | (?:my|your|some|dummy|fake|sample|insert|enter)
        [-_ ][a-z_\- ]* | x{3,} .* | foo | bar | baz | foobar | abc | abcdef? | test | testing
      | secret | password | passwd | pass | token | apikey | api[-_]key | key
    ) [^a-z0-9]*
    """
)
_HOLDS_PLACEHOLDER = re.compile(
    r"(?i)\$\{|\{\{|x{6}|\*{3}|\.{3}|…|example|placeholder|your|changeme"
)
_TEMPLATE_FIELD = re.compile(r"\{([A-Za-z_]\w*(?:[.\[]['\"]?\w+['\"]?\]?)*(?:![a-z])?|\d?)\}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z_$.\-]*[0-9]{0,2}")
_ENOUGH = 96
"""Maximum number of leading characters to examine. Examining more would only take longer."""
_SIGNS = re.compile(r"[^A-Za-z0-9]")
_TURNS = re.compile(r"(?<=[A-Za-z])[0-9]|(?<=[0-9])[A-Za-z]")
_VERSION = re.compile(r"v?\d+(?:\.\d+)+[\w.+-]*")
_FILE = re.compile(
    r"(?:~|\.{0,2})/[\w.@/~+-]*"
    r"|[\w./-]+\.(?:py|js|ts|json|ya?ml|toml|md|txt|pem|crt|cer|key|pub|cfg|conf|ini|env|html?|css"
    r"|go|rs|c|h|java|rb|sh|xml|lock|log|csv|sql|db|po|rst|png|svg|jpe?g|gif|webp|pdf|zip|gz|tar|mp4|woff2?|map|parquet|bin|exe|dll"
    r"|so|whl|vue|tsx|jsx)"
)
_NUMBER = re.compile(r"[-+]?[\d.,_]+(?:[eE][-+]?\d+)?[,}\]]*")
_TAG = re.compile(r"![A-Za-z][\w./:-]*|arn:aws[\w-]*:\S*")
# Letter pairs that make up 90 % of the pairs in words: a first letter, and the letters that may
# follow it.
_PAIRS = frozenset(
    row[0] + second
    for row in (
        "abcdgiklmnprstuvxy baeilorsu cacehiklmorstu dadefilorstu eabcdefgilmnopqrstvwxy"
        " faefilortu gaehilnorsu haeiot iabcdefglmnoprstvxz keis ladeilopstuy mabeilmopsu"
        " nacdefgiklnopstuv oabcdfgiklmnoprstuvw paehiloprstuy qu racdefgiklmnoprstuy"
        " sacefhiklopstuy tacdefhilmoprstuy uabcefilmnprst vaei waeior xept ypst ze"
    ).split()
    for second in row[1:]
)
_FEW_PAIRS = 0.65
"""Share of common letter pairs below which letters count as random."""
_SOME_PAIRS = 0.85
"""Share of common letter pairs below which text with frequent case changes counts as random."""
_SHORTEST_HEX = 16
_RANDOM_PIECE = 20
"""Minimum length of a random path segment that counts as base64. Base64 may begin with a slash."""
_PHRASE = re.compile(r"[A-Za-z]{3,12}(?:[-_. ][A-Za-z]{3,12}){3,}[-_.\w]*")
_LETTERS = re.compile(r"[A-Za-z2-7]+")
_CODE = re.compile(r"[(){}\[\]<>|]|::|->|=>|&&|\$\(")


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder for a secret, such as `<token>`."""
    value = value[:_ENOUGH]
    if (
        PLACEHOLDER_CHARACTER in value
        or _PLACEHOLDER.fullmatch(value)
        or _HOLDS_PLACEHOLDER.search(value)
    ):
        return True
    if "{" in value and _is_template(value):
        return True
    return len(value) >= 8 and len(set(value.lower())) <= 3


def _is_template(value: str) -> bool:
    """Return whether a value consists of fields in braces, as in `{user}:{password}`."""
    fields = _TEMPLATE_FIELD.findall(value)
    rest = _TEMPLATE_FIELD.sub("", value)
    return (
        bool(fields)
        and not any(is_random(field, 12) for field in fields)
        and not is_random(rest, 6)
        and not has_mixed_characters(rest)
    )


def is_uuid(value: str) -> bool:
    return _UUID.fullmatch(value) is not None


def is_word(value: str) -> bool:
    """Return whether a value could be a password made of lowercase letters only."""
    return value.isalpha() and value.islower() and len(value) >= 8 and not is_placeholder(value)


def is_phrase(value: str) -> bool:
    """Return whether a value consists of four or more words with separators."""
    return _PHRASE.fullmatch(value[:_ENOUGH]) is not None and not is_placeholder(value)


def has_uuid(value: str) -> bool:
    return _UUID.search(value) is not None


def is_hex(value: str) -> bool:
    return _HEX.fullmatch(value) is not None


def is_number(value: str) -> bool:
    return _NUMBER.fullmatch(value) is not None


def is_file(value: str) -> bool:
    value = value[:_ENOUGH]
    if _FILE.fullmatch(value) is None:
        return False
    longest = max(value.split("/"), key=len)
    return not (value[0] == "/" and "." not in value and is_random(longest, _RANDOM_PIECE))


def is_code(value: str) -> bool:
    """Return whether a value is an identifier, a call, a version or a file name."""
    value = value[:_ENOUGH]
    return bool(
        _IDENTIFIER.fullmatch(value)
        or _CODE.search(value)
        or _VERSION.fullmatch(value)
        or is_file(value)
    )


_EXPRESSION = re.compile(
    r"[A-Za-z_]\w*(?:\.\w+)*[(\[]|[=!]==|&&|::|\w<\w|^&\w|\|\||\w\.\w+\.\w+[.(;)]"
)


def is_expression(value: str) -> bool:
    """Return whether a value is code that computes something."""
    return _EXPRESSION.search(value[:_ENOUGH]) is not None


def is_tag(value: str) -> bool:
    """Return whether a value is a YAML tag or an ARN, which only refers to a secret."""
    return _TAG.fullmatch(value) is not None


def is_random_letters(value: str, least: int = 12) -> bool:
    """Return whether a value is random letters, base32, or at least 16 hex digits."""
    value = value[:_ENOUGH].rstrip("=")
    if is_hex(value) and len(value) >= _SHORTEST_HEX:
        return has_digit(value) and not value.isdigit() and len(set(value)) >= _SHORTEST_HEX // 3
    if len(value) < least or not _LETTERS.fullmatch(value) or len(set(value)) < least // 2:
        return False
    pairs = [a + b for a, b in pairwise(value.lower())]
    share = sum(pair in _PAIRS for pair in pairs) / len(pairs)
    return share < (_SOME_PAIRS if _count_case_changes(value) * 3 >= len(value) else _FEW_PAIRS)


def has_digit(value: str) -> bool:
    return any(map(str.isdigit, value))


def is_random(value: str, least: int = 16) -> bool:
    """Return whether a value looks random: letters mixed with digits, or an unusual mix of cases.

    Names written by people rarely alternate between letters and digits, and have capitals only at
    the start of words.
    """
    body = _SIGNS.sub("", value[:_ENOUGH])
    size = len(body)
    if size < least or len(set(body)) < min(9, size // 2):
        return False
    turns = len(_TURNS.findall(body))
    digits = sum(map(str.isdigit, body))
    if digits == size:
        return False
    if is_hex(body):
        return turns * 8 >= size >= max(least, 20)
    if turns >= max(3, size // 10):
        return True
    uppers = sum(map(str.isupper, body))
    lowers = size - uppers - digits
    return min(uppers, lowers) * 4 >= size and _count_case_changes(body) * 4 >= size


def _count_case_changes(body: str) -> int:
    """Count the case changes. In random text, the case changes at about every second letter."""
    return sum(a.isupper() != b.isupper() for a, b in pairwise(body) if a.isalpha() and b.isalpha())


def has_mixed_characters(value: str) -> bool:
    """Return whether a value mixes kinds of characters like a password, unlike a plain word."""
    value = value[:_ENOUGH]
    kinds = (
        any(map(str.islower, value))
        + any(map(str.isupper, value[1:]))
        + 2 * any(map(str.isdigit, value))
        + 2 * bool(re.search(r"[^\w.\-/ :,]", value))
    )
    return kinds >= 3 or (kinds == 2 and len(value) >= 8 and any(map(str.isdigit, value)))
