"""Fake secrets, generated when a test runs, so that the repository contains none."""

import base64
import random
import string
from collections.abc import Callable, Iterator
from typing import NamedTuple

LETTERS = string.ascii_letters + string.digits
SMALL = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"


class Fake(NamedTuple):
    line: str
    """The form in which a person would write it down."""
    secret: str
    """The part that must not survive."""


def drawn(rng: random.Random, size: int, alphabet: str = LETTERS) -> str:
    """Return random characters with a digit and a letter among the first few."""
    return "a7" + "".join(rng.choice(alphabet) for _ in range(size - 2))


def password(rng: random.Random) -> str:
    word = rng.choice(["Tundra", "maple", "Orbit", "velvet"])
    return word + rng.choice("-_.!") + drawn(rng, 4, SMALL) + str(rng.randrange(1000, 9999))


def uuid(rng: random.Random) -> str:
    return "-".join(drawn(rng, size, HEX) for size in (8, 4, 4, 4, 12))


# A family: a generator of the secret, and the line around it, with {} in its place.
FAMILIES: dict[str, tuple[Callable[[random.Random], str], str]] = {
    "github": (lambda r: "gh" + "p_" + drawn(r, 36), "the key is {} for now"),
    "gitlab": (lambda r: "gl" + "pat-" + drawn(r, 20), "remote uses {}"),
    "anthropic": (lambda r: "sk-" + "ant-api03-" + drawn(r, 90), "{}"),
    "slack": (lambda r: "xo" + "xb-" + drawn(r, 12, "0123456789") + "-" + drawn(r, 24), "bot {}"),
    "cloud id": (lambda r: "AK" + "IA" + "A7" + drawn(r, 14).upper(), "id {} was used"),
    "unknown vendor": (lambda r: "zq" + "x_" + drawn(r, 32), "try {}"),
    "jwt": (
        lambda r: ".".join(
            base64.urlsafe_b64encode(part.encode()).decode().rstrip("=")
            for part in ('{"alg":"HS256"}', f'{{"sub":"{drawn(r, 12)}"}}', drawn(r, 30))
        ),
        "cookie was {}",
    ),
    "environment": (password, "DB_PASSWORD={}"),
    "yaml": (lambda r: drawn(r, 32, HEX), "api_key: {}"),
    "json": (lambda r: drawn(r, 40), '{{"clientSecret": "{}"}}'),
    "python": (lambda r: drawn(r, 24), 'client(auth_token="{}")'),
    "header": (lambda r: drawn(r, 40), 'curl -H "Authorization: Bearer {}"'),
    "flag": (password, "deploy --password {} --now"),
    "login": (password, "curl -u ops:{} https://example.com"),
    "url": (password, "postgres://app:{}@db.example.com/main"),
    "query": (lambda r: drawn(r, 32), "GET https://example.com/x?access_token={}&page=2"),
    "webhook": (lambda r: drawn(r, 24), "https://hooks.example.com/services/T0AB/B0CD/{}"),
    "netrc": (password, "machine example.com login ops password {}"),
    "xml": (password, "<password>{}</password>"),
    "windows": (lambda r: drawn(r, 30), '$env:API_TOKEN = "{}"'),
    "uuid": (uuid, "SERVICE_TOKEN={}"),
    "connection": (password, "Server=db;Uid=sa;Password={};Encrypt=true"),
    "prose": (password, "The password for staging is {}"),
    "shell": (lambda r: drawn(r, 40), "export DEPLOY_KEY={}"),
    "hash": (lambda r: "$2b" + "$12$" + drawn(r, 53), "ops:{}"),
}


def fakes(seed: int, count: int) -> Iterator[Fake]:
    """Yield secrets of every family in turn, without repetition."""
    rng = random.Random(seed)
    families = list(FAMILIES.values())
    for number in range(count):
        make, line = families[number % len(families)]
        secret = make(rng)
        yield Fake(line.format(secret), secret)
