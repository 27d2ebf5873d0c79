"""A route: one place where an agent's work can run, which is a CLI and one of its accounts."""

import msgspec


class Route(msgspec.Struct, frozen=True, order=True):
    harness: str
    account: str = ""
    """Name in the manifest's `accounts:`; empty for the CLI's own configuration."""

    def __str__(self) -> str:
        return f"{self.harness}/{self.account}" if self.account else self.harness
