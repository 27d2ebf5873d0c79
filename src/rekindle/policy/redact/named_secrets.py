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
from rekindle.policy.redact.literal_search import LiteralPositions
from rekindle.policy.redact.name_separators import SEPARATORS, Q
from rekindle.policy.redact.named_values import is_harmless, is_secret
from rekindle.policy.redact.secret_names import NameStrength, rate_name


class NamedSecret(NamedTuple):
    start: int
    end: int
    rule: str


# Parts of names that indicate a secret, in lower case. Each is searched for separately, because
# searching for plain words costs almost nothing, and a single pattern for all of them takes a
# hundred times as long.
_WORDS = (
    *"passw passphrase secret securestring credential token key auth bearer cookie".split(),
    *"session mnemonic webhook kennwort contrase wachtwoord senord парол".split(),
    *"密码 密碼 密钥 口令 パスワード 비밀번호".split(),
    *("salt", "seed", "pepper", "sig=", "code=", "signature="),
)
# Words that count only if no letter follows.
_LAST_WORDS = tuple("pass pwd creds cred otp pin dsn pw pat senha mdp passe psk".split())
LITERALS = (*_WORDS, *_LAST_WORDS)

_BESIDE = re.compile(
    r"(?i)\b(?:public|cache|primary|foreign|sort|partition|hash|host|lookup|object|map|dict) \Z"
)
_NAME_CHARACTERS = ascii_letters + digits + "_.-"
_NAME_AFTER = re.compile(r"[\w.\-]{0,60}")
_QUOTE = re.compile(Q)
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
_SETTER_WORDS = ("set", "def", "ENV", "ARG")
_PLAIN_WORD = re.compile(r"[a-z]{4,40}+(?:\s|\Z)")
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


def find_named(view: str, low: str, literals: LiteralPositions) -> list[NamedSecret]:
    """Find named secrets in `view`, a text without escapes. `low` is `view` in lower case."""
    secrets: list[NamedSecret] = []
    done = 0
    has_arn = "arn:" in view
    for at in _find_words(low, literals):
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
        new = _find_assigned(view, name, start, stop, strength) or _find_nearby(view, stop)
        secrets += new
        done = max([done, *(secret.end for secret in new)])
    return secrets


def _find_words(low: str, literals: LiteralPositions) -> list[int]:
    """Return the positions of the words that may be part of a secret's name."""
    places = set(literals.list_all(_WORDS))
    for word in _LAST_WORDS:
        size = len(word)
        places.update(
            at
            for at in literals.list_all((word,))
            if not "a" <= low[at + size : at + size + 1] <= "z"
        )
    return sorted(places)


def _is_in_arn(view: str, start: int) -> bool:
    """Return whether a name is part of an ARN, which is the name of a cloud resource."""
    before = view.rfind("arn:", max(0, start - _ARN_REACH), start)
    return before >= 0 and not _SPACE.search(view, before, start)


def _name_before(view: str, at: int) -> int:
    """Count the characters of a name before a position in it."""
    before = view[max(0, at - 60) : at]
    return len(before) - len(before.rstrip(_NAME_CHARACTERS))


def _find_assigned(  # noqa: C901 - one branch per notation
    view: str,
    name: str,
    start: int,
    stop: int,
    strength: NameStrength,
) -> list[NamedSecret]:
    """Return the secret value assigned to a name, using the first separator that matches."""
    is_flag = view[max(0, start - 2) : start] == "--" or view[start : start + 1] == "-"
    is_query = view[start - 1 : start] in {"?", "&"}
    for form, pattern, needs, reach in SEPARATORS:
        if needs and view.find(needs, stop, stop + reach) < 0:
            continue
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
        is_set = form == "spaced" and _is_set(view, start)
        aside = form in _ASIDE and not is_flag and not is_set
        if aside and form != "element" and _PLAIN_WORD.match(view, at):
            continue  # most words after a name
        value = _find_value(view, at, form, is_query=is_query)
        if value is None:
            continue
        begin, end, quoted = value
        is_env = separator[0] == "=" and name.isupper() and promised is NameStrength.STRONG
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
    before = view[max(0, start - _SETTER_REACH) : start]
    if not any(word in before for word in _SETTER_WORDS):
        return False
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
