"""`rekindle brief`: summarize an agent's recent work."""

import os
from pathlib import Path

import click
import msgspec

from rekindle import config
from rekindle.cli.fleet.fleet_agents import write_fleet_brief
from rekindle.cli.fleet_refusal import refuse_fleet
from rekindle.cli.options import (
    find_current_folder,
    json_option,
    open_project,
    print_note,
    resolve_agent,
)
from rekindle.cli.output import echo, print_json
from rekindle.cli.output_file import write_output
from rekindle.cli.trust_prompt import ensure_trust
from rekindle.config import Project
from rekindle.documents.screens import morning_page
from rekindle.errors import (
    BusyError,
    RekindleError,
    UsageError,
)
from rekindle.flows.briefs.write_brief import BriefResult
from rekindle.formats.counts import render_count
from rekindle.formats.identifiers import to_one_line
from rekindle.stores.files import FileStore
from rekindle.stores.folders.private_files import render_path
from rekindle.wiring import brief_setup as wiring
from rekindle.wiring.access.trust_checks import (
    list_trusted,
    require_accepted,
)
from rekindle.wiring.open_store import open_store


@click.command()
@click.argument("agent", required=False)
@click.option("--due", is_flag=True, help="Write only briefs that are due (for cron).")
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Show the morning page for all agents instead of writing a brief.",
)
@click.option(
    "--all-projects", is_flag=True, help="Show the morning page for all projects that you trust."
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False),
    help="Write the morning page to a file as HTML, or to standard output with `-`.",
)
@click.option("--mechanical", is_flag=True, help="Write the brief without a model.")
@json_option
def brief(  # noqa: PLR0917 - one parameter per option
    agent: str | None,
    due: bool,
    every: bool,
    all_projects: bool,
    html: str | None,
    mechanical: bool,
    as_json: bool,
) -> None:
    """Summarize what AGENT has said and done since its last brief.

    The model is the same as for `rekindle summarize`. Rekindle checks the model's answer against
    git, the tests and the transcript before it changes any loop. With --due, Rekindle writes all
    briefs that are due according to `runtime: brief:`, for AGENT or for all agents. This works from
    cron, without any environment variables:

    \b
        */15 * * * * cd /your/project && /path/to/rekindle brief --due

    With --all, Rekindle does not write a brief. Instead, one page shows what each agent has done,
    why it stopped, what comes next, which questions are open, and what it cost. With
    --all-projects, the page covers every project that you trust on this host.

    With `fleet:` in the manifest, a fleet host writes the brief.
    """  # noqa: D301 - click keeps the lines after \b as they are
    shows = every or all_projects or html is not None
    if shows and (due or mechanical):
        raise UsageError("--all and --html only show briefs", hint="omit --due and --mechanical")
    if html is not None and as_json:
        raise UsageError("--html and --json cannot be used together", hint="use only one of them")
    if all_projects:
        _show_page(_build_projects_page(agent), html, as_json=as_json)
        return
    project = config.load_project(find_current_folder())
    if project.settings.fleet is not None:
        refused = {"--all": shows, "--due": due, "--mechanical": mechanical}
        for option in (name for name, is_said in refused.items() if is_said):
            refuse_fleet(project, option)
        name = resolve_agent(project, agent)
        write_fleet_brief(project, project.settings.fleet, name, as_json=as_json)
        return
    if shows:
        _show_all(agent, html, as_json=as_json)
        return
    if due:
        _write_due(agent, mechanical=mechanical, as_json=as_json)
        return
    store, name = open_store(project, say=print_note), resolve_agent(project, agent)
    if not mechanical:
        ensure_trust(project, trust=False)
        require_accepted(project, name)
    written = wiring.make_brief_writer(
        project, store, name, by_hand=True, mechanical=mechanical
    ).write()
    wiring.remember_operator(project, store, name)
    if as_json:
        print_json({"agent": name, "brief": written})
        return
    echo(written.text, nl=False)
    echo(f"Note: {_describe_result(name, written)}.", err=True)


def _show_all(agent: str | None, html: str | None, *, as_json: bool) -> None:
    project, store = open_project()
    names = [project.require_agent(agent)] if agent else project.declared_agents
    _show_page(_build_page(project, store, names), html, as_json=as_json)


def _build_page(project: Project, store: FileStore, names: list[str]) -> morning_page.MorningPage:
    called = os.fsencode(project.path.name).decode("utf-8", "replace")
    return wiring.make_morning_builder(project, store).page(called, names)


def _build_projects_page(agent: str | None) -> morning_page.MorningPage:
    """Return a page about all trusted projects. Unreadable projects are listed as broken."""
    if agent:
        raise UsageError("--all-projects shows every agent", hint="leave AGENT out")
    pages: dict[str, morning_page.MorningPage] = {}
    for folder in list_trusted():
        shown = render_path(folder)
        try:
            project = config.load_project(folder)
            refuse_fleet(project, "--all-projects")
            pages[shown] = _build_page(project, open_store(project), project.declared_agents)
        except RekindleError as error:
            asks = (morning_page.PersonRequest(error.hint or str(error)),)
            entry = morning_page.MorningEntry(agent="-", state="broken", why=str(error), asks=asks)
            pages[shown] = morning_page.MorningPage(
                project=to_one_line(shown), written="", entries=(entry,)
            )
    if not pages:
        raise UsageError(
            "no project is trusted on this host", hint="set up a project with `rekindle init`"
        )
    return morning_page.merge(pages)


def _show_page(page: morning_page.MorningPage, html: str | None, *, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.structs.asdict(page))
    elif html is None:
        echo(morning_page.render(page), nl=False)
    elif html == "-":
        echo(morning_page.render_html(page), nl=False)
    else:
        write_output(Path(html), morning_page.render_html(page).encode("utf-8", "replace"))
        echo(f"✓ wrote {html}: {morning_page.render_headline(page)}")


def _write_due(agent: str | None, *, mechanical: bool, as_json: bool) -> None:
    """Write all briefs that are due, even if one fails, then raise the first error."""
    project, store = open_project()
    names = [project.require_agent(agent)] if agent else project.declared_agents
    failed: RekindleError | None = None
    rows = []
    for name in names:
        try:
            row = _write_one(project, store, name, mechanical=mechanical)
        except RekindleError as error:
            failed = failed or error
            row = {"agent": name, "written": False, "words": str(error)}
        rows.append(row)
        if not as_json:
            echo(f"{'✓' if row['written'] else '·'} {name}: {row['words']}")
    if as_json:
        print_json({"agents": rows})
    if failed is not None:
        raise failed


def _write_one(
    project: Project, store: FileStore, name: str, *, mechanical: bool
) -> dict[str, object]:
    nothing: dict[str, object] = {"agent": name, "written": False, "words": "no brief is due"}
    if not store.exists(name):
        return nothing
    writing = wiring.make_brief_writer(project, store, name, by_hand=False, mechanical=mechanical)
    due = writing.due()
    if due is None:
        return nothing
    if not mechanical:
        require_accepted(project, name)
    try:
        written = writing.write(due)
    except BusyError:
        return nothing | {"words": "another process is writing it, or the agent is busy"}
    return {
        "agent": name,
        "written": True,
        "words": _describe_result(name, written),
        "brief": written,
    }


def _describe_result(name: str, written: BriefResult) -> str:
    """Describe what was written, whether a model wrote it, and what it cost."""
    unknown = [f"resolved.jsonl names unknown loops: {', '.join(written.unknown)}"]
    also = unknown if written.unknown else []
    if not written.turns:
        stands = "" if written.is_new else ": this is the last brief"
        return "; ".join((f"nothing was said or done since the last brief{stands}", *also))
    costs = (
        f"${written.usd:.2f}" * bool(written.usd),
        render_count(written.tokens, "token") * bool(written.tokens),
    )
    spent = ", ".join(filter(None, costs))
    by = "by a model" if written.how == "headless" else "without a model"
    turns = render_count(written.turns, "turn")
    parts = [f"written {by} from {turns}{f' ({spent})' if spent else ''}"]
    if written.how == "mechanical" and not written.words:
        parts.append("loops are unchanged, and later briefs will not cover these turns")
    if written.words:
        parts.append(f"the model did not read all of the input: {written.words}")
    for ids, did in ((written.opened, "opened or reworded"), (written.resolved, "resolved")):
        parts += [f"loops {did}: {', '.join(ids)}"] if ids else []
    for identity in written.claimed:
        step = f"`rekindle resolve {identity} REASON -a {name}`"
        parts.append(f"{identity} may be done: {step} if so")
    return "; ".join([*parts, *also])
