"""Errors about running agents: their programs, their models and the engine of a fleet."""

from collections.abc import Iterable

from rekindle.errors.root import RekindleError


class AgentError(RekindleError):
    """The agent could not be started, or its run stopped before the work was done."""

    exit_code = 9
    meaning = "the agent, or a program that it needs, could not be started or did not answer"


class PluginError(AgentError):
    """A harness from another package does not work."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"the plugged-in harness {name!r} {reason}",
            hint="upgrade or remove the package that provides it",
        )
        self.name = name
        self.reason = reason


class ProgramMissingError(AgentError):
    """The agent's program is not installed, or not on the search path."""

    def __init__(self, program: str, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{program} could not be started: {reason}", hint=hint)
        self.program = program
        self.reason = reason


class StoppedError(AgentError):
    """A stop was requested, so Rekindle no longer waits for an answer."""

    def __init__(self) -> None:
        super().__init__("stopped before it was answered", hint="the next run asks for it again")


class SummaryError(AgentError):
    """A summarizer did not answer; the attempt may still have cost something."""

    def __init__(self, message: str, *, hint: str = "", usd: float = 0.0, tokens: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.usd = usd
        self.tokens = tokens


class OverBudgetError(SummaryError):
    """The input exceeds the summarizer's limit. It is never truncated silently."""

    def __init__(self, size: int, cap: int) -> None:
        super().__init__(
            f"at least {size:,} tokens to summarize, and a summarizer gets at most {cap:,}",
            hint="raise `runtime.relay.summarizer_max_input_tokens`, or summarize without a model",
        )
        self.size = size
        self.cap = cap


class UnfinishedError(AgentError):
    """A run stopped or paused before its work was done; the exit code is that of its outcome."""

    def __init__(self, message: str, *, hint: str, outcome: str, exit_code: int) -> None:
        super().__init__(message, hint=hint)
        self.outcome = outcome
        self.exit_code = exit_code


class EngineError(RekindleError):
    """A fleet's engine could not be reached, or refused access. Keys are never shown."""

    exit_code = 10
    meaning = "the engine of the fleet could not be reached, or refused"

    def __init__(self, cause: str, message: str, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.cause = cause
        """One word: unreachable, namespace, tls, credentials, keys, attributes, program or extra;
        for errors about an agent: unanswered, ended or refused.
        """


class CodecKeyError(EngineError):
    """A document was encrypted with a key that is not configured here."""

    def __init__(self, wanted: str, known: Iterable[str]) -> None:
        available = ", ".join(known) or "none"
        super().__init__(
            "keys",
            f"a document in the engine was encrypted with the key {wanted}, which is not among"
            f" ours ({available})",
            hint="add that key at the end of `fleet: codec:`; the first one encrypts, all decrypt",
        )
        self.wanted = wanted


class PlainTextError(EngineError):
    """The engine has plain text, but only encrypted documents are accepted."""

    def __init__(self, workflow: str) -> None:
        of = f" of {workflow}" if workflow else ""
        super().__init__(
            "plain",
            f"a document{of} in the engine is plain text, and only encrypted ones are accepted",
            hint="if the fleet has just begun with encryption, set `fleet: codec: strict: false`"
            " until no agent has plain text (`rekindle doctor` reports it); otherwise check who can"
            " write to the engine",
        )
        self.workflow = workflow
