"""The page about questions: what agents ask, and what each answer does, made from the tables."""

from rekindle.policy.exits import stop_reasons
from rekindle.policy.operator import answers, questions
from rekindle.policy.settings.runtime_settings import RuntimeSettings

_INTRODUCTION = """\
# Questions

An agent that needs you asks a question. It has an id, the exact request, choices, a default and a
deadline ({deadline}; `runtime: questions: {{deadline: …}}`, `none` for no deadline). `rekindle
questions` lists what is open, `status` and notifications show the command that answers it.

```
rekindle questions [AGENT] [--all] [--json]
rekindle answer [ID|AGENT] CHOICE|TEXT
rekindle approve [ID|AGENT]
rekindle deny [ID|AGENT]
```

With an agent's name the question that this agent waits for is meant; without any the only open one,
and a text is then one argument of several words: `rekindle answer "Take the second"`.
The command that is shown can be pasted; put your words in the place of `"TEXT"`. The other choices
are beside it. `answer` without a choice asks for it at the terminal.

- Each question is answered once. The first answer counts, also if several people answer at the same
  time or no supervisor runs. Later ones are refused (exit code 7) and recorded as refused.
- The log has who answered, on which host, and whether in a terminal or by a program
  (`question.answered`). An agent cannot answer: answers are kept outside its workspace, and the
  commands are refused to processes of an agent.
- At the deadline the default applies, and the question stays in the list as unanswered until you
  start the agent again.
- `restart`, `stop`, or `run` after the end of a run settle the question too: it is withdrawn. If
  the agent still needs you, the next `run` asks again. A question about a refused call stays open.
- Secrets in a request are redacted. Long arguments are cut.
"""
_REFUSED = """\
## Refused calls

A CLI without a person refuses a tool call that nothing permits, and exits as if all were well.
Rekindle shows the call, counts it in `launch.ended`, and asks once for each call, for at most
{most} calls of a launch. The run continues meanwhile; if the agent made no progress without the
call, it enters safe mode instead (`no-permission`). Calls that a persona's `deny` refuses are not
asked about. Permissions are settings: `allow` prints the lines for rekindle.yaml, and
`rekindle restart` accepts them.

| CLI | where it reports a refused call |
|---|---|
| Claude Code | `permission_denials` of its last message |
| Codex | the output of the call in its rollout: the approval policy or the read-only sandbox |
| Gemini CLI | the result of the call: `tool_not_registered`, `policy_violation` |
| `command` | nowhere: such a program asks by a relay that waits for a person |
"""


def page() -> str:
    rows = [_INTRODUCTION.format(deadline=RuntimeSettings().questions.deadline)]
    rows += ["## What is asked\n", "| why | choices; the last is the default |", "|---|---|"]
    rows += [
        f"| `{why}`: {one.text} | {_listed(one.choices)} |"
        for why, one in stop_reasons.STOP_REASONS.items()
        if stop_reasons.find_outcome(why).asks and why != "tampered"
    ]
    rows.append(
        f"| `{questions.PERMISSION}`: a call was refused |"
        f" {_listed(questions.PERMISSION_CHOICES)} |"
    )
    rows += ["\n## What an answer does\n", "| answer | effect |", "|---|---|"]
    rows += [f"| `{answer}` | {row.meaning} |" for answer, row in answers.ANSWERS.items()]
    rows += [
        f"| `{answer}` to `{about}` | {row.meaning} |"
        for (about, answer), row in answers.ANSWERS_ABOUT.items()
    ]
    refused = _REFUSED.format(most=questions.QUESTIONS_A_LAUNCH)
    return "\n".join(rows) + f"\n\n{refused}"


def _listed(choices: tuple[str, ...]) -> str:
    return ", ".join(f"`{choice}`" for choice in choices)
