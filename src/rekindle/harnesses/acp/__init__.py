"""Harness for agents that speak the Agent Client Protocol, and the bridge that talks to them."""
