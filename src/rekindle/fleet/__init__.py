"""Run agents on many hosts: an engine stores them, and any host of a pool runs their cycles.

Importing this package without the `fleet` extra raises an error that says how to install it.
"""

from importlib.util import find_spec

from rekindle.errors import EngineError

for _module in ("temporalio", "cryptography"):
    if find_spec(_module) is None:
        raise EngineError(
            "extra",
            f"a fleet needs {_module}, which is not installed",
            hint="install it: `uv tool install 'rekindle-agents[fleet]'` or"
            " `pip install 'rekindle-agents[fleet]'`",
        )
