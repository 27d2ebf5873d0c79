"""`rekindle summarize`."""

import os
from typing import get_args

import click
import msgspec

from rekindle.cli.options import as_json, open_files, which_agent
from rekindle.cli.output import echo, print_json
from rekindle.cli.trust import ensure_trust
from rekindle.documents.summary import Kind
from rekindle.errors import DocumentError, UsageError
from rekindle.flows.read_transcript import ReadTranscript, told_by
from rekindle.flows.session_turns import without_primer
from rekindle.flows.summarize import Made, Summarize, document, noted
from rekindle.system import clock
from rekindle.wiring import summarize as wiring
from rekindle.wiring.store import HARNESSES
from rekindle.wiring.trust import require_accepted


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--as",
    "kind",
    type=click.Choice(get_args(Kind)),
    required=True,
    help="What it is to become.",
)
@click.option("--mechanical", is_flag=True, help="Ask no model.")
@click.option("--since", default="", help="The commit that the work began at, for what changed.")
@which_agent
@as_json
def summarize(  # noqa: PLR0917 - one for each option
    file: str, kind: Kind, mechanical: bool, since: str, agent: str | None, as_json: bool
) -> None:
    """A transcript, FILE, as a checkpoint, a relay or a brief, on standard output.

    `personas: summarizer:` says who is asked, else it is the agent's own CLI: without tools, hooks
    or a session that is kept. What cannot be used is asked for once more, then it is put together
    without a model. Nothing is committed.
    """
    project, store, name = open_files(agent)
    if not mechanical:
        ensure_trust(project, trust=False)
        require_accepted(project, name)
    path = os.path.realpath(file)  # a link of the person's own, unlike one that a session names
    harness = told_by(path, HARNESSES.working())
    if harness is None:
        raise DocumentError(
            file, "is no transcript of a CLI that is known", hint=f"known: {', '.join(HARNESSES)}"
        )
    redacted = store.redaction.text
    told = (turn.without_secrets(redacted) for turn in ReadTranscript(path, harness).all())
    task = redacted(wiring.task(project, name))
    turns = without_primer(told, task, is_supervised=False)
    known = wiring.known(project, store, name, wiring.commit(project, name, since))
    cap = project.settings.runtime.relay.summarizer_max_input_tokens
    who = Summarize(None, cap=cap) if mechanical else wiring.summarizer(project, store, name)
    made = who.make(kind, turns, known)
    if not made.turns:
        raise UsageError("nothing was said or done in it", hint="take another transcript")
    made = msgspec.structs.replace(made, words=redacted(made.words))
    text = redacted(document(made, known, name=name, day=clock.now().date()))
    if not mechanical:
        with store.writer(name) as writer:
            writer.append(noted(made, ts=clock.now()))
    if as_json:
        facts = {"kind": kind, "how": made.how, "words": made.words}
        print_json({**facts, "usd": made.usd, "tokens": made.tokens, "text": text})
        return
    echo(text, nl=False)
    _tell(made)


def _tell(made: Made) -> None:
    costs = (f"{made.tokens:,} tokens" * bool(made.tokens), f"${made.usd:.2f}" * bool(made.usd))
    cost = ", ".join(filter(None, costs))
    spent = f" ({cost})" if cost else ""
    if made.how == "headless":
        echo(f"Note: a model has made this{spent}.", err=True)
    else:
        why = f": {made.words}" if made.words else ""
        echo(f"Note: this was put together without a model{spent}{why}.", err=True)
