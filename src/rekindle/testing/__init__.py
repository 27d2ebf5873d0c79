"""Support for tests of harness plugins, and of programs that use the Python API."""

from rekindle.testing.memory_home import MemoryHome

__all__ = ["MemoryHome"]
