"""Find secrets by their name: `DB_PASSWORD=…`, `"apiKey": "…"`, `--token …`.

The search starts from words such as "password" and examines only the text around them. It first
looks for a separator between name and value, as used in files, programs and shells, and then
examines the value. The weaker the name, the more random the value must look.
"""

import re
from string import ascii_letters, digits
from typing import NamedTuple

from rekindle.policy.redact import (
    known_tokens,
    value_tests,
)
from rekindle.policy.redact.named_values import is_harmless, is_secret
from rekindle.policy.redact.secret_names import NameStrength, rate_name


class NamedSecret(NamedTuple):
    start: int
    end: int
    rule: str


# Parts of names that indicate a secret, in lower case. Each is searched for separately, because
# searching for plain words costs almost nothing, and a single pattern for all of them takes a
# hundred times as long.
_WORDS = tuple(
    re.compile(word)
    for word in (
        *"passw passphrase secret securestring credential token key auth bearer cookie".split(),
        *"session mnemonic webhook kennwort contrase wachtwoord senord парол".split(),
        *"密码 密碼 密钥 口令 パスワード 비밀번호".split(),
        *(
            rf"{word}(?![a-z])"
            for word in "pass pwd creds cred otp pin dsn pw pat senha mdp passe psk".split()
        ),
        *("salt", "seed", "pepper", "sig(?==)", "code(?==)", "signature(?==)"),
    )
)


_BESIDE = re.compile(
    r"(?i)\b(?:public|cache|primary|foreign|sort|partition|hash|host|lookup|object|map|dict) \Z"
)
_NAME_CHARACTERS = ascii_letters + digits + "_.-"
_NAME_AFTER = re.compile(r"[\w.\-]{0,60}")
_Q = r"\x01{0,7}[\"'`]"
_QUOTE = re.compile(_Q)
_GAP = r"[ \t]{0,24}"
_SEPARATORS = (
    # An equals sign, a colon or an arrow, after optional quotes, brackets or a type.
    (
        "assigned",
        re.compile(
            rf"(?:{_Q})?\*{{0,2}}\]?\)?(?: \([^)\n]{{1,20}}\))?{_GAP}"
            rf"(?:\?=|\+=|:=|\|\|=|=>|==?|:(?!:)"
            rf"(?:{_GAP}[A-Za-z\[\]. |&<>?]{{1,30}}=(?!=))?)\*{{0,2}}{_GAP}"
        ),
    ),
    # The word `value`, next to the name or on the line below it.
    (
        "valued",
        re.compile(
            rf"(?:{_Q})?[,;\x01\s]{{1,40}}(?:[^\n]{{0,60}}?[^\w\n])??(?:{_Q})?[vV]alue"
            rf"(?:{_Q})?{_GAP}[:=]{_GAP}"
        ),
    ),
    # A block that contains a default or a value.
    (
        "valued",
        re.compile(
            rf"(?:{_Q})?[:\s]{{0,4}}{{[^{{}}]{{0,200}}?(?:default|value|content)"
            rf"(?:{_Q})?{_GAP}[:=]{_GAP}"
        ),
    ),
    # An XML element, named by its tag, by an attribute, or by the previous element.
    ("element", re.compile(r">(?=[^<\s])")),
    ("tagged", re.compile(rf"{_Q}?[ \t][^<>\n]{{0,60}}>(?=[^<\s])|{_Q}[^<>\n]{{0,60}}>(?=[^<\s])")),
    ("tagged", re.compile(r"</\w{1,20}>[\s\x01]{0,40}<\w{1,20}>(?=[^<\s])")),
    # The table cell after the name.
    ("celled", re.compile(r"`?\*{0,2}[ \t]{0,24}\|[ \t]{1,24}")),
    # The next argument of a call, or its only one.
    ("called", re.compile(rf"(?:{_Q}{_GAP},|\(){_GAP}(?=[brfu]{{0,2}}{_Q})")),
    # A sentence: "the password for staging is …".
    ("prose", re.compile(r"s?[ \t][\w \t'\"/\-]{0,40}?\b(?:is|was|to|=|:)[: \t]{1,3}")),
    # A space, as after flags, in netrc and in `aws configure set`.
    (
        "spaced",
        re.compile(
            r"(?:[ \t]{1,8}(?:is|was|are|set|to|now|of|as|=>?|->|by|with)(?=[ :]))?:?[ \t]{1,8}"
        ),
    ),
)
_SCHEME = re.compile(
    r"(?:bearer|basic|token|digest|apikey|api-key|negotiate|ntlm|key|bot|splunk|genie-?key|sso-key"
    r"|oauth|session|jwt|dsn|raw|secret|pve[a-z]{2,10}|kgat|ssws|discogs|app_?key)[ =:]{1,3}",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"[brfu]{0,2}(?P<q>\x01{0,7}[\"'`])(?P<v>[^\n]{1,4000}?)(?<!\x01)(?P=q)", re.IGNORECASE
)
_OPENED = re.compile(r"[brfu]{0,2}\x01{0,7}[\"'`](?P<v>[^\s\x01\"'`]{4,2000})", re.IGNORECASE)
_CUT_MARK = 40
_CUT = re.compile(r"(?:\.{3}|…| \[?(?:truncated|snip|cut|…)[^\n]{0,20})\Z")
_BARE = re.compile(r"(?P<v>[^\s\x01\"'`]{4,2000})")
_NEXT_FIELD = re.compile(r"[;&](?=[\w .\-]{1,40}=|\s|$)|&amp;|,(?=[\w\"']+[=:])|</|#(?=/)")
_JOINED = re.compile(
    r"[ \t]{0,4}[\x01\\]{0,7}[+.]?[ \t\x01\\]{0,8}\n?[^\n\w\"']{0,40}?(?=\x01{0,7}[\"'])"
)
_NEAR = 120
"""Maximum number of characters between the end of a name and the start of a random word."""
_LONGEST_WORD = 400
_RANDOM = re.compile(r"(?:(?<=\s)|(?<=\s[\"'`]))[A-Za-z0-9_\-.~]{20,400}(?=[\s\"'`),;]|…|\Z)")
_MOST_PIECES = 100
_NOT_WEAK = frozenset({"prose", "element", "tagged", "celled", "called"})
_SETTER = re.compile(
    r"(?:^|[\s(;&|#])(?:set(?:[ \t]{1,4}-{1,2}\w{1,12}){0,3}|setenv|setx|setq|defvar|ENV|ARG|define"
    r"|def|secret set|config set)[ \t]{1,4}[\"':]?\Z"
)
_NEEDS = {"element": ">", "tagged": ">", "celled": "|"}
_SETTER_REACH = 40
_TAG_REACH = 60
_ARN_REACH = 120
_SPACE = re.compile(r"\s")
# A value on the following lines: a YAML block, a heredoc, a multi-line literal.
_BLOCK = re.compile(
    r"(?:[|>][+-]?\d?[+-]?|<<[-~]?[ \t]?[\"']?(?P<end>\w{2,20})[\"']?"
    r"|[brfu]{0,2}(?P<q>\"{3}|'{3})\\?)"
    r"[ \t]{0,8}(?=\x01{0,7}\n)",
    re.IGNORECASE,
)
_BLOCK_LINE = re.compile(
    r"\n(?P<margin>(?:[ \t]{0,8}\d{1,7}[\t→|:]|(?:\[[^\]\n]{1,40}\] ){1,3})?[+\-> |\t]{0,60}+)"
    r"(?P<v>[^\s\x01\"'`]*+)(?P<rest>[^\n]{0,200})"
)
_BLOCK_LINES = 20
_TRIPLE = re.compile(r"[brfu]{0,2}(?P<q>\"{3}|'{3})(?P<v>[^\s\"']{4,4000})", re.IGNORECASE)
_ASIDE = frozenset({"spaced", "element", "prose"})
_EDGE = ",;)]}>"


def find_named(view: str, low: str) -> list[NamedSecret]:
    """Find named secrets in `view`, a text without escapes. `low` is `view` in lower case."""
    secrets: list[NamedSecret] = []
    done = 0
    has_arn = "arn:" in view
    separators = [
        (form, pattern)
        for form, pattern in _SEPARATORS
        if _NEEDS.get(form, "") in view  # most texts have no tags or tables
    ]
    for at in sorted({match.start() for word in _WORDS for match in word.finditer(low)}):
        if at < done:
            continue
        start = at - _name_before(view, at)
        stop = _NAME_AFTER.match(view, at).end()  # type: ignore[union-attr]
        name = view[start:stop].rstrip(".-")
        stop = start + len(name)
        done = max(done, stop)
        strength = None if has_arn and _is_in_arn(view, start) else rate_name(name)
        if strength is None or (
            strength is NameStrength.WEAK and _BESIDE.search(view, max(0, start - 20), start)
        ):
            continue
        new = _find_assigned(view, name, start, stop, strength, separators) or _find_nearby(
            view, stop
        )
        secrets += new
        done = max([done, *(secret.end for secret in new)])
    return secrets


def _is_in_arn(view: str, start: int) -> bool:
    """Return whether a name is part of an ARN, which is the name of a cloud resource."""
    before = view.rfind("arn:", max(0, start - _ARN_REACH), start)
    return before >= 0 and not _SPACE.search(view, before, start)


def _name_before(view: str, at: int) -> int:
    """Count the characters of a name before a position in it."""
    before = view[max(0, at - 60) : at]
    return len(before) - len(before.rstrip(_NAME_CHARACTERS))


def _find_assigned(  # noqa: C901, PLR0917 - one branch per notation
    view: str,
    name: str,
    start: int,
    stop: int,
    strength: NameStrength,
    separators: list[tuple[str, re.Pattern[str]]],
) -> list[NamedSecret]:
    """Return the secret value assigned to a name, using the first separator that matches."""
    is_flag = view[max(0, start - 2) : start] == "--" or view[start : start + 1] == "-"
    is_query = view[start - 1 : start] in {"?", "&"}
    for form, pattern in separators:
        separator = pattern.match(view, stop)
        if separator is None:
            continue
        if strength is NameStrength.WEAK and (form in _NOT_WEAK or "\n" in separator[0]):
            continue
        at, promised = _skip_scheme(view, separator.end(), strength)
        if is_flag and form != "prose":
            promised = NameStrength.STRONG
        elif is_query:
            promised = max(promised, NameStrength.MEDIUM)
        if form == "assigned" and (block := _BLOCK.match(view, at)):
            return _find_in_block(view, start, block, _name_rule(name, strength), promised)
        if form == "tagged" and not _is_in_tag(view, start):
            continue
        value = _find_value(view, at, form, is_query=is_query)
        if value is None:
            continue
        begin, end, quoted = value
        is_env = separator[0] == "=" and name.isupper() and promised is NameStrength.STRONG
        is_set = form == "spaced" and _is_set(view, start)
        aside = form in _ASIDE and not is_flag and not is_set
        near_end = max(begin, end - _CUT_MARK)
        text = view[begin:near_end] + _CUT.sub("", view[near_end:end])
        is_phrase = "passphrase" in name.lower() and value_tests.is_phrase(text)
        if (
            (is_env and value_tests.is_word(text))
            or (is_phrase and not aside)
            or (
                not is_harmless(text, form, quoted=quoted)
                and is_secret(text, promised, aside=aside, quoted=quoted, form=form)
            )
        ):
            rule = _name_rule(name, strength)
            return [
                NamedSecret(begin, end, rule),
                *(_find_joined(view, end, rule) if quoted else ()),
            ]
        if form in {"assigned", "called"}:
            return []  # the assigned value is not a secret
    return []


def _is_set(view: str, start: int) -> bool:
    """Return whether a command such as `setenv` or `#define` precedes a name."""
    return _SETTER.search(view, max(0, start - _SETTER_REACH), start) is not None


def _is_in_tag(view: str, start: int) -> bool:
    before = view[max(0, start - _TAG_REACH) : start]
    return before.rfind("<") > before.rfind(">") or before.endswith(("<key>", "<name>"))


def _find_in_block(
    view: str, start: int, block: re.Match[str], rule: str, strength: NameStrength
) -> list[NamedSecret]:
    """Return the lines of a multi-line value that are a single, secret-looking word."""
    column = start - view.rfind("\n", 0, start) - 1
    secrets: list[NamedSecret] = []
    at = view.find("\n", block.end())
    for _ in range(_BLOCK_LINES):
        line = _BLOCK_LINE.match(view, at) if at >= 0 else None
        if line is None or (block["end"] and line["v"] == block["end"]):
            break
        if not (block["end"] or block["q"]) and line["v"] and len(line["margin"]) <= column:
            break
        is_last = block["q"] is not None and block["q"] in line["rest"]
        text = line["v"]
        alone = not line["rest"].strip(" \t\x01\"',") or is_last
        if alone and not is_harmless(text, "assigned", quoted=True):
            is_long = value_tests.is_random(text, 12) or strength is NameStrength.STRONG
            if is_long and is_secret(text, strength, aside=False, quoted=True, form="assigned"):
                secrets.append(NamedSecret(*line.span("v"), rule))
        if is_last:
            break
        at = view.find("\n", line.end("v"))
    return secrets


def _skip_scheme(view: str, at: int, strength: NameStrength) -> tuple[int, NameStrength]:
    """Return the position after a scheme such as `Bearer`, and the resulting name strength."""
    quote = _QUOTE.match(view, at)
    scheme = _SCHEME.match(view, at) or (_SCHEME.match(view, quote.end()) if quote else None)
    if scheme is None or _BARE.match(view, scheme.end()) is None:
        return at, strength
    return scheme.end(), max(strength, NameStrength.MEDIUM)


def _find_nearby(view: str, stop: int) -> list[NamedSecret]:
    """Return a later word on the line if it looks too random to be anything but a token."""
    limit = stop + _NEAR + _LONGEST_WORD
    end = view.find("\n", stop, limit)
    for word in _RANDOM.finditer(view, stop, end if end >= 0 else min(len(view), limit)):
        if word.start() >= stop + _NEAR:
            break
        text = word[0].rstrip(".:")
        capitals = sum(map(str.isupper, text))
        if (
            value_tests.is_random(text, 20)
            and capitals >= 3
            and sum(map(str.islower, text)) >= 3
            and value_tests.has_digit(text)
            and not value_tests.is_code(text)
            and not known_tokens.is_public_id(text)
        ):
            return [NamedSecret(word.start(), word.start() + len(text), "token")]
    return []


def _find_value(view: str, at: int, form: str, *, is_query: bool) -> tuple[int, int, bool] | None:
    triple = _TRIPLE.match(view, at)
    if triple is not None:
        return (*triple.span("v"), True)
    quoted = _QUOTED.match(view, at)
    if quoted is not None and not _CUT.search(quoted["v"]):
        return (*quoted.span("v"), True)
    opened = _OPENED.match(view, at)
    if opened is not None:
        return (*opened.span("v"), True)
    if form == "called":
        return None
    bare = _BARE.match(view, at)
    if bare is None:
        return None
    text = bare["v"].partition("&")[0] if is_query else bare["v"]
    if field := _NEXT_FIELD.search(text):
        text = text[: field.start()]
    if form in {"element", "tagged"}:
        text = text.partition("<")[0]
    trimmed = text.rstrip(_EDGE)
    if not any(bracket in trimmed for bracket in "([{<"):
        text = trimmed
    return (bare.start("v"), bare.start("v") + len(text), False) if text else None


def _find_joined(view: str, end: int, rule: str) -> list[NamedSecret]:
    """Return the remaining pieces of a concatenated literal: "abc" + "def"."""
    pieces: list[NamedSecret] = []
    closing = _QUOTE.match(view, end)
    while closing is not None and len(pieces) < _MOST_PIECES:
        joint = _JOINED.match(view, closing.end())
        if joint is None or ("+" not in joint[0] and "\n" not in joint[0]):
            break
        piece = _QUOTED.match(view, joint.end())
        if piece is None or not value_tests.is_random(piece["v"], 6) or " " in piece["v"]:
            break
        pieces.append(NamedSecret(*piece.span("v"), rule))
        closing = _QUOTE.match(view, piece.end("v"))
    return pieces


def _name_rule(name: str, strength: NameStrength) -> str:
    low = name.lower()
    for part, rule in (
        ("pass", "password"),
        ("pwd", "password"),
        ("secret", "secret"),
        ("token", "token"),
        ("key", "key"),
    ):
        if part in low:
            return rule
    return "secret" if strength is NameStrength.STRONG else "token"
