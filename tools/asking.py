"""Generate the page about questions and their answers from the tables."""

from rekindle.policy.exits import stop_reasons
from rekindle.policy.operator import answers, questions
from rekindle.policy.settings.runtime_settings import RuntimeSettings

_INTRODUCTION = """\
# Questions

When an agent needs you, it asks a question with an id, the exact request, choices and a default.
`rekindle questions` lists the open questions. `status` and notifications show the command that
answers each question.

If you do not answer before the deadline, the default applies. The deadline is {deadline} unless you
change it with `runtime: questions: {{deadline: …}}`. Use `none` for no deadline.

```
rekindle questions [AGENT] [--all] [--json]
rekindle answer [ID|AGENT] CHOICE|TEXT
rekindle approve [ID|AGENT]
rekindle deny [ID|AGENT]
```

Pass a question's id, or the name of the agent that is waiting for you. If only one question is
open, you can omit both: `rekindle answer "Take the second"`. The simplest way is to copy the
command that `status` shows and replace `"TEXT"` with your answer. If you leave out the choice,
`answer` asks for it in the terminal.

- The first answer counts, even if several people answer at the same time or no supervisor is
  running. Later answers fail with exit code 7, and the log records them as refused.
- The log records who answered, on which host, and whether the answer came from a terminal or a
  program (`question.answered`).
- An agent cannot answer its own questions. Rekindle refuses these commands if an agent runs them,
  and stores your answers outside the workspace.
- For `auth`, the default is `retry`, first after 30 seconds and finally every hour. So the agent
  continues after you log in, even if you do not answer. Only the first question notifies you
  at once; another notification follows if the login still fails after about an hour.
  Rekindle tries until you stop the agent; a short `questions: deadline:` shortens the pauses.
- After the deadline, the question stays in the list as unanswered until you start the agent again.
- `restart` and `stop` withdraw the question, and so does `run` if the run has ended. If the agent
  still needs you, the next `run` asks again. A question about a refused call stays open, and
  so does a question that the agent asked in its own words.
- Rekindle redacts secrets and shortens long arguments in a request.
"""
_REFUSED = """\
## Calls that wait

With `ask:` in the persona's permissions, a matching call waits until you answer, or until
`questions.wait` has passed. See [the guide](../guides/permissions.md). `waits_until` in the request
shows how long the agent waits. An `allow` after that counts once for the same call, until the
agent's next cycle ends.

## Refused calls

If no rule permits a tool call and no person is there to approve it, the CLI refuses the call and
later exits as if nothing had happened. Rekindle counts these calls in `launch.ended` and asks you
once about each one, for up to {most} calls per launch. The run continues in the meantime. If the
refused calls prevented progress, the agent enters safe mode instead (`no-permission`). Rekindle
does not ask about calls that match the persona's `deny` list.

If you answer `allow`, Rekindle prints the lines to add to rekindle.yaml. After you add them, run
`rekindle restart` to accept the change.

| CLI | how it reports a refused call |
|---|---|
| Claude Code | under `permission_denials` in its last message |
| Codex | in the call's output, which names the approval policy or the read-only sandbox |
| Gemini CLI | in the call's result, as `tool_not_registered` or `policy_violation` |
| `command` | not at all, but the program can write a relay that waits for a person |
"""


def page() -> str:
    rows = [_INTRODUCTION.format(deadline=RuntimeSettings().questions.deadline)]
    rows += ["## Questions and choices\n"]
    rows += ["| reason | choices (the last one is the default) |", "|---|---|"]
    rows += [
        f"| `{why}`: {one.text} | {_listed(one.choices)} |"
        for why, one in stop_reasons.STOP_REASONS.items()
        if stop_reasons.find_outcome(why).asks and why != "tampered"
    ]
    rows.append(
        f"| `{questions.PERMISSION}`: a call was refused |"
        f" {_listed(questions.PERMISSION_CHOICES)} |"
    )
    rows.append(
        f"| `{questions.ASKED}`: the agent's own question, by the MCP tool `ask_person` |"
        f" the agent's suggestions, {_listed(questions.ASKED_CHOICES)} |"
    )
    rows += ["\n## Effects of answers\n", "| answer | effect |", "|---|---|"]
    rows += [f"| `{answer}` | {row.meaning} |" for answer, row in answers.ANSWERS.items()]
    rows += [
        f"| `{answer}` to `{about}` | {row.meaning} |"
        for (about, answer), row in answers.ANSWERS_ABOUT.items()
    ]
    refused = _REFUSED.format(most=questions.QUESTIONS_A_LAUNCH)
    return "\n".join(rows) + f"\n\n{refused}"


def _listed(choices: tuple[str, ...]) -> str:
    return ", ".join(f"`{choice}`" for choice in choices)
