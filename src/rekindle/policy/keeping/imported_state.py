"""Remove the operator's decisions from the state of an imported agent.

The log may have been written on another machine, or by someone else. What it records stays in it,
but it must not permit, pay for or start anything here.
"""

from datetime import datetime

import msgspec

from rekindle.policy.operator.asked_calls import is_about_waiting_call
from rekindle.policy.projection.projection import Projection, prune_projection
from rekindle.policy.routes.choose_route import RouteRequest
from rekindle.policy.supervision.run_moves import (
    CycleLimit,
    OperatorCommand,
    ProgressBounds,
    RunState,
)


def drop_decisions(known: Projection, now: datetime) -> Projection:
    """Return the state without approvals, open questions, raised caps and commands to run.

    Answers to the agent's own questions are kept, because they are only texts. What was spent is
    kept too.
    """
    questions = {
        name: question
        for name, question in known.questions.items()
        if name in known.answers and not is_about_waiting_call(question)
    }
    return prune_projection(
        msgspec.structs.replace(
            known,
            run=_drop_commands(known.run, now),
            questions=questions,
            answers={name: answer for name, answer in known.answers.items() if name in questions},
            permitted={},
            # They could hide the operator's commands, which have their own inbox on each host.
            cursors={},
        )
    )


def _drop_commands(run: RunState, now: datetime) -> RunState:
    return msgspec.structs.replace(
        run,
        command=OperatorCommand(now, "stopped"),
        lifted=0,
        cycles=CycleLimit(),
        bounds=ProgressBounds(),
        raised=(),
        route=RouteRequest(),
    )
