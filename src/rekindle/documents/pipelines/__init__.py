"""Documents about pipeline runs."""
