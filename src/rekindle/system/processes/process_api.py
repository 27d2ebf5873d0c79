"""Choose the process functions for this host.

`here` is one of two modules with the same functions. The tests run both modules on Linux.
"""

import sys

if sys.platform == "linux":
    from rekindle.system.processes import linux_processes as here
else:
    from rekindle.system.processes import psutil_processes as here

__all__ = ["here"]
