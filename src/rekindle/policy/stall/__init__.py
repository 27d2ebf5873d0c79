"""Detect cycles without progress, and decide how to escalate.

`directive` parses the request in a relay, and `directive_words` defines the significant words in
English and Chinese. `pair_features` measures the change between two consecutive relays,
`stall_weights` holds the fitted weights, and `relay_comparison` returns the `verdict`.
`stall_response` decides whether to record the stall, notify a person, or pause the run,
`replayed_cycles` does so for a recorded history, and `stretches` finds its stuck parts.
"""
