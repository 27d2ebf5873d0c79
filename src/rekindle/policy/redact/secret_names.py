"""Rate how reliably a variable or field name indicates a secret."""

import re
from enum import IntEnum
from functools import lru_cache

from rekindle.policy.redact import value_tests


class NameStrength(IntEnum):
    """How reliably a name indicates a secret."""

    WEAK = 1
    MEDIUM = 2
    STRONG = 3


_STRONG = re.compile(
    r".*(?:passw|passphrase|pwd|secret(?!ar[iy]|e$|e[ds]$|ing$|ion|ive|ory)|credential|kennwort|contrase|wachtwoord|l.senord|парол|密"
    r"|口令|パス|비밀).*|(?!\w*(?:com|by|sur|tres|over|under)pass)\w*pass|\w*securestring|psk|\w*psk|creds?|senha|mdp|\w*passe|\w*pw|private_?key|masterauth|requirepass|pepper"
)
_MEDIUM = re.compile(
    r".*(?:token|apikey|accesskey|secretkey|privatekey|authkey|masterkey|accountkey).*"
    r"|auth|authorization|bearer|sig|otp|pat|dsn|webhook|sid|keytab|keystore|privkey"
)
_KEY = re.compile(r"\w*keys?")
_KEY_OF = frozenset(
    "api access secret private auth master shared account license licence encryption"
    " encrypt signing sign app application sdk admin service user storage client"
    " consumer deploy integration server session webhook rest write ingest dev prod"
    " live account subscription functions function fernet jwt aes hmac rsa wg"
    " wireguard preshared psk tls ssl cookie security routing root bot global org"
    " organization project team machine merchant partner management personal".split()
)
_HARMLESS_WORDS = frozenset(
    "publishable site continuation sync public pub max min num number count next prev"
    " page cache sort primary foreign partition type name file filename path dir"
    " folder url uri endpoint length len size limit expires expiry expiration expire"
    " ttl age field label hint policy format version prefix suffix index idx pos"
    " position input output total used usage per budget column bindings press down up"
    " board frame word words stream fingerprint algorithm alg issuer required enabled"
    " valid reset error message msg title description help placeholder tokens"
    " tokenizer list map dict set class regex pattern kind status state mode method"
    " provider manager handler store storage_class ring etag digest checksum integrity"
    " idempotency dedup object lookup group row range days hours minutes seconds"
    " created updated parser response request validator generator view form model"
    " schema test tests data_id usages exchange agreement curve store pair"
    " encipherment derivation rotation".split()
)
_WEAK = frozenset("cookie session code pin phrase mnemonic seed salt signature".split())
_ONE_WORD = re.compile(r"(?i)pass[_-]?word|pass[_-]?phrase|secure[_-]?string")
_SPLIT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z\u0080-\uffff]+|[A-Z]|\d+")


@lru_cache(maxsize=4096)
def rate_name(name: str) -> NameStrength | None:
    """Return how reliably a name indicates a secret, or None if it names something else."""
    words = [word.lower() for word in _SPLIT.findall(_ONE_WORD.sub(_join_name_words, name))]
    if not words or _is_random_name(name):
        return None  # a random string is not a name
    strengths = [
        _rate_word(word, words[:place], is_capital=name.isupper())
        for place, word in enumerate(words)
    ]
    best = max((strength for strength in strengths if strength), default=None)
    if best is None or not _HARMLESS_WORDS.isdisjoint(words):
        return None
    if words[-1] in {"id", "ids", "at", "by", "in"}:
        return None
    return best


def _is_random_name(name: str) -> bool:
    is_written = not value_tests.has_digit(name) and not value_tests.is_random_letters(name)
    return value_tests.is_random(name, 12) and not name.isupper() and not is_written


def _join_name_words(match: re.Match[str]) -> str:
    """Return a name with spellings such as passWord and PASS_WORD joined into one word."""
    letters = re.sub("[_-]", "", match[0])
    return letters.upper() if letters.isupper() else letters.capitalize()


def _rate_word(word: str, before: list[str], *, is_capital: bool) -> NameStrength | None:
    if _STRONG.fullmatch(word):
        return NameStrength.STRONG
    if _MEDIUM.fullmatch(word):
        return NameStrength.MEDIUM
    if _KEY.fullmatch(word):
        if word != "key":
            return NameStrength.MEDIUM if word[:-3] in _KEY_OF else None
        is_qualified = before and (is_capital or before[-1] in _KEY_OF)
        return NameStrength.MEDIUM if is_qualified else NameStrength.WEAK
    return NameStrength.WEAK if word in _WEAK else None
