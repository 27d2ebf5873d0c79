"""Choose the process functions for this host: `here` is one of two modules.

Both modules have the same functions, and the tests run both on Linux.
"""

import sys

if sys.platform == "linux":
    from rekindle.system.processes import linux_processes as here
else:
    from rekindle.system.processes import psutil_processes as here

__all__ = ["here"]
