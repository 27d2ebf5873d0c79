"""Addresses of `notify:` and their variables."""

import pytest

from rekindle.errors import NotifyVariableError
from rekindle.policy.settings.notify_addresses import (
    has_only_variables,
    hide_address_secrets,
    name_variables,
    resolve_address,
)

ENVIRON = {"TOPIC": "alerts-1", "URL": "json://me:pass@host/$NOT", "EMPTY": "", "A_1": "a"}


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("ntfys://$TOPIC", "ntfys://alerts-1"),
        ("ntfys://${TOPIC}x/$A_1", "ntfys://alerts-1x/a"),
        ("$URL", ENVIRON["URL"]),
        ("json://host/a%24TOPIC?b=$1&c=$", "json://host/a%24TOPIC?b=$1&c=$"),
        ("", ""),
    ],
)
def test_variables_are_replaced_once(address, expected):
    """The value of a variable is used unchanged; a dollar without a name stays one."""
    assert resolve_address(address, ENVIRON) == expected


@pytest.mark.parametrize("name", ["MISSING", "EMPTY"])
def test_a_variable_that_is_not_set_is_named(name):
    with pytest.raises(NotifyVariableError, match=rf"\${name}, which is empty") as refused:
        resolve_address(f"json://me:hunter2@${name}", ENVIRON)
    assert refused.value.variable == name
    assert "hunter2" not in str(refused.value) + refused.value.hint


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("$URL", True),
        ("ntfys://$TOPIC", True),
        ("slack://$A/$B/${C}", True),
        ("json://$USER:$PASS@$HOST/?x", False),
        ("json://$USER:$PASS@$HOST", True),
        ("ntfys://topic", False),
        ("json://me:secret@$HOST", False),
        ("$URL/secret", False),
        ("tgram://123:ABC/5", False),
    ],
)
def test_only_variables_are_without_secrets(address, expected):
    """A literal topic, token or password may be one; a scheme is not."""
    assert has_only_variables(address) is expected


def test_the_variables_of_an_address_are_named():
    """A supervisor that is started with few variables is given these."""
    assert name_variables("json://$USER:${PASS}@host/$$") == ["USER", "PASS"]


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("$URL", "$URL"),
        ("ntfys://$TOPIC", "ntfys://$TOPIC"),
        ("slack://token/b", "slack://…"),
        ("token", "…"),
        ("$URL/secret", "…"),
    ],
)
def test_an_address_is_shown_without_its_secrets(address, shown):
    """Its scheme is not one."""
    assert hide_address_secrets(address) == shown
