"""The Python API, on which the commands and screens are built.

`rekindle.connect(folder)` returns a `Home`. Import the public names from `rekindle`.
"""
