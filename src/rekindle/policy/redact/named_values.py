"""Decide whether a value is a secret, given the strength of its name."""

from rekindle.policy.redact import public_values, value_tests
from rekindle.policy.redact.secret_names import NameStrength


def is_harmless(value: str, form: str, *, quoted: bool) -> bool:
    """Return whether a value cannot be a secret, no matter what its name is."""
    if value_tests.is_placeholder(value) or value_tests.is_file(value) or value_tests.is_tag(value):
        return True
    if public_values.is_version(value):
        return True
    if " " in value or "\t" in value or "://" in value:
        return True
    if quoted:
        return (
            form == "called" and value_tests.is_code(value) and not value_tests.is_random(value, 12)
        )
    # Replacing a bare number with a placeholder would make JSON invalid.
    return value_tests.is_number(value) or value_tests.is_expression(value)


def is_secret(  # noqa: PLR0911 - one return per kind of name
    value: str, strength: NameStrength, *, aside: bool, quoted: bool, form: str
) -> bool:
    """Return whether a value is a secret. `aside` means that it is near the name, not assigned."""
    random = value_tests.is_random(value, 12)
    if random and not quoted and not value_tests.has_digit(value):
        random = (
            len(value) >= 16 and min(_measure_capitals(value), 1 - _measure_capitals(value)) > 1 / 3
        )
    if (
        strength >= NameStrength.MEDIUM
        and (not aside or form == "element")
        and value_tests.is_random_letters(value)
    ):
        return True
    if strength is NameStrength.STRONG:
        if aside:
            # An XML element contains only the value, but a word in a sentence may be followed by
            # code.
            plain = form == "element" or not value_tests.is_code(value)
            mixed = value_tests.has_mixed_characters(value) and plain
            return len(value) >= 8 and value_tests.has_digit(value) and (mixed or random)
        if quoted:
            return random or (len(value) >= 4 and value_tests.has_mixed_characters(value))
        return random or (
            len(value) >= 5
            and value_tests.has_mixed_characters(value)
            and not value_tests.is_code(value)
        )
    if strength is NameStrength.MEDIUM and not (aside and form != "element"):
        short = value_tests.is_random(value, 10) and value_tests.has_digit(value)
        return random or value_tests.is_uuid(value) or (short and not value_tests.is_code(value))
    if value_tests.is_hex(value.rpartition("-")[2]):
        return False  # a name and a checksum, as in a cache key
    is_id = (
        value_tests.is_uuid(value)
        or value_tests.is_hex(value)
        or value_tests.is_code(value)
        or "/" in value
    )
    return not is_id and value_tests.is_random(value, 16 if aside else 20) and form != "called"


def _measure_capitals(value: str) -> float:
    return sum(map(str.isupper, value)) / len(value)
