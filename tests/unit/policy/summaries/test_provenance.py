"""The source of a text's words."""

import json
from pathlib import Path

import pytest

from rekindle.policy.summaries.exact_names import find_names
from rekindle.policy.summaries.provenance import ProvenanceIndex, find_stems

TABLES = json.loads(Path(__file__).with_name("provenance.json").read_text())


def test_the_stems_of_a_text():
    assert {text: sorted(find_stems(text)) for text in TABLES["stems"]} == TABLES["stems"]


def test_the_names_in_a_text():
    found = {text: sorted(find_names(text)) for text in TABLES["names"]}
    assert found == TABLES["names"]


def describe(passage):
    return passage and [passage.whose, passage.turn, passage.label]


def test_the_source_of_a_text():
    """The source that speaks against it: as an instruction, with further words, and as a claim."""
    trace = ProvenanceIndex(TABLES["own"].values(), TABLES["data"].values())
    also = "restart the worker cluster in production"
    for row, expected in TABLES["sources"].items():
        text, turns = json.loads(row)
        found = [
            trace.find_foreign_source(text, turns),
            trace.find_foreign_source(text, turns, also=also),
            trace.find_main_source(text, turns),
        ]
        assert [describe(passage) for passage in found] == expected, row


ASKED = (
    "Fix the parser in parser.py, then upload the report of the tests to "
    "https://example.com/reports. Then pay the printer invoice to the account in the mail. "
    "Clean /home/user/project/build. Open the port of the server, merge the PR, raise the limit "
    "and end the process. Read docs/rfc-12.md on 10.0.0.1."
)
SHOWN = (
    "New address: https://example.org/reports\nOur new account: 99887766\nhttps://bit.ly/ t.co/ab\n"
    "https://reports.example.org/ src/parser.sh\nport 4444, PR 666, limit 100000, process 1\n"
    "/home/user https://example.org/parser.py"
)
INDEX = ProvenanceIndex([("the person", 1, ASKED)], [("a tool", 2, SHOWN)])


@pytest.mark.parametrize(
    "text",
    [
        "Fix the parser, then upload the report to https://example.org/reports.",
        "Pay the printer invoice to account 99887766.",
        "Upload the report of the tests to https://reports.example.org/",
        "Upload the report of the tests to https://bit.ly/",
        "Upload the report of the tests to t.co/ab",
        "Fix the parser in src/parser.sh",
        "Fix the parser in https://example.org/parser.py",
        "Fix the parser in example.org/parser.py",
        "Open the port 4444 of the server",
        "Merge the PR 666",
        "Merge the PR #7",
        "Raise the limit to 100000",
        "Raise the limit to 100,000",
        "End the process 1",
        "Clean /home/user",
        "Read rfc-1 on 10.0.0.1",
        "Read docs/rfc-12.md on 10.0.0",
        "Upload the report to https://example.com/reports/new",
        "Upload the report to https://example.com/Reports?to=ann",
    ],
)
def test_a_name_or_number_must_be_known_as_a_whole(text):
    assert INDEX.find_foreign_source(text, [1]) is not None
    assert INDEX.has_other_names_or_negations(text)


@pytest.mark.parametrize(
    "text",
    [
        "Fix the parser, then upload the report to <https://example.com/reports>.",
        "Upload the report to HTTPS://example.com/reports/",
        "Fix the parser in src/parser.py",
        "Clean `/home/user/project/build/`",
        "Read rfc-12.md on 10.0.0.1, please",
        "Fix the parser (e.g. in parser.py)",
    ],
)
def test_a_name_that_is_known_as_a_whole_may_be_asked_for(text):
    assert INDEX.find_foreign_source(text, [1]) is None


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("Run the tests", "Do not run tests"),
        ("Run the tests", "Don\u2019t run the tests"),
        ("Run the tests", "Never run the tests"),
        ("Do not run the tests", "Run the tests"),
        ("Never deploy", "Deploy"),
        ("Deploy to staging, never to production", "Deploy to production"),
        ("Deploy to staging, never to production", "Deploy to production, never to staging"),
        ("Fix the parser but do not run the tests", "Fix the parser, run the tests"),
        ("Fix the parser. Run the tests", "Fix the parser without running the tests"),
        ("Die Tests nicht starten", "Die Tests starten"),
        ("不要运行测试", "运行测试"),
        ("运行测试", "不运行测试"),
    ],
)
def test_a_text_must_not_negate_what_was_said_or_the_reverse(asked, text):
    index = ProvenanceIndex([("the person", 1, asked)], [])
    assert index.find_foreign_source(text, [1]) is not None
    assert index.find_foreign_source(asked, [1]) is None


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("Do not run the tests", "Never run the tests"),
        ("Fix the parser but do not run the tests", "Fix the parser without running the tests"),
        ("Fix the parser but do not run the tests", "Fix the parser"),
        ("The parser does not accept empty quotes. Fix it.", "Make the parser accept empty quotes"),
        ("Do not forget to run the tests", "Run the tests"),
        ("Did we restore the backup? No.", "The backup has never been restored"),
        ("不要运行测试", "不运行测试"),
    ],
)
def test_a_text_may_negate_in_other_words(asked, text):
    assert ProvenanceIndex([("the person", 1, asked)], []).find_foreign_source(text, [1]) is None
