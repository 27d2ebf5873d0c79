"""`rekindle search`: find words in transcripts, relays and decisions."""

import click
import msgspec

from rekindle.cli.options import Number, json_option, open_home
from rekindle.cli.output import echo, print_json, style_text
from rekindle.cli.reports.since_option import parse_since, since_option
from rekindle.documents.search.search_types import SearchHit
from rekindle.errors import NotFoundError
from rekindle.formats.identifiers import to_one_line
from rekindle.system import clock
from rekindle.thresholds.screens import LARGEST_LAST, SHOWN_LAST


@click.command()
@click.argument("words", nargs=-1)
@click.option("--file", metavar="PATH", help="Show only turns with a tool call that names PATH.")
@click.option("-a", "--agent", metavar="AGENT", help="Search only this agent.")
@since_option
@click.option(
    "-n",
    "--last",
    type=Number(1, LARGEST_LAST),
    default=SHOWN_LAST,
    show_default=True,
    help="Number of results to show.",
)
@json_option
def search(  # noqa: PLR0917 - one parameter per option
    words: tuple[str, ...],
    file: str | None,
    agent: str | None,
    since: str | None,
    last: int,
    as_json: bool,
) -> None:
    """Find turns, relays and decisions that contain all WORDS, newest first.

    Several words in quotes are a phrase, and `word*` also finds longer words. Upper and lower case
    are the same. To read a turn in full, run `rekindle transcript AGENT --session ID`.

    Rekindle builds an index when you search for the first time. After that, it reads only what is
    new.
    """
    after = parse_since(since, clock.read_clock()) if since else None
    agents = [agent] if agent else []
    result = open_home().search(words, file=file or "", agents=agents, since=after, most=last)
    if as_json:
        print_json({"hits": [msgspec.to_builtins(hit) for hit in result.hits]})
    elif not result.hits:
        raise NotFoundError(
            "nothing found",
            hint="use fewer words, or `word*` for the beginning of a word"
            if result.has_entries
            else "no transcript is archived yet: `rekindle run AGENT` archives transcripts",
        )
    for hit in () if as_json else result.hits:
        _print_hit(hit)


def _print_hit(hit: SearchHit) -> None:
    when = f"{hit.at[:10]} {hit.at[11:16]}".strip() or "time unknown"
    place = f"session {hit.session}, turn {hit.number}" if hit.kind == "turn" else ""
    thread = f", sub-agent {hit.thread}" if hit.thread else ""
    kind = place or f"{hit.kind} {hit.number}"
    echo(style_text(f"{hit.agent}  {when}  {hit.who}", bold=True), f"  {kind}{thread}")
    echo(f"  {to_one_line(hit.excerpt)}")
