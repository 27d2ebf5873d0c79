"""The root of all exceptions that Rekindle raises on purpose."""


class RekindleError(Exception):
    """The base class of all exceptions that Rekindle raises on purpose."""

    exit_code = 1
    meaning = "an error that has no code of its own"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
