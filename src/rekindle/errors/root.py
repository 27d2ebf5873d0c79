"""Base class of all exceptions that Rekindle raises on purpose."""


class RekindleError(Exception):
    """Base class for all exceptions that Rekindle raises on purpose."""

    exit_code = 1
    meaning = "an error without a more specific code"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
