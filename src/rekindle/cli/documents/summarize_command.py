"""`rekindle summarize`: summarize a transcript."""

import os
from typing import get_args

import click
import msgspec

from rekindle.cli.options import (
    add_agent_argument,
    json_option,
    open_files,
)
from rekindle.cli.output import echo, print_json
from rekindle.cli.trust_prompt import ensure_trust
from rekindle.documents.summaries.summary import SummaryKind
from rekindle.errors import DocumentError, UsageError
from rekindle.flows.transcripts.session_turns import strip_primers
from rekindle.flows.transcripts.summarize_turns import (
    Summarizer,
    SummaryResult,
    make_summary_event,
    render_document,
)
from rekindle.flows.transcripts.transcript_reader import (
    TranscriptReader,
    detect_harness,
)
from rekindle.formats.counts import render_count
from rekindle.system import clock
from rekindle.wiring import summarizer_setup as wiring
from rekindle.wiring.access.trust_checks import require_accepted
from rekindle.wiring.open_store import HARNESSES


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--as",
    "kind",
    type=click.Choice(get_args(SummaryKind)),
    required=True,
    help="Kind of document to print.",
)
@click.option("--mechanical", is_flag=True, help="Do not use a model.")
@click.option(
    "--since",
    metavar="COMMIT",
    default="",
    help="Commit from which the work started. The summary lists the changes since then.",
)
@add_agent_argument
@json_option
def summarize(  # noqa: PLR0917 - one parameter per option
    file: str, kind: SummaryKind, mechanical: bool, since: str, agent: str | None, as_json: bool
) -> None:
    """Summarize the transcript in FILE as a checkpoint, a relay or a brief.

    Rekindle uses the model under `personas: summarizer:` in rekindle.yaml. By default, it uses the
    agent's own CLI, without tools, hooks or a saved session. If the answer cannot be used, Rekindle
    asks once more, then writes the text without a model. Nothing is committed.
    """
    project, store, name = open_files(agent)
    if not mechanical:
        ensure_trust(project, trust=False)
        require_accepted(project, name)
    path = os.path.realpath(
        file
    )  # The user typed this path, so it is safe to follow symbolic links.
    harness = detect_harness(path, HARNESSES.working())
    if harness is None:
        raise DocumentError(
            file,
            "is not a transcript of a supported CLI",
            hint=f"supported: {', '.join(HARNESSES)}",
        )
    redacted = store.redaction.text
    redacted_turns = (
        turn.without_secrets(redacted) for turn in TranscriptReader(path, harness).all()
    )
    task = redacted(wiring.read_task_text(project, name))
    turns = strip_primers(redacted_turns, task, is_supervised=False)
    work = wiring.collect_known_work(project, store, name, wiring.find_commit(project, name, since))
    cap = project.settings.runtime.relay.summarizer_max_input_tokens
    summarizer = (
        Summarizer(None, cap=cap) if mechanical else wiring.make_summarizer(project, store, name)
    )
    result = summarizer.make(kind, turns, work)
    if not result.turns:
        raise UsageError("the transcript has no turns", hint="choose another transcript")
    result = msgspec.structs.replace(result, words=redacted(result.words))
    text = redacted(render_document(result, work, name=name, day=clock.read_clock().date()))
    if not mechanical:
        with store.writer(name) as writer:
            writer.append(make_summary_event(result, ts=clock.read_clock()))
    if as_json:
        facts = {"kind": kind, "how": result.how, "words": result.words}
        print_json({**facts, "usd": result.usd, "tokens": result.tokens, "text": text})
        return
    echo(text, nl=False)
    _print_result(result)


def _print_result(result: SummaryResult) -> None:
    costs = (
        render_count(result.tokens, "token") * bool(result.tokens),
        f"${result.usd:.2f}" * bool(result.usd),
    )
    cost = ", ".join(filter(None, costs))
    spent = f" ({cost})" if cost else ""
    if result.how == "headless":
        echo(f"Note: written by a model{spent}.", err=True)
    else:
        reason = f": {result.words}" if result.words else ""
        echo(f"Note: written without a model{spent}{reason}.", err=True)
