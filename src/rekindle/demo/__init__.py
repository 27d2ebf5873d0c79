"""A demonstration that needs no key, no network and no model."""
