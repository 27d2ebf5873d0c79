"""A sandbox shows nothing that it was not given."""

from rekindle.policy.sandbox.sandbox_command import SandboxCommand


def test_a_sandbox_is_closed_unless_told_otherwise():
    sandbox = SandboxCommand(program="/bin/bwrap", mounts=(), folder="/w")
    assert (sandbox.has_network, sandbox.links, sandbox.limits) == (False, {}, ())
