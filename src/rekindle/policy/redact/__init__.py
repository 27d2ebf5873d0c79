"""Redaction: what must not leave a transcript is replaced before anything is written.

`finding` says where the secrets of a text are, by the rules of `tokens` (they identify themselves),
`named` (their name gives them away) and `structure` (a format does); `values` judges a single word.
`redaction` applies it to what a store keeps.
"""
