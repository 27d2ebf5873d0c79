"""Find tokens that can be recognized by a known prefix or by their shape."""

import re

from rekindle.policy.redact import public_values, value_tests

SecretSpan = tuple[int, int, str]
"""Start and end of a secret in a text, and the rule that found it."""

# Prefixes that vendors publish so that scanners can find their tokens, each with the minimum number
# of characters that must follow. Most tokens with other prefixes are found by their shape.
_KNOWN = {
    "github-token": ("ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", 10),
    "gitlab-token": (
        (
            "glpat- gldt- glrt- glrtr- glft- glsoat- glcbt- glptt- glimt- glagent-"
            " glffct- gloas- glwt- GR1348941"
        ),
        10,
    ),
    "anthropic-key": ("sk-ant-", 10),
    "openai-key": ("sk-proj- sk-svcacct- sk-admin- sess-", 12),
    "api-key": (
        (
            "sk- sk_ sk-or-v1- sk-lf- sk-helicone- pplx- gsk_ xai- csk- fw_ fc- jina_"
            " tgp_v1_ nvapi- r8_ rpa_ hf_ api_org_ lsv2_ vck_ tvly- pcsk_ e2b_"
            " apify_api_ ctx7sk- as- ak- co_ key- key_ fal- bb_live_ mem0- m0-"
            " cal_live_ csk_ sgp_ sgamp_ waka_"
        ),
        14,
    ),
    "stripe-key": (
        (
            "sk_live_ sk_test_ rk_live_ rk_test_ whsec_ rzp_live_ rzp_test_ live_"
            " test_ FLWSECK- FLWSECK_TEST- shippo_live_ shippo_test_ duffel_live_"
            " duffel_test_ APP_USR- EZAK EZTK access-production- access-sandbox-"
            " access-development- sq0atp- sq0csp- sq0idp- EAAA"
        ),
        14,
    ),
    "slack-token": ("xoxb- xoxp- xoxa- xoxr- xoxs- xoxc- xoxd- xoxe- xoxe. xapp-", 10),
    "cloud-key": (
        (
            "AKIA ASIA ABIA ACCA AKID LTAI AKLT AIza GOCSPX- ya29. 1// ABSK IQoJ FwoG"
            " AQVN y0_ t1. dop_v1_ doo_v1_ dor_v1_ HRKU- fo1_ fm1_ fm2_ FlyV1 tskey-"
            " scw- pul- nfp_ rnd_ hcaik_ hcbik_ hcxik_ npg_ v1.0- amzn.mws."
            " amzn1.oa2-cs.v1. 00D p8e- LWR-"
        ),
        12,
    ),
    "platform-token": (
        (
            "npm_ pypi- rubygems_ CLOJARS_ cio oy2 dckr_pat_ dckr_oat_ CCIPAT_"
            " CCIPRJ_ bkua_ bkct_ bkat_ AKCp cmVmdGtuOj hvs. hvb. hvr. dp.pt. dp.st."
            " dp.ct. dp.sa. dp.scim. dp.audit. st. sntrys_ sntryu_ sntryi_ glsa_ glc_"
            " dt0c01. dt0s01. NRAK- NRAA- NRII- NRIQ- NRRA- NRSP- NRBR- PMAK- PMAT-"
            " lin_api_ lin_oauth_ figd_ figo_ figu_ figdr_ ntn_ secret_ patp rdme_ re_"
            " sbp_ sb_secret_ sbs_ pscale_pw_ pscale_tkn_ pscale_oauth_ pnu_ pnb_ pat-"
            " pat phx_ phs_ phr_ shpat_ shpca_ shppa_ shpss_ shptka_ dapi dkea dose"
            " squ_ sqp_ sqa_ tfp_ tk_ xkeysib- xsmtpsib- SG. ATATT3 ATCTT3 ATBB ATSTT"
            " ATTA BBDC- CFPAT- CFPAT_ sdk- mob- api- API- A3- AGE-SECRET-KEY- sha256~"
            " ops_eyJ ops_ ubp_ fio-u- ico- zpka_ EAAC EAAB IGQV sl. sk. tk. mfa."
            " snyk_uat. ATOA pk_prod_ nrat_ sfp_ wpt_ cs_live_ tfe_ hpat_ oauth_ apk_"
            " pdt_ ddp_ ddapp_ napi_ neon_ vcp_ vci_ vca_ vcr_ cfut_ cfat_ cfk_ cfl_"
            " eyJrIjoi rt_ at_ ory_at_ ory_st_ ory_pat_ gAAAAA xprv yprv zprv tprv"
            " uprv vprv mlsn. dG9rOj hbp_"
        ),
        16,
    ),
}

# Prefixes of public ids, which look like tokens but are not secret.
_PUBLIC_IDS = frozenset(
    "vpce fs db cluster prj dpl team sess ord order pay pr u css page layout module"
    " nix go gha artifact snapshot deployment release tag layer cache tmp temp blob"
    " model log doc upload migration backup report invoice record entry row shard part"
    " segment asset static media photo video audio avatar thumb icon font pod"
    " container svc srv usr edge worker queue topic stream channel room chat nonce"
    " toolu msg req resp call chatcmpl cmpl run step thread asst file vs batch ft"
    " ftjob gen item evt cus pi pm seti src ch in ii il sub si price prod acct card ba"
    " txn tr po re_id fee dp_id cs_id inv org proj user team usr_id session conv"
    " conversation turn rs fc_id ws img image i vpc ami subnet sg eni vol snap rtb igw"
    " nat eipalloc acl r tgw lb arn dist sha1 sha256 sha384 sha512 md5 blake2b blake3"
    " crc32 etag h1 v1 v2 v3 w uuid id ref commit node trace span request job task"
    " event build deploy dpl lambda bucket key_id obj oid cid ipfs qm bafy tx block"
    " data chunk vendors main app index runtime styles polyfills bundle hash digest"
    " rev test_id linux darwin win32 windows macosx manylinux cp py py3 python"
    " node_modules x86 aarch64 amd64 arm64 pk phc pub public px wss ga gtm ua g".split()
)


def _join_alternatives(prefixes: list[str]) -> str:
    """Join prefixes into a pattern, longest first, so that the most specific rule applies."""
    return "|".join(re.escape(prefix) for prefix in sorted(prefixes, key=len, reverse=True))


_RULE_OF = {
    prefix: (rule, least) for rule, (some, least) in _KNOWN.items() for prefix in some.split()
}
# The condition on the text before the prefix comes last, because a pattern is faster if it starts
# with characters.
_FIRST_TWO = re.compile(
    "(?:"
    + "|".join(
        f"{first}[{''.join(sorted({re.escape(word[1]) for word in _RULE_OF if word[0] == first}))}]"
        for first in sorted({word[0] for word in _RULE_OF})
    )
    + r")(?:(?<![A-Za-z]..)|(?<=%[0-9A-F]{2}..))"
)
_PREFIX = re.compile(rf"(?:{_join_alternatives(list(_RULE_OF))})(?=[A-Za-z0-9_\-/+])")
# Prefixes that also occur in code, so the text after them must look random.
_PLAIN_WORDS = frozenset(
    "test_ live_ secret_ oauth_ key_ key- api- sdk- mob- at_ rt_ co_ as- ak- st. sk."
    " tk. sl. t1. pat- pat sk_ sk- fc- fw_ dp.st. tk_ ops_ API- A3- apk_ pdt_ neon_"
    " sess- hpat_ mfa. csk_ csk- fal- m0- y0_ LWR- scw- pul- v1.0-".split()
)
_REST_OF_WORD = re.compile("[a-z]{1,12}[_=/-]")
_NO_WORDS = re.compile(r"(?=(?:[^0-9]*[0-9]){4})[A-Za-z0-9-]{16,}")
_DISTINCTIVE = 4
"""Minimum length of a prefix that is recognized even right after a digit."""
_ENOUGH = 96
_BODY = re.compile(r"[A-Za-z0-9_\-./+=~!%]{1,4000}")
_CAPITALS = re.compile(r"[A-Z0-9]{16}(?![A-Za-z0-9])")

# Tokens without a known prefix, but with a unique shape. Each row has a substring that the run must
# contain, because a substring check is cheaper than matching the pattern. The row without one needs
# a long run.
_SHAPES = (
    ("jwt", "ey", r"ey[JI][A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+){1,4}"),
    ("jwt", "eyJ", r"eyJ(?:hbGci|0eXAi|raWQi|lbmMi|jdHki)[A-Za-z0-9_-]{4,}+"),
    ("api-key", "re_", r"re_[A-Za-z0-9]{6,10}_[A-Za-z0-9]{10,40}"),
    ("bot-token", ":A", r"\d{6,12}:A[A-Za-z0-9_-]{20,60}"),
    ("bot-token", ".", r"[MNO][A-Za-z0-9_-]{17,30}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{10,50}"),
    ("api-key", "-us", r"[0-9a-f]{24,32}-us\d{1,2}"),
    ("api-key", "-", r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{4,8}"),
    ("api-key", ".", r"[0-9a-f]{32}\.[A-Za-z0-9]{8,40}"),
    ("api-key", "NRAL", r"[0-9a-f]{30,36}(?:NRAL|FFFFNRAL)"),
    ("api-key", "_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    ("platform-token", ".atlasv1.", r"[A-Za-z0-9]{10,16}\.atlasv1\.[A-Za-z0-9_-]{16,90}"),
    ("cloud-key", "A", r"[A-Za-z0-9]{40,80}(?:JQQJ99|AZDO|APIM|ACDb)[A-Za-z0-9]{4,40}"),
    (
        "cloud-key",
        "A",
        r"[A-Za-z0-9+/_-]{30,90}(?:\+ASt|AStT|AzSeA|ARm|AIoT|AzFu|ACRA)[A-Za-z0-9+/=_-]{4,12}",
    ),
    ("cloud-key", "Q~", r"[A-Za-z0-9_~.]{3}[78]Q~[A-Za-z0-9_~.-]{20,40}"),
    ("cloud-key", "%3D", r"AAAAAAAAAAAAAAAA[A-Za-z0-9%]{20,200}"),
    ("api-key", ":", r"[A-Za-z]{2,12}:[A-Za-z0-9]{16,40}:[0-9a-f]{32,64}"),
    ("api-key", ":APA91b", r"[A-Za-z0-9_-]{7,20}:APA91b[A-Za-z0-9_-]{20,200}"),
    ("api-key", ":", r"[0-9a-f]{24}:[0-9a-f]{64}"),
    ("api-key", ":", r"[012]/\d{10,20}(?:/\d{10,20})?:[0-9a-f]{32}"),
    ("api-key", "oauth:", r"oauth:[a-z0-9]{30}"),
    ("api-key", "KEY", r"KEY[0-9A-F]{32}_[A-Za-z0-9]{22}"),
    (
        "api-key",
        ".",
        r"(?<!\.)[A-Za-z0-9_-]{5,8}\.[A-Za-z0-9_-]{5,8}:[A-Za-z0-9_-]{16,64}(?![.:/])",
    ),
    ("api-key", "pk_", r"pk_[0-9a-f]{34}"),
    ("signing-key", "nsec1", r"nsec1[02-9a-z]{50,60}"),
    ("signing-key", "", r"[5KL][1-9A-HJ-NP-Za-km-z]{50,51}"),
    ("twilio-key", "SK", r"SK[0-9a-f]{24,32}"),
    ("twilio-key", "AC", r"AC[0-9a-f]{24,32}"),
    ("tunnel-token", "_", r"2[A-Za-z0-9]{24,28}_[A-Za-z0-9]{4,24}"),
    ("signing-key", "-", r"(?:[A-Z2-7]{4,6}-){5,7}[A-Z0-9]{4,6}"),
)
_SHAPE = tuple(
    (rule, needs, re.compile(rf"(?<![A-Za-z0-9_-]){pattern}(?![A-Za-z0-9])"))
    for rule, needs, pattern in _SHAPES
)
_PREFIXED = re.compile(
    r"(?<![A-Za-z0-9_\-./])([A-Za-z][A-Za-z0-9]{1,13}(?:[_-][A-Za-z0-9]{1,10}){0,2})[_-]"
    r"([A-Za-z0-9][A-Za-z0-9_-]{15,400})"
)

_DIGIT = re.compile("[0-9]")
_SHORTEST_SHAPE = 26
_LONG_SHAPE = 51
_DOTTED = re.compile(
    r"(?<![A-Za-z0-9_\-./])(?:[A-Za-z0-9]{1,12}\.)?([A-Za-z0-9_-]{16,200})\."
    r"([A-Za-z0-9_-]{16,200})(?![\w.\-])"
)
TOKEN_RUN = re.compile(r"(?<![A-Za-z0-9_\-+/=.~%!:])[A-Za-z0-9_\-+/=.~%!:]{16,}+")
"""Pattern for runs of characters that are long enough to contain a token."""


def is_public_id(word: str) -> bool:
    """Return whether a word starts like a public id, which is not secret."""
    return not _PUBLIC_IDS.isdisjoint(re.split("[_-]", word[:40].lower())[:2])


def find_tokens(run: str) -> list[SecretSpan]:
    """Return the start, end and rule of each token in a run of characters."""
    spans = find_known(run)
    if _DIGIT.search(run):
        if len(run) >= _SHORTEST_SHAPE:
            spans += _find_shaped(run)
        spans = spans or _find_prefixed(run)
    return [] if spans and public_values.is_public_run(run) else spans


def find_known(run: str) -> list[SecretSpan]:
    """Return the tokens that start with a known prefix."""
    spans: list[SecretSpan] = []
    for start in _FIRST_TWO.finditer(run):
        if spans and start.start() < spans[-1][1]:
            continue
        match = _PREFIX.match(run, start.start())
        if match is None:
            continue
        prefix = match[0]
        if run.startswith("pk_", start.start() - len("pk_")):
            continue  # the public half of a key pair
        if _is_glued(run, match.start()) and not _is_distinctive(prefix):
            continue
        rule, least = _RULE_OF[prefix]
        body = _BODY.match(run, match.end())
        if body is None:
            continue
        text = body[0].rstrip(".:!+/")
        if public_values.is_package_file(prefix + text):
            continue
        if len(text) >= least and _fits_prefix(prefix, text[:_ENOUGH]):
            spans.append((match.start(), match.end() + len(text), rule))
    return spans


def _is_glued(run: str, at: int) -> bool:
    """Return whether a digit precedes a position, other than one in a percent escape."""
    return run[at - 1 : at].isdigit() and run[max(0, at - 3) : max(0, at - 2)] != "%"


def _is_distinctive(prefix: str) -> bool:
    return len(prefix) >= _DISTINCTIVE and prefix[-1] in "_-" and prefix not in _PLAIN_WORDS


def _fits_prefix(prefix: str, body: str) -> bool:
    """Return whether the text after a prefix looks random. Short prefixes need more evidence."""
    if value_tests.is_placeholder(body) or "xxxxx" in body.lower():
        return False
    if prefix in {"AKIA", "ASIA", "ABIA", "ACCA"}:
        return _CAPITALS.match(body) is not None or (len(body) < 16 and body.isupper())
    if prefix.islower() and _REST_OF_WORD.match(body):
        return False
    if len(prefix) <= 5 and prefix[-1] not in "_-.~/":
        return "/" not in body[:40] and value_tests.is_random(body, 16)
    if prefix in _PLAIN_WORDS:
        pieces = re.split(r"[_.]", body)
        return value_tests.has_uuid(body) or (
            any(value_tests.is_random(piece, 14) for piece in pieces)
            and any(value_tests.is_random(piece, 10) for piece in body.split("/"))
        )
    return (
        value_tests.has_uuid(body)
        or value_tests.is_random(body, 10)
        or (_NO_WORDS.fullmatch(body) is not None and len(set(body)) > len("words"))
    )


def _find_shaped(run: str) -> list[SecretSpan]:
    return [
        (*match.span(), rule)
        for rule, needs, pattern in _SHAPE
        if (needs in run if needs else len(run) >= _LONG_SHAPE)
        for match in pattern.finditer(run)
        if not value_tests.is_placeholder(match[0])
    ]


def _is_mixed(piece: str) -> bool:
    """Return whether a piece looks random and contains digits and letters of both cases."""
    return (
        value_tests.is_random(piece, 16)
        and value_tests.has_digit(piece)
        and not piece.islower()
        and not piece.isupper()
    )


def _find_prefixed(run: str) -> list[SecretSpan]:
    """Return tokens of the form `word_` or `word-` followed by random characters."""
    spans: list[SecretSpan] = []
    if "." in run and "/" not in run:
        spans += [
            (*match.span(), "api-key")
            for match in _DOTTED.finditer(run)
            if all(_is_mixed(piece) for piece in match.groups())
        ]
    if "_" not in run and "-" not in run:
        return spans
    for match in _PREFIXED.finditer(run):
        words = re.split("[_-]", match[1].lower())
        body = match[2]
        if not _PUBLIC_IDS.isdisjoint(words) or value_tests.is_uuid(body):
            continue
        separator = match[0][len(match[1])]
        longest = max(re.split("[_-]", body), key=len)
        if value_tests.is_hex(longest):
            is_random = separator == "_" and len(longest) >= 32 and value_tests.is_random(longest)
        else:
            is_random = len(longest) >= 16 and value_tests.is_random(longest, 16) and "/" not in run
        if is_random:
            spans.append((*match.span(), "api-key"))
    return spans
