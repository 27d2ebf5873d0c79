"""Which of the two ways to look at processes this host has: `here` is chosen once, and only here.

Both modules have the same functions; the tests run both on Linux.
"""

import sys

if sys.platform == "linux":
    from rekindle.system import linux as here
else:
    from rekindle.system import portable as here

__all__ = ["here"]
