"""Fixtures for documents that start agents."""

from loopback.fixtures import network, place

__all__ = ["network", "place"]
