"""Run agents on many hosts: an engine stores their state, and any host in a pool runs their cycles.

Without the `fleet` extra, importing this package raises an error that explains how to install it.
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
