"""Names by how reliably they indicate a secret."""

import json
from pathlib import Path

from rekindle.policy.redact.secret_names import rate_name

STRENGTHS = json.loads(Path(__file__).with_name("secret_names.json").read_text())["strengths"]


def test_the_strength_of_each_name():
    """It is empty if the name is that of something else."""
    rated = {name: rate_name(name) for name in STRENGTHS}
    assert {name: strength.name if strength else "" for name, strength in rated.items()} == (
        STRENGTHS
    )
