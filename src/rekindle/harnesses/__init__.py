"""Vendor dialects: pure translators, one file each."""
