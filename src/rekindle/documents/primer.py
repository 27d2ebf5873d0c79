"""The primer: the first prompt in a fresh session.

Its parts are in the order in which a reader needs them: notices, rules, the relay and checkpoint,
the brief and ledger, and the task. If the primer is too long, the brief is dropped first, then the
ledger, then the relay's decisions, the rest of the relay, and its failed approaches. The notices,
the rules, the Next Action and the checkpoint are never dropped.
"""

from collections.abc import Iterable

import msgspec

from rekindle.documents import relay as relays
from rekindle.documents.clone_files import PROJECT_REMOTE
from rekindle.documents.events import MessageSent
from rekindle.documents.person_message import render_message
from rekindle.documents.relay import (
    Relay,
    RelayField,
)
from rekindle.formats.identifiers import to_one_line
from rekindle.thresholds.proposal_limits import FAILED_CHARACTERS
from rekindle.thresholds.texts import PHASE_CHARACTERS, REQUEST_CHARACTERS, RULES_CHARACTERS

SOURCE_OF_TRUTH = "Source of truth: state.json > brief.md > conversation history."
_BANNER = "=== RECOVERY DETECTED ==="
_JUST_NOW = "A person has just asked for this, and none of it is done yet:"


class LostSession(msgspec.Struct, frozen=True):
    """A session that never reported its end, although its process is gone."""

    task: str
    open_loops: int


class Primer(msgspec.Struct, frozen=True, kw_only=True):
    recovery: LostSession | None = None
    stall: str = ""
    """Stall notice, if the last cycle repeated the one before it."""
    answer: str = ""
    """Answer from a person since the last cycle."""
    messages: str = ""
    """Messages from people that the agent has not received yet."""
    rules: str = ""
    """Rules for every session, quoted verbatim."""
    relay: Relay | None = None
    relay_path: str = ""
    """Path of the complete relay, shown if only the start of the relay fits."""
    checkpoint: str = ""
    brief: str = ""
    ledger: str = ""
    """Open loops, one per line."""
    task: str = ""
    """The cycle's task; empty if a person will provide it."""
    closing: str = ""
    """Instructions for writing the relay at the end of the cycle."""


def render_recovery(recovery: LostSession) -> str:
    return "\n".join(
        (
            _BANNER,
            "You were interrupted mid-task. Last known state:",
            f"  Task: {to_one_line(recovery.task)}",
            f"  Open loops: {recovery.open_loops}",
            "Review your brief below and continue where you left off.",
            "===========================",
        )
    )


def render(primer: Primer, *, limit: int | None = None) -> str:
    """Render the primer in at most `limit` UTF-16 units, or more if its fixed parts are longer."""
    shrunk = primer
    for shrink in (
        _drop_brief,
        _drop_ledger,
        _drop_decisions,
        _with_main_fields,
        _with_directive_only,
        _with_short_rules,
    ):
        text = _join_parts(shrunk)
        if limit is None or count_utf16_units(text) <= limit:
            return text
        shrunk = shrink(shrunk)
    return _join_parts(shrunk)


def render_reminder(primer: Primer, request: str, closed: str = "") -> str:
    """Return a reminder for the session after a compaction, or "" if there is nothing to repeat."""
    primer = _with_short_rules(primer)
    request = cut_text(request.strip(), REQUEST_CHARACTERS, "the transcript of this session")
    checkpoint = cut_text(primer.checkpoint.strip(), REQUEST_CHARACTERS, "checkpoint.md")
    failed = _find_failed(primer)
    parts = (
        "The conversation so far was compacted. This still holds, word for word.",
        f"Rules:\n{primer.rules.strip()}" if primer.rules.strip() else "",
        f"Last request:\n{request.strip()}" if request.strip() else "",
        f"Before it was compacted:\n{checkpoint.strip()}" if checkpoint.strip() else "",
        f"Open loops:\n{primer.ledger.strip()}" if primer.ledger.strip() else "",
        f"Failed, do not try this again:\n{failed.strip()}" if failed else "",
        f"Resolved, do not do this again:\n{closed.strip()}" if closed.strip() else "",
    )
    present = [part for part in parts if part]
    return "\n\n".join(present) + "\n" if len(present) > 1 else ""


def render_closing(path: str, cap: int) -> str:
    """Return the instructions for writing the next cycle's relay."""
    sections = "\n".join(f"## {field}" for field in RelayField)
    done = relays.DONE_DIRECTIVE
    return f"""\
When the work of this cycle is done, write the relay for the next one to this file, then stop:
{path}
It is markdown, under {cap:,} tokens, with these sections:
{sections}
Next Action is one directive that the next cycle can start on at once. If the whole task is done and
nothing is left to do, write only the word {done} there: the run then ends. Give each decision
its reason and date. Under {RelayField.FAILED_APPROACHES}, name what failed and why, so that it
is not tried again. Write what the next cycle needs, not a log.
"""


def render_answer(question_text: str, text: str) -> str:
    """Return the notice with a person's answer to the agent's question."""
    question = f"You were waiting for: {to_one_line(question_text)}\n" if question_text else ""
    return f"{question}A person has answered: {text.strip()}"


def render_messages(messages: Iterable[MessageSent]) -> str:
    """Return the messages that people have sent to the agent."""
    return "\n\n".join(map(render_message, messages))


def render_move(host: str, previous: str, left: str = "") -> str:
    """Return the notice for a session that continues on a different host.

    `left` is the reason the previous host did not push its latest work.
    """
    reason = f" Its last push failed ({to_one_line(left)})." if left else ""
    return (
        f"This work was on host {to_one_line(previous)} until now, "
        f"and continues on {to_one_line(host)}."
        f"{reason} Work that was not pushed from there is missing here: look at the files first."
    )


def render_rewind(snapshot: str, occasion: str) -> str:
    """Return the notice for the first session after a rewind of the work tree."""
    return (
        f"The operator rewound the work tree to snapshot {to_one_line(snapshot)}"
        f" ({to_one_line(occasion)}). Files and commits are as they were then. Notes below may"
        " describe work that no longer exists: look at the files first."
    )


def render_workspace(branch: str) -> str:
    """Return the notice for a session that works in the agent's own clone or work tree."""
    return (
        f"You work in your own checkout of the repository, on the branch {branch}. Commit your work"
        " to it. The operator's branches are read-only for you; in a clone, they are the remote"
        f" branches {PROJECT_REMOTE}/*."
    )


def render_request(text: str) -> str:
    """Return the notice with a person's request that did not fit into the last context window."""
    return f"{_JUST_NOW}\n{text.strip()}"


def find_request(prompt: str) -> str:
    """Return the person's request for the end of a primer, or "" if there is none."""
    return prompt.rpartition(_JUST_NOW)[2].strip() if _JUST_NOW in prompt else ""


INTRODUCTION = "This is the relay that the last cycle left for this one."
TASK_OF_RELAY = " Its Next Action is the task now."
"""Text added to a relay's introduction if the relay has a directive."""
CONTINUATION = """\
An earlier session began the work below. You continue it: the checkpoint says what is done and what
is not.

"""
"""Text that introduces a checkpoint."""
RESUME_PROMPT = """\
Your process was interrupted and has been started again; this is the same session. All
processes that it had left running were ended, so an unfinished tool call may have done a part of
its work. Look at the current state, then continue the task from where you were.
"""
"""Prompt for a session that is resumed after a crash."""
ORIGIN_PROMPTS = {
    "person": """\
A person started this session, and from now on Rekindle runs it. The person is not at the keyboard
and does not answer questions in this conversation. A call that was not finished may have done a
part of its work. Look at the current state, then continue the person's request from where you were.
""",
    "import": """\
This session was moved here from another machine or folder. Paths in the conversation so far may
have changed, and processes that it had started are gone. Look at the current state and the files,
then continue the task from where you were.
""",
}
"""Prompts for sessions that Rekindle continues and did not launch here, by origin."""


def is_primer(text: str) -> bool:
    """Return whether Rekindle wrote a prompt, judging by phrases that people do not use."""
    begins = text.lstrip().startswith((_BANNER, INTRODUCTION))
    return begins or SOURCE_OF_TRUTH in text or CONTINUATION.strip() in text


def is_resume_prompt(text: str) -> bool:
    # The resume prompt may be followed by a list of processes that ended with the session.
    begins = tuple(" ".join(own.split()) for own in (RESUME_PROMPT, *ORIGIN_PROMPTS.values()))
    return " ".join(text.split()).startswith(begins)


def count_utf16_units(text: str) -> int:
    """Return a text's length in UTF-16 units, as JavaScript counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def render_repetition(words: str) -> str:
    """Return the notice for a session that follows one that repeated itself."""
    return (
        f"The session before this one was stopped: {words}. Do not repeat that step: find out why"
        " it does not help, and try something else, or write down what blocks you."
    )


def cut_text(text: str, limit: int, rest: str) -> str:
    """Cut a text to `limit` UTF-16 units, and add a pointer to `rest` if anything was cut."""
    if count_utf16_units(text) <= limit:
        return text
    pointer = f"\n(cut here: read the rest in {rest} before you act)\n"
    room = (limit - count_utf16_units(pointer)) * 2
    return text.encode("utf-16-le", "surrogatepass")[:room].decode("utf-16-le", "ignore") + pointer


def _join_parts(primer: Primer) -> str:
    parts = (
        render_recovery(primer.recovery) if primer.recovery else "",
        primer.stall,
        primer.answer,
        primer.messages,
        primer.rules,
        _introduce_relay(primer.relay) if primer.relay else "",
        CONTINUATION + primer.checkpoint if primer.checkpoint.strip() else "",
        primer.brief,
        f"Open loops:\n{primer.ledger}" if primer.ledger.strip() else "",
    )
    present = [part.strip() for part in parts if part.strip()]
    if primer.brief.strip() or primer.ledger.strip():
        present.append(SOURCE_OF_TRUTH)
    if primer.task.strip():
        present.append(primer.task.strip())
    if primer.closing.strip():
        present.append(primer.closing.strip())
    return "\n\n".join(present) + "\n" if present else ""


def _introduce_relay(relay: Relay) -> str:
    """Return the relay, preceded by a line that introduces it."""
    text = relays.render(relay).strip()
    if not text:
        return ""
    return f"{INTRODUCTION}{TASK_OF_RELAY if relay.next_action else ''}\n\n{text}"


def _drop_brief(primer: Primer) -> Primer:
    return msgspec.structs.replace(primer, brief="")


def _drop_ledger(primer: Primer) -> Primer:
    return msgspec.structs.replace(primer, ledger="")


def _drop_decisions(primer: Primer) -> Primer:
    if primer.relay is None or not primer.relay.places(RelayField.KEY_DECISIONS):
        return primer
    pointer = f"(left out here; the whole relay: {primer.relay_path})\n\n"
    shorter = primer.relay.with_content(RelayField.KEY_DECISIONS, pointer)
    if shorter.next_action != primer.relay.next_action:
        return primer  # the section with the decisions contains the directive
    return _with_relay_if_shorter(primer, shorter)


def _with_main_fields(primer: Primer) -> Primer:
    return _with_directive_only(primer, _find_failed(primer))


def _find_failed(primer: Primer) -> str:
    """Return the relay's failed approaches, shortened, or ""."""
    failed = primer.relay.content(RelayField.FAILED_APPROACHES) if primer.relay else None
    text = "" if failed is None or relays.is_placeholder(failed) else failed.strip()
    return cut_text(text, FAILED_CHARACTERS, primer.relay_path)


def _with_directive_only(primer: Primer, failed: str = "") -> Primer:
    if primer.relay is None:
        return primer
    fields = {RelayField.FAILED_APPROACHES: failed} if failed else {}
    phase = primer.relay.content(RelayField.CURRENT_PHASE)
    if phase:
        fields[RelayField.CURRENT_PHASE] = to_one_line(phase, PHASE_CHARACTERS)
    directive = primer.relay.next_action
    pointer = f"(the whole relay: {primer.relay_path})"
    if directive is not None:
        # An earlier step may have added the pointer already.
        fields[RelayField.NEXT_ACTION] = directive.removesuffix(pointer).rstrip()
    head = relays.render(relays.compose(fields))
    return _with_relay_if_shorter(primer, relays.parse(f"{head}\n{pointer}\n"))


def _with_short_rules(primer: Primer) -> Primer:
    """Shorten the rules, because long rules could crowd out the task."""
    rules = cut_text(primer.rules, RULES_CHARACTERS, "the file of your rules")
    return msgspec.structs.replace(primer, rules=rules)


def _with_relay_if_shorter(primer: Primer, relay: Relay) -> Primer:
    if primer.relay and len(relays.render(relay)) >= len(relays.render(primer.relay)):
        return primer
    return msgspec.structs.replace(primer, relay=relay)
