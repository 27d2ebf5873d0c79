"""Find secrets in a text and replace them before anything is written.

`find_secrets` combines the rules of `known_tokens` (recognized by their own format),
`named_secrets` (recognized by their name) and `format_secrets` (recognized by the format around
them); `value_tests` judges a single word. `redaction` applies them to everything that a store
writes.
"""
