"""Detect cycles without progress, and decide how to escalate.

`directive` parses the request in a relay, and `directive_words` defines the significant words in
English and Chinese. `relay_comparison` returns a `verdict` on two consecutive relays, `stretches`
finds the part of a history that was stuck, and `stall_response` decides whether to record the
stall, notify a person, or pause the run.
"""
