"""The model decides from the conversation alone, whichever program sends it."""

import json

import pytest

from loopback.log import Part
from survival import player, task
from survival.player import Look, Meter, Relay, Say, Write

pytestmark = pytest.mark.pure

PROMPT = Part("user", "text", "Write the files.")
RELAYED = Part(
    "user",
    "text",
    "Write the files.\nWhen the work of this cycle is done, write the relay for the next one to "
    "this file, then stop:\n/x/relay.md\nIt is markdown",
)


def called(line, result=None, *, fails=False, identity=""):
    """Return a call and, unless it was interrupted, its result."""
    call = Part("assistant", "call", json.dumps({"command": line}), identity or line)
    if result is None:
        return [call]
    return [call, Part("user", "result", result, identity or line, is_error=fails)]


def listed(*items, identity="list"):
    lines = "".join(f"done {item:02}\n" for item in items)
    return called(task.list_command(), f"{lines}{task.LISTED}\n", identity=identity)


def wrote(item):
    return called(task.write_command(item), f"written {item:02}\n")


def move(*parts, **more):
    return player.decide(player.look(parts), **more)


def test_it_looks_before_it_writes():
    assert move(PROMPT) == Look()


def test_it_writes_the_first_missing_item():
    assert move(PROMPT, *listed()) == Write(1)
    assert move(PROMPT, *listed(1, 2, 4)) == Write(3)
    assert move(PROMPT, *listed(1, 2), *wrote(3)) == Write(4)


def test_it_reads_the_first_line_of_an_output_of_gemini_cli():
    found = called(task.list_command(), f"Output: done 01\ndone 02\n{task.LISTED}\n")
    assert move(PROMPT, *found) == Write(3)
    assert move(PROMPT, *found, *called(task.write_command(3), "Output: written 03")) == Write(4)


def test_it_ends_when_everything_is_written():
    end = move(PROMPT, *listed(*range(1, 20)), *wrote(20), word="COMPLETE")
    assert isinstance(end, Say)
    assert end.text.endswith("\nCOMPLETE")
    assert move(PROMPT, *listed(*range(1, 13)), total=12) == Say(
        end.text.removesuffix("\nCOMPLETE")
    )


def test_it_looks_again_after_a_new_prompt():
    assert move(PROMPT, *listed(1), *wrote(2), Part("user", "text", "continue")) == Look()


@pytest.mark.parametrize(
    "torn",
    [
        called(task.write_command(3)),
        called(task.write_command(3), "[Request interrupted]"),
        called(task.write_command(3), "No space left on device", fails=True),
    ],
    ids=["no result", "interrupted", "failed"],
)
def test_it_looks_again_after_a_call_that_may_not_have_happened(torn):
    assert move(PROMPT, *listed(1, 2), *torn) == Look()


def test_a_list_that_was_cut_off_is_not_a_list():
    torn = called(task.list_command(), "done 01\ndone 02\n")
    assert move(PROMPT, *torn) == Look()


def test_it_writes_the_relay_if_the_prompt_asks_for_it():
    whole = [RELAYED, *listed(*range(1, 21))]
    relay = move(*whole)
    assert relay == Relay("/x/relay.md", "DONE")
    assert isinstance(move(*whole, *called(player.command(relay), "")), Say)


def test_additions_of_the_program_do_not_make_it_look_again():
    reminder = Part("system", "text", "<system-reminder>be brief</system-reminder>")
    assert move(PROMPT, *listed(1), reminder) == Write(2)


def test_tokens_that_were_sent_before_are_cached():
    meter = Meter()
    body = {"tools": [{"name": "Bash"}]}
    first = meter.read(body, [PROMPT])
    second = meter.read(body, [PROMPT, Part("assistant", "text", "x" * 400)])
    assert first.cache_read == 0
    assert second.cache_read == first.input - 1
    assert second.input == 101
    assert meter.total == first.input + second.input + second.cache_read


@pytest.mark.parametrize(
    ("tools", "name", "key"),
    [
        ([{"name": "Read"}, {"name": "Bash"}], "Bash", "command"),
        ([{"name": "exec_command"}], "exec_command", "cmd"),
        (
            [{"functionDeclarations": [{"name": "glob"}, {"name": "run_shell_command"}]}],
            "run_shell_command",
            "command",
        ),
    ],
)
def test_it_uses_the_shell_of_the_program(tools, name, key):
    body = {"tools": tools}
    call = player.answer(body, Write(1), "echo", player.Usage())
    assert (call.name, call.input[key]) == (name, "echo")
    assert player.has_shell(body)
    assert not player.has_shell({"tools": [{"name": "Read"}]})
