"""Errors in a request: the command line, a name, an answer or a check."""

from collections.abc import Iterable

from rekindle.errors.root import RekindleError


class UsageError(RekindleError):
    """Raised when a name or an option is not valid."""

    exit_code = 2
    meaning = "the command line is invalid"


class AnswerError(UsageError):
    """Raised when a question does not accept the given answer."""

    def __init__(self, question: str, reason: str, choices: Iterable[str]) -> None:
        self.question, self.reason, self.choices = question, reason, tuple(choices)
        super().__init__(
            f"question {question}: the answer {reason}",
            hint=(
                f"the choices are: {', '.join(self.choices)}; `rekindle questions` shows the "
                "question"
            ),
        )


class DefinitionError(UsageError):
    """Raised when a program defines an agent with a value that is not valid."""

    def __init__(self, agent: str, field: str, reason: str, *, hint: str) -> None:
        super().__init__(f"agent {agent}: {field}: {reason}", hint=hint)
        self.agent, self.field, self.reason = agent, field, reason


class NotFoundError(RekindleError):
    """Raised when a name does not match anything."""

    exit_code = 7
    meaning = "the agent, loop, revision or open question does not exist"


class UnknownAgentError(NotFoundError):
    """Raised when the manifest has no agent with the given name."""

    def __init__(self, agent: str, known_names: Iterable[str]) -> None:
        from difflib import get_close_matches  # noqa: PLC0415 - only needed for typos

        names = list(known_names)
        listed = f"has {', '.join(names)}" if names else "has no agents yet"
        like = get_close_matches(agent, names, n=1)
        correct = f"did you mean {like[0]}? Otherwise add" if like else "add"
        super().__init__(
            f"no agent named {agent!r}: rekindle.yaml {listed}",
            hint=f"{correct} it with `rekindle init {agent}`",
        )
        self.agent = agent


class UnknownPipelineError(NotFoundError):
    """Raised when the manifest has no pipeline with the given name."""

    def __init__(self, pipeline: str, known_names: Iterable[str]) -> None:
        listed = ", ".join(known_names)
        super().__init__(
            f"no pipeline named {pipeline!r} in rekindle.yaml",
            hint=f"use one of: {listed}" if listed else "add it below `pipelines:`",
        )


class NotOnFleetError(NotFoundError):
    """Raised when an agent is in the manifest but not on the fleet."""

    def __init__(self, agent: str, *, hint: str = "") -> None:
        super().__init__(
            f"agent {agent} is not on the fleet",
            hint=hint or f"`rekindle run {agent}` starts it there",
        )
        self.agent = agent


class UnknownQuestionError(NotFoundError):
    """Raised when there is no question with the given id, or no question is open."""

    def __init__(self, question: str = "") -> None:
        super().__init__(
            f"no question with id {question!r}" if question else "no question is open",
            hint="`rekindle questions` lists the open ones"
            if question
            else "`rekindle questions --all` lists the earlier ones",
        )
        self.question = question


class ClosedQuestionError(NotFoundError):
    """Raised when a question no longer accepts answers."""

    def __init__(self, question: str, reason: str, command: str = "") -> None:
        """Create the error. `command` continues the agent if it is not running."""
        shows = "`rekindle status` shows what the agent needs now"
        super().__init__(
            f"question {question} is closed: {reason}",
            hint=f"`{command}` continues" if command else shows,
        )
        self.question = question
        self.reason = reason


class CheckFailedError(RekindleError):
    """Raised when a check found problems and printed them."""

    exit_code = 8
    meaning = "a check found problems and printed them"


class MergeConflictError(CheckFailedError):
    """Raised when an agent's branch and the user's branch change the same lines."""

    def __init__(self, branch: str, target: str, conflicts: tuple[str, ...], *, hint: str) -> None:
        self.branch, self.target, self.conflicts = branch, target, conflicts
        super().__init__(
            f"{branch} cannot be merged into {target}: conflicts in {', '.join(conflicts)}; your "
            "checkout was not changed",
            hint=hint,
        )


class CalledByAgentError(RekindleError):
    """Raised when an agent runs a command that only the operator may use."""

    exit_code = 14
    meaning = "an agent ran a command that is reserved for the operator"

    def __init__(self, command: str, agent: str) -> None:
        super().__init__(
            f"`{command}` was called by agent {agent}, or by a process that it started",
            hint="run the command in your own terminal; to let the agent use it, set `may_control: "
            f"true` for {agent} in rekindle.yaml and run the command again",
        )
        self.command = command
        self.agent = agent
