"""Decide a run's next move: launch, wait, pause or stop."""
