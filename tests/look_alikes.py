"""Random text that looks like a secret and is public, by kind, generated when a test runs."""

import base64
import json
import random
from collections.abc import Callable
from typing import Any

from fakes import HEX, LETTERS

PACKAGES = [
    "minipass",
    "pgpass",
    "keyvault-secrets",
    "js-tokens",
    "client-secret",
    "fe_change_pwd",
    "password-prompt",
    "auth-token",
    "credentials",
    "passwd-user",
    "cookie-signature",
    "@aws-sdk/credential-providers",
]
FILES = [
    "hf_xet",
    "pathspec",
    "token_bucket",
    "pypi_attestations",
    "key_value",
    "test_utils",
    "api_core",
    "secretstorage",
]
MODULES = ["aws/aws-sdk-go-v2/credentials", "zalando/go-keyring", "mitchellh/secret", "x/go-token"]
ITEMS = ["fc", "rs", "msg", "resp", "ws", "ctc", "mcp", "ci", "ig", "lsh", "cmp"]


def letters(rng: random.Random, size: int, alphabet: str = LETTERS) -> str:
    return "".join(rng.choice(alphabet) for _ in range(size))


def digits(rng: random.Random, size: int) -> str:
    return letters(rng, size, HEX)


def encoded(rng: random.Random, size: int) -> str:
    return base64.b64encode(rng.randbytes(size)).decode()


def url_encoded(rng: random.Random, size: int) -> str:
    return base64.urlsafe_b64encode(rng.randbytes(size)).decode().rstrip("=")


def sealed(rng: random.Random) -> str:
    """A block as Claude Code and Gemini CLI keep it: an encoded protocol buffer."""
    head = bytes([rng.choice([10, 18]), rng.randrange(128, 256), rng.randrange(1, 8)])
    return base64.b64encode(head + rng.randbytes(rng.randrange(150, 900))).decode()


def encrypted(rng: random.Random) -> str:
    """Reasoning as Codex keeps it: a Fernet token."""
    body = b"\x80" + bytes(4) + rng.randbytes(rng.randrange(6, 60) * 16 + 4)
    return base64.urlsafe_b64encode(body).decode()


def nested(rng: random.Random, value: Any) -> str:
    """JSON, sometimes within a string of other JSON, as in a transcript."""
    text = json.dumps(value)
    for _ in range(rng.randrange(3)):
        text = json.dumps({"output": text})
    return text


def etag(rng: random.Random) -> str:
    part = f"{digits(rng, 32)}-{rng.randrange(2, 90)}"
    return rng.choice([digits(rng, 40), part, encoded(rng, 12), url_encoded(rng, 32)])


def jwk(rng: random.Random) -> dict[str, Any]:
    kinds = (
        {"kty": "RSA", "alg": "RS256", "n": url_encoded(rng, 256), "e": "AQAB"},
        {"kty": "EC", "crv": "P-256", "x": url_encoded(rng, 32), "y": url_encoded(rng, 32)},
        {"kty": "OKP", "crv": "Ed25519", "x": url_encoded(rng, 32)},
        {"kty": "RSA", "x5t": url_encoded(rng, 20), "x5c": ["MII" + encoded(rng, 700)]},
    )
    fields = [*rng.choice(kinds).items(), ("kid", rng.choice([url_encoded, letters])(rng, 32))]
    rng.shuffle(fields)
    return dict(fields)


def version(rng: random.Random) -> str:
    before = rng.choice(["", "^", "~", ">=", "npm:^", "==", "v", "workspace:^", "~>"])
    numbers = ".".join(str(rng.randrange(40)) for _ in range(3))
    return before + numbers + rng.choice(["", "-beta.1", "-rc.2", "+incompatible", "|^9.0"])


def package(rng: random.Random) -> str:
    return rng.choice(PACKAGES)


# A kind: a line of this kind.
KINDS: dict[str, Callable[[random.Random], str]] = {
    "call": lambda r: nested(r, {"id": f"fc_{digits(r, 50)}", "call_id": f"call_{letters(r, 24)}"}),
    "call in a log": lambda r: f"token budget of fc_{digits(r, 48)} (call_{letters(r, 24)}) spent",
    "item": lambda r: nested(r, {"item_id": f"{r.choice(ITEMS)}_{digits(r, 50)}"}),
    "message": lambda r: nested(
        r,
        {
            "requestId": f"req_011C{letters(r, 20)}",
            "message": {"id": f"msg_01{letters(r, 22)}", "x": f"toolu_01{letters(r, 22)}"},
        },
    ),
    "server tool": lambda r: nested(r, {"tool_use_id": f"srvtoolu_01{letters(r, 22)}"}),
    "reasoning": lambda r: nested(r, {"type": "reasoning", "encrypted_content": encrypted(r)}),
    "thinking": lambda r: nested(r, {"type": "thinking", "thinking": "", "signature": sealed(r)}),
    "hidden": lambda r: nested(r, {"type": "redacted_thinking", "data": sealed(r)}),
    "thought": lambda r: nested(r, {"functionCall": {}, "thoughtSignature": sealed(r)}),
    "etag": lambda r: r.choice(['ETag: "{}"', '< etag: W/"{}"', "If-None-Match: {}"]).format(
        etag(r)
    ),
    "etag in json": lambda r: nested(r, {"Key": "a/b.txt", "ETag": f'"{etag(r)}"'}),
    "public key": lambda r: nested(r, {"keys": [jwk(r), jwk(r)]}),
    "secretary": lambda r: r.choice(
        ['"secretary": "{}"', "secretary_ref={}", "company_secretary: '{}'", "secreted = '{}'"]
    ).format(r.choice(["J0hnDoe99", "x4711-Zk", "Ext_4419#2", "anna.meyer2@example.org"])),
    "placeholder": lambda r: r.choice(
        ["password={{{}}}", "secret = '{{{}}}'", "postgres://u:{{{}}}@h/db", "Bearer {{{}}}"]
    ).format(r.choice(["DB_PASSWORD", "settings.token2", "token!r", "cfg['key1']", "0"])),
    "package-lock.json": lambda r: f'    "{package(r)}": "{version(r)}",',
    "integrity": lambda r: f'"{package(r)}": {{"integrity": "sha512-{encoded(r, 64)}"}}',
    "yarn.lock": lambda r: f'    {package(r)}: "{version(r)}"',
    "pnpm-lock.yaml": lambda r: f"  {package(r)}: 1.2.3(patch_hash={digits(r, 64)})",
    "uv.lock": lambda r: (
        f'{{ url = "https://example.com/{digits(r, 60)}/{r.choice(FILES)}-1.2.3-cp313-cp313'
        f'-manylinux_2_28_x86_64.whl", hash = "sha256:{digits(r, 64)}" }}'
    ),
    "poetry.lock": lambda r: f'{{file = "{r.choice(FILES)}-1.1.tar.gz", hash = "sha256:f7"}}',
    "go.sum": lambda r: (
        f"github.com/{r.choice(MODULES)} v0.0.0-20210921155107-{digits(r, 12)}"
        f"{r.choice(['', '/go.mod'])} h1:{encoded(r, 32)}"
    ),
    "Cargo.lock": lambda r: f'name = "{package(r)}"\nchecksum = "{digits(r, 64)}"',
    "flake.lock": lambda r: nested(r, {"narHash": f"sha256-{encoded(r, 32)}"}),
    "Gemfile.lock": lambda r: f"    {package(r)} ({version(r)})",
    "composer.lock": lambda r: f'"{package(r)}": "{r.choice(["<2.0.5|>=3,<3.0.3", "~2.1.0"])}",',
    "requirements": lambda r: f"{package(r)}=={version(r)} --hash=sha256:{digits(r, 64)}",
}
