"""Run one cycle, judge its relay, and close it."""
