"""Agents over many hosts: an engine keeps them, and any host of a pool runs their cycles.

Whoever imports anything from here without the extra is told how to install it.
"""

from importlib.util import find_spec

from rekindle.errors import ExtraMissingError

for _module in ("temporalio", "cryptography"):
    if find_spec(_module) is None:
        raise ExtraMissingError(_module)
