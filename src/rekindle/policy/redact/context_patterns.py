"""Patterns for URLs, headers, commands and hashes that contain a secret, one row each."""

import re
from collections.abc import Callable, Iterator

from rekindle.policy.redact import value_tests
from rekindle.policy.redact.known_tokens import SecretSpan
from rekindle.policy.redact.literal_search import LiteralPositions

_JWK = re.compile(
    r"\x01{0,7}\"(?:d|p|q|dp|dq|qi|k|oth)\x01{0,7}\"\s{0,4}:\s{0,4}\x01{0,7}\""
    r"(?P<v>[A-Za-z0-9_-]{16,4000})"
)
_URL_LOGIN = re.compile(
    r"://(?P<u>[^\s/@:\"'<>\x01]{0,120}):(?P<v>[^\s@\"'<>\x01]{1,300}(?:@[^\s@/\"'<>\x01]{0,100}"
    r"(?=@))?)@(?=[\w.\[\-$*{%])"
)
_LONG_URL_LOGIN = re.compile(
    r"://[^\s/@:\"'<>\x01]{0,120}:(?P<v>[^\s/@:\"'<>\x01]{300,}+)@(?=[\w.\[\-$*{%])"
)
_URL_TOKEN = re.compile(r"://(?P<v>[A-Za-z0-9_\-.~%]{16,300})@(?=[\w.\-])")
_HOOK = re.compile(
    r"https?://[^\s\"'<>\x01?#]{0,200}?"
    r"(?:hooks?\.[\w.\-]{3,60}/(?:services|workflows|triggers|catch)?/?|/(?:api/)?webhooks?"
    r"(?:/\d{5,25})?/|webhookb2/|/hooks?(?:/catch)?/"
    r"|/(?:services|incoming|ingest|trigger)/(?=T[A-Z0-9]|[0-9a-f]{8}-)|/with/key/|/bot/v\d/hook/)"
    r"(?P<v>[^\s\"'<>\x01?#]{8,600})"
)
_BOT_URL = re.compile(r"/bot(?P<v>\d{6,12}:[A-Za-z0-9_-]{20,60})")
_SIGNED = re.compile(
    r"[?&;](?:amp;)?(?:[a-z0-9\-_]{0,24}(?:signature|security-token|credential)|sig|sign|code"
    r"|state|ticket|sid"
    r"|client_secret|refresh_token|access_token|id_token|auth|apikey|api_key|token|key|secret"
    r"|password|pwd|pass|hmac)="
    r"(?P<v>[^\s&\"'<>\x01#;]{6,4000})"
)
_HASH = re.compile(
    r"(?P<v>\$(?<![A-Za-z0-9$]\$)(?:(?:2[abxy]?|[15-9]|g?y|apr1|argon2(?:id|i|d)|scrypt|s\d|sha1|md5"
    r"|pbkdf2[\w-]{0,16}|bcrypt[\w-]{0,12})\$[A-Za-z0-9./+=,_\-]{1,80}\$[A-Za-z0-9./+=,$_\-]{8,400}"
    r"|[PHS]\$[A-Za-z0-9./]{20,64}))"
)
_LABELLED_HASH = re.compile(
    r"(?P<v>(?:pbkdf2_\w{2,12}|bcrypt(?:_sha256)?|scrypt|argon2|sha1|sha512"
    r"|md5)\$[A-Za-z0-9./+=,$_\-]{16,400}"
    r"|(?:pbkdf2|scrypt):[\w:]{3,40}\$[A-Za-z0-9./+=]{4,64}\$[A-Za-z0-9./+=]{16,400}"
    r"|\{(?:S?SHA(?:256|384|512)?|S?MD5|CRYPT|PBKDF2[\w-]{0,12}|ARGON2)\}[A-Za-z0-9./+=$]{16,400}"
    r"|(?:SCRAM-SHA-\d{1,3})\$[^\s\"'\x01]{20,400})"
)
_STARRED_HASH = re.compile(r"(?P<v>\*[0-9A-F]{40}(?![0-9A-F]))")
_AUTHORIZATION = re.compile(
    r"authorization\x01{0,7}[\"'`]?[ \t]{0,4}[:=,][ \t]{0,4}[brf]?\x01{0,7}[\"'`]?"
    r"(?:[a-z][\w-]{1,20}[ \t]{1,4})?(?P<v>[^\s\"'`\x01,<>]{6,4000})"
)
_BEARER = re.compile(r"bearer[ \t:=]{1,4}(?P<v>[a-z0-9._~+/=%:\-]{12,8000})")
_LOGIN = re.compile(
    r"-(?<!\S-)(?:u|-user|-proxy-user|U|-auth|a|-basic|-creds"
    r"|-login)[ =]{0,2}[\"']?\x01{0,3}[\"']?(?P<u>[\w.@%\\\-]{1,80}):"
    r"(?P<v>[^\s\"'\x01:/][^\s\"'\x01]{2,300})"
)
_SHORT_FLAG = re.compile(
    r"-(?:p|P|a|w|N|A|X|storepass|keypass|pw|k)[ \t=]{0,2}\x01{0,3}[\"']?"
    r"(?P<v>[^\s\"'\x01\-][^\s\"'\x01]{3,200})"
)
_TAKES_PASSWORD = re.compile(
    r"\b(?:mysql\w*|mosquitto\w*|mariadb\w*|mongo\w*|sshpass|redis-cli|sqlcmd|bcp|ldap\w+|7z[ar]?|zip|unzip"
    r"|unrar|rar"
    r"|htpasswd|openssl \w+|\w+ (?:\w+ ){0,2}login|smbclient|lftp|xfreerdp|rabbitmqadmin|keytool"
    r"|ssh-keygen|cqlsh"
    r"|influx|clickhouse-client|ipmitool|beeline|tsql|isql|snmp\w+|psexec|evil-winrm|plink"
    r"|pscp)\b"
)
_PASS_ARGUMENT = re.compile(r"pass:(?<!\wpass:)(?P<v>[^\s\"'\x01:]{4,200})")
_PGPASS = re.compile(
    r":(?:\d{2,5}|\*):[\w*\-]{1,64}:[\w*.@\-]{1,64}:(?P<v>[^\s\x01:\"']{4,200})(?=[\s\x01\"']|\Z)"
)
_IDENTIFIED = re.compile(
    r"identified[ \t]{1,4}by[ \t]{1,4}(?P<q>\x01{0,3}[\"'])(?P<v>[^\n\"'\x01]{3,200})"
)
_PHRASE = re.compile(
    r"(?:mnemonic|seed|recovery|wallet|bip-?39|phrase)\b[^\n]{0,60}?[\s\"'=:\x01]"
    r"(?P<v>[a-z]{3,8}(?:[ ,]{1,2}[a-z]{3,8}){11,23})(?=[\s\"'.\x01]|$)"
)
_MASKED = re.compile(
    r"(?:::add-mask::|name=[\w.\-]{0,40}(?:token|secret|passw|key)[\w.\-]{0,20}::"
    r"|\[task\.setvariable [^\]\n]{0,80}issecret=true[^\]\n]{0,40}\])(?P<v>[^\s\"'\x01]{4,4000})"
)
_ENCODED_QUERY = re.compile(
    r"(?:token|secret|key|passw(?:or)?d|pwd|sig|signature|code|auth)%3d"
    r"(?P<v>(?:[a-z0-9_\-.~+!]|%(?!2[036])[0-9a-f]{2}){8,4000})"
)
_PIPED = re.compile(
    r"(?:echo|printf)[ \t]{1,4}(?:-\w{1,3} )?(?:[\"']?%s(?:\\n)?[\"']? )?[\"']?"
    r"(?P<v>[^\s\"'|\x01$][^\s\"'|\x01]{5,300})"
    r"[\"']?[ \t]{0,4}\|[^\n|]{0,80}?(?:--?pass\w*|stdin|chpasswd|passwd|sudo -s|kinit|login"
    r"|cryptsetup|secret|token|auth|smbpasswd|gpg)"
)
_SECRET_BODY = re.compile(
    r"secret set [^\n]{1,80}?(?:--body|-b)[ =][\"']?(?P<v>[^\s\"'\x01$][^\s\"'\x01]{5,4000})"
)
# Positions on a command line where a program expects a secret.
_PROGRAM_ARGUMENT = re.compile(
    r"(?:\bapi-key store \S{4,40}|\bsnmp-server community|\b(?:password|secret|key) [5-9]"
    r"|\bnet user \S{1,40}|\brabbitmqctl (?:add_user|change_password) \S{1,40}"
    r"|\bhtpasswd -\w*b\w* \S{1,80} \S{1,40}|\bpost_(?:server|client)_item[\"']?[:=]?"
    r"|\brecovery codes?:|\bbackup codes?:)[ \t]{1,4}[\"']?"
    r"(?P<v>[^\s\"'\x01/$<*-][^\s\"'\x01]{7,400})"
)
_ORACLE_LOGIN = re.compile(
    r"(?:oracle:thin:|oracle:oci:|sqlplus[ \t](?:-\w{1,3}[ \t])?|(?:imp|exp)dp[ \t])"
    r"[\w$#]{1,40}/(?P<v>[^\s/\"'\x01]{4,100}?)@"
)
_PROXY_URL = re.compile(r"\b(?:vmess|vless|trojan|ssr?)://(?P<v>[a-z0-9+/=_\-]{16,4000})")
_DSN = re.compile(r"://(?P<v>[0-9a-f]{32})(?::[0-9a-f]{32})?@[\w.\-]{0,60}(?:sentry|ingest)")
_NODE_TOKEN = re.compile(r"\bk10[0-9a-f]{64}::(?P<v>[\w\-]{1,20}:[0-9a-z]{16,64})")
_LOGIN_WITH = re.compile(r"\batz[ar]\|(?P<v>[\w\-+/=]{20,4000})")
_COLLECTOR = re.compile(
    r"\b(?:splunk|hec)[ :=]{1,3}(?P<v>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
_LABELLED_KEY = re.compile(
    r"(?:(?:unseal|recovery) key[ \t]?\d{0,2}:|initial root token:|ed25519-v3:|rsa1024:"
    r"|\bencrypt\x01{0,7}[\"']?[ \t]{0,4}[:=])[ \t]{0,4}\x01{0,7}[\"']?"
    r"(?P<v>[a-z0-9+/=._-]{22,4000})"
)
_HEX_KEY = re.compile(
    r"(?:priv(?:ate)?[ _-]?key|secret key|seed)[\"']?[^\w\n]{1,6}(?:is |= ?)?(?:0x)?"
    r"(?P<v>[0-9a-f]{64})(?![0-9a-f])"
)
_SPOKEN_KEY = re.compile(
    r"(?:key|token|secret)(?: (?:is|was|of))?[:=]?[ \t]{1,4}\x01{0,3}[`\"']?"
    r"(?P<v>[0-9a-f]{16,128})(?![\w-])"
)
_SPOKEN_KIND = re.compile(
    r"\b(?:project|api|access|licen[cs]e|write|app|account|integration|service|ingest|ingestion|auth"
    r"|notifier|client|server|admin|secret|signing|encryption|api-) ?\Z"
)
_SPOKEN_REACH = 16
_KEY_BELOW = re.compile(
    r"(?:minisign|signify)[^\n]{0,40}secret key[^\n]{0,80}\n[+\-> |\t]{0,20}"
    r"(?:\d{1,6}\t)?(?P<v>[A-Za-z0-9+/]{40,}+={0,2})"
)
_DUMPED_HASHES = re.compile(r":\d{1,6}:(?P<v>[0-9a-fA-F]{32}:[0-9a-fA-F]{32}):::")
_REALM_HASH = re.compile(
    r"(?m)^[^\n\w]{0,12}[\w.@\-]{1,60}:[A-Za-z][^:\n]{0,40}:(?P<v>[0-9a-f]{32})(?=[\s\x01]|\Z)"
)
_HASH_NAMES = (
    *("pbkdf2", "bcrypt", "scrypt", "argon2$", "sha1$", "sha512$", "md5$", "sha}"),
    *("sha256}", "sha512}", "md5}", "crypt}", "argon2}", "scram-sha"),
)
_REALM_DIGITS = re.compile(r":[0-9a-f]{32}(?![0-9a-f])")
# Each row lists lowercase substrings, at least one of which the text must contain. This check is
# much cheaper than matching the pattern.
_ROWS: tuple[tuple[str, tuple[str, ...], re.Pattern[str], Callable[[str], bool] | None], ...] = (
    ("private-key", ('"kty', '"kty'), _JWK, None),
    ("token", ("::", "issecret"), _MASKED, None),
    (
        "url-token",
        ("%3d",),
        _ENCODED_QUERY,
        lambda v: (
            value_tests.is_random(v, 12) or (value_tests.has_mixed_characters(v) and len(v) >= 10)
        ),
    ),
    (
        "password",
        ("|",),
        _PIPED,
        lambda v: value_tests.has_mixed_characters(v) or value_tests.is_random_letters(v),
    ),
    ("secret", ("secret set",), _SECRET_BODY, None),
    (
        "secret",
        (
            *("api-key store", "snmp-server", "net user", "rabbitmqctl", "htpasswd", "_item"),
            *("recovery code", "backup code"),
            *(f"{word} {kind}" for word in ("password", "secret", "key") for kind in "56789"),
        ),
        _PROGRAM_ARGUMENT,
        lambda v: (
            value_tests.has_mixed_characters(v)
            and (value_tests.is_random_letters(v) or not value_tests.is_code(v))
        ),
    ),
    (
        "password",
        ("oracle:", "sqlplus", "mpdp", "xpdp"),
        _ORACLE_LOGIN,
        value_tests.has_mixed_characters,
    ),
    (
        "url-token",
        ("vmess:", "vless:", "trojan:", "ss://", "ssr:"),
        _PROXY_URL,
        value_tests.is_random,
    ),
    ("url-token", ("sentry", "ingest"), _DSN, value_tests.is_random_letters),
    ("token", ("k10",), _NODE_TOKEN, None),
    ("token", ("atza|", "atzr|"), _LOGIN_WITH, None),
    ("token", ("splunk", "hec ", "hec:", "hec="), _COLLECTOR, None),
    (
        "key",
        ("unseal key", "recovery key", "root token", "ed25519-v3", "rsa1024", "encrypt"),
        _LABELLED_KEY,
        lambda v: value_tests.is_random(v, 20),
    ),
    ("private-key", ("key", "seed"), _HEX_KEY, value_tests.is_random_letters),
    ("key", ("key", "token", "secret"), _SPOKEN_KEY, value_tests.is_random_letters),
    ("private-key", ("minisign", "signify"), _KEY_BELOW, value_tests.is_random),
    ("password-hash", (":::",), _DUMPED_HASHES, None),
    ("password-hash", ("realm", "digest"), _REALM_HASH, value_tests.is_random_letters),
    (
        "url-password",
        ("://",),
        _URL_LOGIN,
        lambda v: not v.isdigit() and not re.match(r"\d{1,5}(?:[/?#]|\Z)", v),
    ),
    ("url-password", ("://",), _LONG_URL_LOGIN, None),
    (
        "url-token",
        ("://",),
        _URL_TOKEN,
        lambda v: value_tests.is_random(v) and not value_tests.is_hex(v),
    ),
    (
        "webhook",
        ("hook", "/services/", "/with/key/"),
        _HOOK,
        lambda v: any(
            value_tests.is_random(p, 10) or value_tests.is_uuid(p) for p in re.split("[/@]", v)
        ),
    ),
    ("bot-token", ("/bot",), _BOT_URL, None),
    (
        "url-signature",
        ("=",),
        _SIGNED,
        lambda v: (
            value_tests.is_random(v, 16)
            or (value_tests.has_mixed_characters(v) and len(v) >= 10 and not value_tests.is_code(v))
        ),
    ),
    ("password-hash", ("$",), _HASH, None),
    ("password-hash", _HASH_NAMES, _LABELLED_HASH, None),
    ("password-hash", (" *", "'*", '"*'), _STARRED_HASH, None),
    (
        "authorization",
        ("authorization",),
        _AUTHORIZATION,
        lambda v: (
            not value_tests.is_number(v)
            and not value_tests.is_file(v.partition("#")[0])
            and (
                value_tests.is_random(v, 8)
                or value_tests.is_random_letters(v)
                or (value_tests.has_mixed_characters(v) and not value_tests.is_code(v))
            )
        ),
    ),
    (
        "authorization",
        ("bearer",),
        _BEARER,
        lambda v: value_tests.is_random(v, 12) or value_tests.is_random_letters(v),
    ),
    (
        "password",
        (":",),
        _LOGIN,
        lambda v: value_tests.has_mixed_characters(v) or value_tests.is_random(v, 10),
    ),
    (
        "password",
        (" -", "\t-"),
        _SHORT_FLAG,
        lambda v: value_tests.has_mixed_characters(v) and not value_tests.is_file(v),
    ),
    ("password", ("pass:",), _PASS_ARGUMENT, value_tests.has_mixed_characters),
    (
        "password",
        (":",),
        _PGPASS,
        lambda v: value_tests.has_mixed_characters(v) and not value_tests.is_code(v),
    ),
    (
        "password",
        ("identified",),
        _IDENTIFIED,
        lambda v: value_tests.has_mixed_characters(v) or len(v) > 11,
    ),
    (
        "seed-phrase",
        ("mnemonic", "seed", "recovery", "wallet", "phrase", "bip39", "bip-39"),
        _PHRASE,
        None,
    ),
)
_ON_LOWERCASE = (
    _PROGRAM_ARGUMENT,
    _ORACLE_LOGIN,
    _PROXY_URL,
    _DSN,
    _NODE_TOKEN,
    _LOGIN_WITH,
    _COLLECTOR,
    _MASKED,
    _ENCODED_QUERY,
    _PIPED,
    _LABELLED_KEY,
    _HEX_KEY,
    _SPOKEN_KEY,
    _SIGNED,
    _AUTHORIZATION,
    _BEARER,
    _IDENTIFIED,
    _PHRASE,
)

_SIGNS = "%3d=:|$/-*'\" \t"
# The literals that each match of a pattern starts with. Patterns that start with one literal are
# fast without them.
_STARTS = {
    _MASKED: ("::add-mask::", "name=", "[task.setvariable "),
    _PIPED: ("echo", "printf"),
    _PROXY_URL: ("vmess://", "vless://", "trojan://", "ss://", "ssr://"),
    _NODE_TOKEN: ("k10",),
    _LOGIN_WITH: ("atz",),
    _COLLECTOR: ("splunk", "hec"),
    _HEX_KEY: ("priv", "secret key", "seed"),
    _SPOKEN_KEY: ("key", "token", "secret"),
    _PHRASE: ("mnemonic", "seed", "recovery", "wallet", "bip", "phrase"),
    _LABELLED_KEY: (
        *("unseal key", "recovery key", "initial root", "ed25519-v3:", "rsa1024:", "encrypt"),
    ),
    _LABELLED_HASH: (
        *("pbkdf2_", "pbkdf2:", "bcrypt$", "bcrypt_", "scrypt$", "scrypt:", "argon2$"),
        *("sha1$", "sha512$", "md5$", "scram-sha-"),
        *("{sha", "{ssha", "{smd5", "{md5", "{crypt", "{pbkdf2", "{argon2"),
    ),
    _AUTHORIZATION: ("authorization",),
    _BEARER: ("bearer",),
    _IDENTIFIED: ("identified",),
    _PROGRAM_ARGUMENT: (
        *("api-key store ", "snmp-server community", "net user ", "rabbitmqctl "),
        *("htpasswd -", "post_server_item", "post_client_item", "recovery code", "backup code"),
        *(f"{word} {kind}" for word in ("password", "secret", "key") for kind in "56789"),
    ),
}


_FREQUENT = frozenset(
    trigger for _, triggers, _, _ in _ROWS for trigger in triggers if not trigger.strip(_SIGNS)
)
LITERALS = frozenset(
    literal
    for group in (*_STARTS.values(), *(triggers for _, triggers, _, _ in _ROWS))
    for literal in group
    if literal not in _FREQUENT
)


def find_by_pattern(view: str, low: str, literals: LiteralPositions) -> Iterator[SecretSpan]:
    for rule, triggers, pattern, fits in _ROWS:
        if not any(trigger in (low if trigger in _FREQUENT else literals) for trigger in triggers):
            continue
        if pattern is _REALM_HASH and not _REALM_DIGITS.search(view):
            continue
        text = low if pattern in _ON_LOWERCASE else view
        starts = _STARTS.get(pattern)
        for match in literals.match(pattern, text, starts) if starts else pattern.finditer(text):
            start, end = match.span("v")
            value = view[start:end]
            if pattern is _SHORT_FLAG and not _is_flag_of_password(view, match.start()):
                continue
            if pattern is _SPOKEN_KEY and not _SPOKEN_KIND.search(
                low, max(0, match.start() - _SPOKEN_REACH), match.start()
            ):
                continue
            if rule != "password-hash" and value_tests.is_placeholder(value):
                continue
            if fits is None or fits(value):
                yield start, end, rule


def _is_flag_of_password(view: str, at: int) -> bool:
    line = view[max(view.rfind("\n", 0, at), at - 300) + 1 : at]
    return line.endswith((" ", "\t")) and _TAKES_PASSWORD.search(line) is not None
