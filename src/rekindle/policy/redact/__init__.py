"""Find secrets in a text and replace them before anything is written.

`find_secrets` combines three searches, and `redaction` applies it to everything that a store
writes:

- `known_tokens` recognizes tokens by their own format;
- `named_secrets` recognizes them by their name, which `secret_names` rates, with the notations in
  `name_separators`, and `named_values` judges the value;
- `context_secrets` recognizes them by the format around them: `context_patterns`, `key_blocks`,
  `encoded_secrets`.

`literal_search` finds the words that these searches start from. `public_fields` hides fields that
contain random text but are public, and `public_values` recognizes such values elsewhere.
`value_tests` tests a single word, and `json_strings` keeps redacted JSON valid.
"""
