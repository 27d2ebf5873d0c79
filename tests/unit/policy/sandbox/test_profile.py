"""The stricter of two sandboxes counts."""

import msgspec
import pytest

from rekindle.documents.manifest_sandbox import SandboxEntry
from rekindle.policy.sandbox.profile import SandboxFloor, SandboxProfile, choose_profile, parse_size


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        ((None, None), None),
        ((False, None), None),
        ((True, False), SandboxProfile()),
        ((None, True), SandboxProfile()),
        ((False, SandboxEntry(write=["a"])), SandboxProfile(write=("a",))),
        ((SandboxEntry(write=["a"]), True), SandboxProfile()),
        (
            (SandboxEntry(["a", "b"], ["c"], ["d"]), SandboxEntry(["b"], ["c"], ["e"])),
            SandboxProfile(("b",), ("c",), ()),
        ),
        (
            (SandboxEntry(memory="2G", processes=5), SandboxEntry(memory="512M", processes=9)),
            SandboxProfile(memory=512 << 20, processes=5),
        ),
        ((SandboxEntry(memory="1G"), True), SandboxProfile(memory=1 << 30)),
        ((SandboxEntry(cpu=2.0), SandboxEntry(cpu=0.5)), SandboxProfile(cpu=0.5)),
        ((SandboxEntry(cpu=2.0), True), SandboxProfile(cpu=2.0)),
        (("container", True), SandboxProfile(is_container=True)),
        (("container", False), SandboxProfile(is_container=True)),
        ((SandboxEntry(container=True), True), SandboxProfile(is_container=True)),
        ((SandboxEntry(container=False), True), SandboxProfile()),
    ],
)
def test_the_stricter_one_counts(keys, chosen):
    assert choose_profile(*keys) == chosen
    assert choose_profile(*reversed(keys)) == chosen


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        ((), SandboxProfile(memory=100, processes=10)),
        ((False, None), SandboxProfile(memory=100, processes=10)),
        ((SandboxEntry(processes=5),), SandboxProfile(memory=100, processes=5)),
        ((SandboxEntry(memory="1G"),), SandboxProfile(memory=100, processes=10)),
        ((SandboxEntry(cpu=2.0),), SandboxProfile(memory=100, processes=10, cpu=2.0)),
        ((SandboxEntry(network=["h"]),), SandboxProfile((), (), ("h",), 100, 10)),
    ],
)
def test_an_agent_can_only_be_stricter_than_its_host(keys, chosen):
    found = choose_profile(*keys, floor=SandboxFloor(memory=100, processes=10))
    assert found == msgspec.structs.replace(chosen, is_on_host=True)


@pytest.mark.parametrize(
    ("text", "size"), [("4K", 4096), ("8M", 8 << 20), ("1.5G", 3 << 29), ("1T", 1 << 40)]
)
def test_a_size_is_a_number_of_bytes(text, size):
    assert parse_size(text) == size
