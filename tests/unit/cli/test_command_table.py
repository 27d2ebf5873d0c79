"""`rekindle --help` lists every command, and a wrong name leads to the right one."""

import re

import click
import pytest

from rekindle.cli import main
from rekindle.cli.command_table import COMMANDS, OTHER_NAMES

VERBS = (
    *(
        "Add",
        "Answer",
        "Serve",
        "Check",
        "Continue",
        "Find",
        "Import",
        "Install",
        "Keep",
        "Launch",
        "Move",
        "Merge",
        "Let",
        "List",
        "Open",
        "Print",
        "Restore",
    ),
    *(
        "Remove",
        "Resolve",
        "Restart",
        "Run",
        "Send",
        "Set",
        "Show",
        "Start",
        "Stop",
        "Summarize",
        "Test",
    ),
    *("Turn", "Watch"),
)


def run(capsys, *arguments):
    code = main.run(list(arguments))
    out, err = capsys.readouterr()
    return code, out + err


def test_help_lists_every_command_once(capsys):
    code, out = run(capsys, "--help")
    lines = [line.split() for line in out.splitlines()]
    listed = [line[0] for line in lines if line and line[0] in COMMANDS and len(line) > 2]
    assert code == 0
    assert listed == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_is_a_verb_phrase_that_fits_on_a_line(name):
    """It is complete, and the command that it names exists."""
    summary = COMMANDS[name].summary
    assert summary.startswith(VERBS)
    assert summary.endswith(".")
    assert len(f"  transcript  {summary}") <= 80
    assert isinstance(main.app.get_command(click.Context(main.app), name), click.Command)


@pytest.mark.parametrize(
    ("typed", "meant"), [("staus", "status"), ("quesitons", "questions"), *OTHER_NAMES.items()]
)
def test_an_unknown_command_names_the_right_one(capsys, typed, meant):
    code, out = run(capsys, typed)
    assert code == 2
    assert f"No such command '{typed}'. Did you mean `rekindle {meant}`" in out
    assert meant.split()[0] in COMMANDS


def test_a_command_that_resembles_none_leads_to_the_list(capsys):
    code, out = run(capsys, "frobnicate")
    assert code == 2
    assert "No such command 'frobnicate'.\n  → `rekindle --help` lists all commands" in out


@pytest.mark.parametrize(
    "group", ["config", "fleet", "hooks", "loops", "phone", "pipeline", "relay", "service"]
)
def test_no_line_of_a_group_is_cut_off(capsys, group):
    """Each command of a group has a line that stands alone."""
    code, out = run(capsys, group, "--help")
    assert code == 0
    listed = out.partition("Commands:\n")[2].splitlines()
    assert listed
    assert not [line for line in listed if line.endswith("...")]


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("relay sho", "'show'"),
        ("hooks instal", "'install'"),
        ("status --wach", "'--watch'"),
        ("relay history --lst 3", "'--last'"),
        ("up --tmx", "'--tmux'"),
    ],
)
def test_an_unknown_option_or_subcommand_names_the_nearest(capsys, line, meant):
    code, out = run(capsys, *line.split())
    assert code == 2
    assert re.search(rf"Did you mean (one of: )?{meant}", out)
    assert "--help` lists" in out


@pytest.mark.parametrize("typed", ["ps", "ls", "htop", "start"])
def test_usual_names_lead_to_a_command_that_exists(capsys, typed):
    code, out = run(capsys, typed)
    assert code == 2
    assert f"`rekindle {OTHER_NAMES[typed]}`" in out


def test_numbers_are_described_in_words(capsys):
    _, out = run(capsys, "events", "--help")
    assert "--last NUMBER" in out
    assert "[default: 20; 0 or more]" in " ".join(out.split())
    assert "is not a valid number" in run(capsys, "run", "--cycles", "x")[1]
    assert "-5 is not in the range 0 or more" in run(capsys, "logs", "-n", "-5")[1]
