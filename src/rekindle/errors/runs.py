"""Errors about running agents: their programs, their models and the fleet's engine."""

from collections.abc import Iterable

from rekindle.errors.root import RekindleError


class AgentError(RekindleError):
    """Raised when the agent could not be started, or its run stopped before the work was done."""

    exit_code = 9
    meaning = "the agent or a program that it needs did not start or did not answer"


class PluginError(AgentError):
    """Raised when a harness from another package does not work."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"the harness {name!r} from a plugin {reason}",
            hint="upgrade or remove the package that provides it",
        )
        self.name = name
        self.reason = reason


class ProgramMissingError(AgentError):
    """Raised when the agent's program is not installed, or not on the search path."""

    def __init__(self, program: str, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{program} could not be started: {reason}", hint=hint)
        self.program = program
        self.reason = reason


class SandboxError(AgentError):
    """Raised when `sandbox:` is on but a sandbox cannot be created. The agent is not started."""


class CredentialsError(AgentError):
    """Raised when a host's credential helper gives no usable credentials. No launch is started."""

    def __init__(self, program: str, reason: str, *, hint: str = "") -> None:
        super().__init__(
            f"the credential helper {program} {reason}",
            hint=hint
            or f"run {program} by hand, as the guide to credentials shows, and correct "
            "it; no key from the environment is used instead",
        )
        self.program = program
        self.reason = reason


class StoppedError(AgentError):
    """Raised when a stop is requested while Rekindle waits for a model's answer."""

    def __init__(self) -> None:
        super().__init__("stopped while waiting for the answer", hint="the next run asks again")


class WaitTimeoutError(RekindleError, TimeoutError):
    """Raised when an agent did not reach a state in time. The agent is not affected."""

    exit_code, meaning = 15, "an agent did not reach a state in time (Python API)"

    def __init__(self, agent: str, state: str) -> None:
        super().__init__(
            f"{agent} is still {state} after the timeout",
            hint=f"wait longer, or see `rekindle status {agent}`",
        )
        self.agent, self.state = agent, state


class SummaryError(AgentError):
    """Raised when a summarizer did not answer. The attempt may still have cost something."""

    def __init__(self, message: str, *, hint: str = "", usd: float = 0.0, tokens: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.usd = usd
        self.tokens = tokens


class OverBudgetError(SummaryError):
    """Raised when the input exceeds the summarizer's limit. Input is never cut silently."""

    def __init__(self, size: int, cap: int) -> None:
        super().__init__(
            f"the input has at least {size:,} tokens, but a summarizer gets at most {cap:,}",
            hint="raise `runtime.relay.summarizer_max_input_tokens`, or summarize without a model",
        )
        self.size = size
        self.cap = cap


class UnfinishedError(AgentError):
    """Raised when a run stops or pauses before its work is done. The exit code shows why."""

    def __init__(self, message: str, *, hint: str, outcome: str, exit_code: int) -> None:
        super().__init__(message, hint=hint)
        self.outcome = outcome
        self.exit_code = exit_code


class EngineError(RekindleError):
    """Raised when a fleet's engine cannot be reached or refuses access. Keys are never shown."""

    exit_code = 10
    meaning = "the fleet's engine could not be reached or denied access"

    def __init__(self, cause: str, message: str, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.cause = cause
        """One-word cause: unreachable, namespace, tls, credentials, keys, attributes, program,
        extra or closed. For errors about an agent: unanswered, ended or refused.
        """


class CollectorError(RekindleError):
    """Raised when an OpenTelemetry collector cannot be reached or refuses what it is sent."""

    exit_code = 16
    meaning = "an OpenTelemetry collector did not take the traces"

    def __init__(self, where: str, why: str) -> None:
        super().__init__(
            f"the collector at {where} did not take the traces: {why}",
            hint="check that it is running and accepts OTLP over HTTP, usually on port 4318",
        )


class PhoneError(RekindleError):
    """Raised when a phone service cannot be reached or refuses a call. Tokens are never shown."""

    exit_code = 17
    meaning = "a phone service could not be reached or refused a call"

    def __init__(
        self, service: str, why: str, *, hint: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(
            f"{service}: {why}",
            hint=hint or "check the network, then try again; a running bridge does so by itself",
        )
        self.retry_after = retry_after
        """Seconds after which the same call may succeed; None if it will fail again."""


class CodecKeyError(EngineError):
    """Raised when a document was encrypted with a key that is not configured here."""

    def __init__(self, wanted: str, known_keys: Iterable[str]) -> None:
        available = ", ".join(known_keys) or "none"
        super().__init__(
            "keys",
            f"a document in the engine was encrypted with the key {wanted}, which is not "
            f"configured here (configured keys: {available})",
            hint=(
                "add that key at the end of `fleet: codec:`; the first key encrypts, and all keys "
                "decrypt"
            ),
        )
        self.wanted = wanted


class PlainTextError(EngineError):
    """Raised when the engine returns plain text but only encrypted documents are accepted."""

    def __init__(self, workflow: str) -> None:
        of = f" of {workflow}" if workflow else ""
        super().__init__(
            "plain",
            f"a document{of} in the engine is plain text, but only encrypted documents are "
            "accepted",
            hint="if the fleet has just started to encrypt, set `fleet: codec: strict: false` "
            "until no agent has plain text (`rekindle doctor` reports it); otherwise check "
            "who can write to the engine",
        )
        self.workflow = workflow
