"""Tables of values that are public, and of values that only resemble them."""

import pytest

from rekindle.policy.redact.public_values import is_package_file, is_public_run, is_version

HEX = "0123456789abcdef" * 4
MIXED = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7" * 4


@pytest.mark.parametrize(
    "value",
    [
        *("1.2.3", "v1.2.3", "^7.1.2", "~1.0", ">=1.0,<2.0.1", "<2.0.5|>=3,<3.0.3", "1.x", "2.*"),
        *("npm:^7.0.4", "workspace:^1.2.3", "(1.2.3)", "1.0.0-beta.1", "1.0.0-rc2", "2.0b1"),
        *("v1.19.16/go.mod", "v0.0.0-20210921155107-089bfa567519/go.mod", "v2.0.0+incompatible"),
        *("^1.2||^2.0", "1.2.3-4", "~=3.9.1,"),
    ],
)
def test_versions(value):
    assert is_version(value)


@pytest.mark.parametrize(
    "value",
    [
        *("", "42", "hunter2", "1.2.3-hunter2", "a1.2.3", "v1.2.3/secret", "1.2.3 4", "1..2"),
        *("." * 9, "1." * 200 + "1"),
    ],
)
def test_other_values_are_not_versions(value):
    assert not is_version(value)


def test_a_long_list_of_numbers_is_rejected_quickly():
    """No number can belong to two versions, so the pattern does not try all combinations."""
    assert not is_version("1-1" * 39 + ".x!")
    assert not is_version("1.1," * 29 + "!")


def test_package_files():
    assert is_package_file("hf_xet-1.2.0-cp313-cp313t-macosx_10_12_x86_64.whl")
    assert is_package_file("pathspec-1.1.tar.gz")
    assert not is_package_file("hf_aB3dE6gH9jK2mN5pQ8sT")
    assert not is_package_file("hf_xet-1.2.0-cp313")
    assert not is_package_file("hf_xet-1.whl")
    assert not is_package_file("a" * 300 + "-1.2.whl")


@pytest.mark.parametrize(
    ("run", "public"),
    [
        (f"fc_{HEX[:48]}", True),
        (f"call_id=call_{MIXED[:24]}", True),
        (f"srvtoolu_{MIXED[:24]}", True),
        (f"req_01{MIXED[:22]}", True),
        (f"sha512-{(MIXED + MIXED)[:86]}==", True),
        (f"h1:{MIXED[:43]}=", True),
        (f"integrity:sha256-{MIXED[:43]}=", True),
        (f"fc_{HEX[:32]}", False),
        (f"fc-{HEX[:48]}", False),
        (f"call_{MIXED[:40]}", False),
        (f"ghp_{MIXED[:36]}:call_{MIXED[:24]}", False),
        (f"sha512-{MIXED[:80]}==", False),
        (f"sha256~{MIXED[:43]}", False),
    ],
)
def test_public_runs(run, public):
    """Ids and hashes have exact lengths."""
    assert is_public_run(run) is public
