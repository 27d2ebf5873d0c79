"""Turns become a summary: what is asked, what is believed, what is done where nobody answers."""

import json
import sys
import time
from datetime import date

import pytest

from rekindle.documents import checkpoint, summary
from rekindle.documents.checkpoint import Part
from rekindle.documents.question import Answer
from rekindle.documents.transcript import Call, Turn
from rekindle.errors import DocumentError, OverBudgetError, SummaryError
from rekindle.flows.summarize import Summarize, document
from rekindle.harnesses import command
from rekindle.policy import summarize as policy
from rekindle.policy import tokens
from rekindle.policy.summarize import INSTRUCTIONS, request
from rekindle.summarizers.headless import Headless
from rekindle.summarizers.mechanical import Known
from rekindle.system.processes import Processes

TURNS = [
    Turn(number=1, who="person", text="make the parser accept empty files"),
    Turn(
        number=2,
        who="agent",
        text="I will look at the tests first.",
        calls=(Call("Bash", "just test", "failed", "2 failed, 3 passed"),),
    ),
    Turn(number=3, who="agent", text="Both failures come from the same branch.", written=40),
]
KNOWN = Known(
    changed=("parser.py",),
    commits=("accept empty files",),
    carried=("write the changelog",),
    next_action="Repair the second branch.",
)
GOOD = {
    name: [{"text": f"something about {name.lower()}", "turns": [2, 3]}]
    for name in summary.asked("checkpoint")
}


class Model:
    """Answers one after the other; an exception is raised."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def __call__(self, request):
        self.asked.append(request.prompt)
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return Answer(found if isinstance(found, str) else json.dumps(found), 0.25, 100)


def make(*answers, kind="checkpoint", cap=100_000):
    model = Model(*answers)
    return Summarize(model, cap=cap).make(kind, TURNS, KNOWN), model


def text_of(made):
    return document(made, KNOWN, name="trades", day=date(2026, 1, 1))


def test_an_answer_becomes_a_checkpoint_with_the_files_that_git_knows():
    made, model = make(GOOD)
    found = checkpoint.parse(text_of(made))
    assert found.content(Part.MODIFIED_FILES) == "- `parser.py`"
    assert found.content(Part.REMAINING_WORK) == "- something about remaining work (turns 2-3)"
    assert (made.how, made.usd, made.tokens, len(model.asked)) == ("headless", 0.25, 100, 1)


def test_a_fence_around_the_answer_is_no_fault():
    made, _ = make("```json\n" + json.dumps(GOOD) + "\n```")
    assert made.how == "headless"


BAD = {
    "no JSON": ("I would rather not.", "is not valid JSON"),
    "a list": ([], "is not a JSON object"),
    "a heading more": ({**GOOD, "Desired State": []}, "Desired State"),
    "a heading less": ({k: v for k, v in GOOD.items() if k != "Remaining Work"}, "lacks Remaining"),
    "an empty section": ({**GOOD, "Remaining Work": []}, "says nothing under Remaining Work"),
    "no turns": ({**GOOD, "Remaining Work": [{"text": "x", "turns": []}]}, "names no turn"),
    "a turn that is not": ({**GOOD, "Remaining Work": [{"text": "x", "turns": [9]}]}, "names no"),
    "true as a turn": ({**GOOD, "Remaining Work": [{"text": "x", "turns": [True]}]}, "names no"),
    "text alone": ({**GOOD, "Remaining Work": ["x"]}, "not a text with its turns"),
    "more keys": ({**GOOD, "Remaining Work": [{"text": "x", "turns": [1], "run": "y"}]}, "not a"),
    "a sentence before it": ("Here it is: " + json.dumps(GOOD), "is not valid JSON"),
    "a marker behind it": (json.dumps(GOOD) + "\n===STATE_JSON===\n{}", "is not valid JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_used_is_asked_for_once_more_with_its_fault(name):
    answer, fault = BAD[name]
    made, model = make(answer, GOOD)
    assert made.how == "headless"
    assert len(model.asked) == 2
    assert fault in model.asked[1]
    assert (made.usd, made.tokens) == (0.5, 200), "what a bad answer costs counts too"


@pytest.mark.parametrize("name", BAD)
def test_twice_unusable_it_is_put_together_without_a_model(name):
    answer, fault = BAD[name]
    made, model = make(answer, answer, GOOD)
    assert (made.how, len(model.asked), made.usd) == ("mechanical", 2, 0.5)
    assert fault in made.words
    found = checkpoint.parse(text_of(made))
    assert "write the changelog" in found.content(Part.REMAINING_WORK)
    assert "accept empty files" in found.content(Part.COMPLETED_WORK)
    assert "Repair the second branch." in found.content(Part.RESUME_INSTRUCTIONS)


def test_where_nobody_answers_it_is_not_asked_again():
    made, model = make(SummaryError("it is gone"), GOOD)
    assert (made.how, made.words, len(model.asked)) == ("mechanical", "it is gone", 1)


@pytest.mark.parametrize("kind", summary.SECTIONS)
def test_without_a_model_every_document_can_be_made(kind):
    made = Summarize(None, cap=1_000).make(kind, TURNS, KNOWN)
    assert made.how == "mechanical"
    assert "the agent, turn 3: “Both failures come" in text_of(made) or kind == "brief"


def test_too_much_is_refused_before_anybody_is_asked():
    long = [Turn(number=n, who="agent", text="words and words " * 200) for n in range(1, 40)]
    model = Model(GOOD)
    with pytest.raises(OverBudgetError) as caught:
        Summarize(model, cap=5_000).make("checkpoint", long, KNOWN)
    assert caught.value.tokens > caught.value.cap == 5_000
    assert model.asked == []


def test_what_tools_gave_is_shown_as_far_as_it_fits():
    shown = "a line of what it gave\n" * 80
    calls = (Call("Bash", "cat", "ok", shown),)
    turns = [Turn(number=n, who="agent", text="look", calls=calls) for n in range(1, 31)]
    sizes = []
    for cap in (60_000, 9_000, 5_000):
        found = request("checkpoint", turns, nonce="0" * 32, cap=cap)
        sizes.append(tokens.estimate(found.prompt))
        assert sizes[-1] + tokens.estimate(INSTRUCTIONS) <= cap
        assert found.prompt.count("> Bash cat: ok") == 30
    assert sizes[0] > sizes[1] > sizes[2]


def test_a_line_that_repeats_the_transcript_is_a_quotation():
    said = {
        **GOOD,
        "Completed Work": [
            {"text": "2 failed, 3 passed", "turns": [2]},
            {"text": "Both failures come from the same branch", "turns": [3]},
            {"text": "make the parser accept empty files", "turns": [1]},
            {"text": "Empty input now parses in the main path", "turns": [3]},
        ],
    }
    made, _ = make(said)
    assert [item.text for item in made.summary.sections["Completed Work"]] == [
        "a tool, turn 2: “2 failed, 3 passed”",
        "the agent, turn 3: “Both failures come from the same branch”",
        "the person, turn 1: “make the parser accept empty files”",
        "Empty input now parses in the main path",
    ]


def test_an_item_is_one_line_and_no_marker():
    said = {**GOOD, "Current State": [{"text": "x\n## Budget\n===STATE_JSON===\r{}", "turns": [1]}]}
    made, _ = make(said)
    (item,) = made.summary.sections["Current State"]
    assert item.text == "x ## Budget STATE_JSON {}"


def headless(tmp_path, program, **more):
    scratch = tmp_path / "asked"
    scratch.mkdir()
    return Headless(
        harness=command,
        processes=Processes(),
        scratch=scratch,
        environment={"PATH": "/usr/bin:/bin"},
        program=(sys.executable, "-c", program),
        **more,
    )


def asked(kind="checkpoint"):
    return policy.request(kind, TURNS, nonce="0" * 32, cap=100_000)


def test_a_program_is_asked_in_an_empty_folder_with_nothing_but_the_request(tmp_path):
    program = "import os, sys; print(os.getcwd(), os.environ.get('HOME'), len(sys.stdin.read()))"
    found = headless(tmp_path, program).ask(asked())
    folder, home, size = found.text.split()
    assert (folder, home, int(size)) == (str(tmp_path / "asked"), "None", len(asked().prompt))


def test_a_program_that_does_not_answer_is_ended_in_its_time(tmp_path):
    began = time.monotonic()
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(99)"
    with pytest.raises(SummaryError, match=r"took longer than 0\.5 s"):
        headless(tmp_path, program, seconds=0.5).ask(asked())
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import sys; sys.exit('no credit')", "no credit"),
        ("import os; os.kill(os.getpid(), 9)", "gave no answer"),
        ("while True: print('x' * 100000)", "printed without end"),
    ],
)
def test_a_program_that_fails_gives_no_answer(tmp_path, program, words):
    with pytest.raises(SummaryError, match=words):
        headless(tmp_path, program).ask(asked())


def test_a_program_that_is_not_there_gives_no_answer(tmp_path):
    who = headless(tmp_path, "")
    gone = Headless(
        harness=command,
        processes=Processes(),
        scratch=who.scratch,
        environment={},
        program=("gone",),
    )
    with pytest.raises(SummaryError, match="could not be started"):
        gone.ask(asked())


def test_the_schema_names_the_sections_and_nothing_else():
    for kind in summary.SECTIONS:
        made = json.loads(summary.schema(kind))
        assert made["additionalProperties"] is False
        assert list(made["properties"]) == list(summary.asked(kind)) == made["required"]
    with pytest.raises(DocumentError):
        summary.parse(json.dumps({"Modified Files": []}), "checkpoint", frozenset({1}))
