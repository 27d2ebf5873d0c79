"""The page about questions: what agents ask, and what each answer does, made from the tables."""

from rekindle.policy.exits import stop_reasons
from rekindle.policy.operator import answers, questions
from rekindle.policy.settings.runtime_settings import RuntimeSettings

_INTRODUCTION = """\
# Questions

An agent that needs you asks a question. The question has an id, the exact request, choices, a
default and a deadline: {deadline}, unless you set `runtime: questions: {{deadline: …}}`, where
`none` means no deadline. `rekindle questions` lists the open questions. `status` and notifications
show the command that answers one.

```
rekindle questions [AGENT] [--all] [--json]
rekindle answer [ID|AGENT] CHOICE|TEXT
rekindle approve [ID|AGENT]
rekindle deny [ID|AGENT]
```

Name the question by its id, or name the agent to answer the question that it waits for. If there is
only one open question, you need not name it: `rekindle answer "Take the second"`. Copy the command
that `status` shows, and replace `"TEXT"` with your words. Without a choice, `answer` asks for it in
the terminal.

- Each question is answered once. The first answer counts, even if several people answer at the same
  time or no supervisor is running. Later answers are refused with exit code 7, and recorded as
  refused.
- The log records the person who answered, the host, and whether a terminal or a program was used
  (`question.answered`). An agent cannot answer: the commands refuse to run below an agent, and
  answers are stored outside its workspace.
- At the deadline the default applies. The question stays in the list as unanswered until you start
  the agent again.
- `restart`, `stop`, and `run` after the end of a run withdraw the question. If the agent still
  needs you, the next `run` asks again. A question about a refused call stays open.
- Secrets in a request are redacted, and long arguments are shortened.
"""
_REFUSED = """\
## Refused calls

If no rule permits a tool call and no person is there to approve it, a CLI refuses the call and
exits as if nothing had happened. Rekindle shows the call, counts it in `launch.ended`, and asks you
once about each call, for at most {most} calls of a launch. The run continues meanwhile. If the
agent made no progress without the call, it enters safe mode instead (`no-permission`). Rekindle
does not ask about calls that a persona's `deny` refuses. `allow` prints the lines to add to
rekindle.yaml, and `rekindle restart` accepts them.

| CLI | where it reports a refused call |
|---|---|
| Claude Code | `permission_denials` of its last message |
| Codex | the output of the call in its rollout: the approval policy or the read-only sandbox |
| Gemini CLI | the result of the call: `tool_not_registered`, `policy_violation` |
| `command` | not at all: such a program asks with a relay that waits for a person |
"""


def page() -> str:
    rows = [_INTRODUCTION.format(deadline=RuntimeSettings().questions.deadline)]
    rows += ["## Questions and choices\n"]
    rows += ["| reason | choices; the last is the default |", "|---|---|"]
    rows += [
        f"| `{why}`: {one.text} | {_listed(one.choices)} |"
        for why, one in stop_reasons.STOP_REASONS.items()
        if stop_reasons.find_outcome(why).asks and why != "tampered"
    ]
    rows.append(
        f"| `{questions.PERMISSION}`: a call was refused |"
        f" {_listed(questions.PERMISSION_CHOICES)} |"
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
