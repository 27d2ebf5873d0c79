"""The process functions for this host: `here` is one of two modules, chosen in this file.

Both modules have the same functions; the tests run both on Linux.
"""

import sys

if sys.platform == "linux":
    from rekindle.system.processes import linux_processes as here
else:
    from rekindle.system.processes import psutil_processes as here

__all__ = ["here"]
