"""Detect cycles without progress, and decide how to escalate.

`directive` parses the request in a relay, and `directive_words` defines the significant words in
English and Chinese. `relay_comparison` returns a `verdict` on two consecutive relays, `stretches`
finds the stuck part of a history, and `ladder` decides the consequence: record, notify or pause.
"""
