"""Public values that look like secrets stay, and the secrets next to them do not."""

import json
import random

import pytest

from fakes import fakes
from look_alikes import KINDS, nested, sealed, url_encoded
from rekindle.policy.redact.find_secrets import find_secrets, redact_text

LINES = 40


@pytest.mark.parametrize("kind", KINDS)
def test_a_public_value_stays(kind):
    """Redaction changes no line of this kind."""
    rng = random.Random(kind)
    for _ in range(LINES):
        text = f"before\n{KINDS[kind](rng)}\nafter"
        assert redact_text(text) == text


@pytest.mark.parametrize("kind", KINDS)
def test_a_secret_next_to_a_public_value_goes(kind):
    """The search finds a secret in the same line, in front of and behind a public value."""
    rng = random.Random(kind)
    for fake in fakes(7, LINES // 2):
        public = KINDS[kind](rng).partition("\n")[0]
        for text in (f"{public}\n{fake.line}", f"{fake.line}\n{public}"):
            assert fake.secret not in redact_text(text), text


@pytest.mark.parametrize("field", ["encrypted_content", "signature", "thoughtSignature", "ETag"])
def test_a_token_in_a_public_field_goes(field):
    """The name of a field does not protect a token of a known vendor."""
    token = "gh" + "p_" + "a7Bq2Xz9Kd4Lm8Pw3Rt6Vy1Ns5Jc0Hf2Gk7"
    text = json.dumps({field: token, "kty": "EC", "kid": token, "x": token})
    assert token not in redact_text(text)


def test_the_private_fields_of_a_key_go():
    rng = random.Random(7)
    secret, public = url_encoded(rng, 32), url_encoded(rng, 32)
    key = {"kty": "EC", "crv": "P-256", "x": public, "y": public, "d": secret}
    for text in (nested(rng, {"keys": [key]}) for _ in range(5)):
        cleaned = redact_text(text)
        assert secret not in cleaned
        assert public in cleaned


def test_a_secret_inside_a_transcript_goes():
    """The encrypted blocks around a message do not hide it."""
    rng = random.Random(7)
    for fake in fakes(7, LINES):
        content = [{"type": "thinking", "thinking": fake.line, "signature": sealed(rng)}]
        text = nested(rng, {"message": {"content": content}})
        assert find_secrets(text), text
        assert fake.secret not in redact_text(text), text
