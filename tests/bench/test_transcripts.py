"""A transcript of any size: read in constant memory, and the next time only what was added."""

import json
import os
import subprocess
import sys
import time

import pytest

from rekindle.flows.transcripts.transcript_reader import TranscriptReader
from rekindle.harnesses.claude_code import claude_harness

pytestmark = pytest.mark.bench

MEGABYTE = 1024 * 1024
IN_CI = 300 * MEGABYTE
WHOLE = 5 * 1024 * MEGABYTE
MOST_MEMORY = 150 * MEGABYTE
PEAK = """
import resource, sys, time
def peak():
    # Of this program alone: what rusage tells has the peak of who started it in it.
    try:
        status = open("/proc/self/status").read()
        return int(status.split("VmHWM:")[1].split()[0])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
"""
READ = f"""{PEAK}
from rekindle.flows.transcripts.transcript_reader import TranscriptReader
from rekindle.harnesses.claude_code import claude_harness
start = time.perf_counter()
reading = TranscriptReader(sys.argv[1], claude_harness)
turns = sum(1 for _ in reading.finished()) + sum(1 for _ in reading.rest())
print(turns, time.perf_counter() - start, peak())
"""
LOADS = """
import json, sys, time
start = time.perf_counter()
with open(sys.argv[1], "rb") as file:
    for line in file:
        json.loads(line)
print(time.perf_counter() - start)
"""


def lines_of(number):
    """One exchange, as Claude Code writes it: most of its bytes are copies and results."""
    call = f"toolu_{number}"
    text = (f"line {number} of what a tool gave, with \\" + "\n") * 60_000  # about three megabytes
    use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "cat big"}}
    given = {"type": "tool_result", "tool_use_id": call, "content": text}
    usage = {"input_tokens": 9, "output_tokens": 1}
    message = {"id": f"msg_{number}", "model": "opus", "content": [use], "usage": usage}
    yield {"type": "assistant", "message": message}
    yield {
        "type": "user",
        "message": {"role": "user", "content": [given]},
        "toolUseResult": text[:9],
    }
    yield {"type": "api-request-blob", "data": text}


def make(path, size):
    exchange = [json.dumps(line).encode() + b"\n" for line in lines_of(0)]
    number = 0
    with path.open("wb", buffering=MEGABYTE) as file:
        while file.tell() < size:
            name, before = f"toolu_{number}".encode(), b"toolu_0"
            for line in exchange:
                file.write(line.replace(before, name, 1).replace(b"msg_0", b"msg_%d" % number, 1))
            number += 1
    return number


def measured(program, path):
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    return [float(word) for word in done.stdout.split()]


def held_to(path, size):
    turns_made = make(path, size)
    began = time.perf_counter()
    with path.open("rb") as file:
        subprocess.run(["cat"], stdin=file, stdout=subprocess.DEVNULL, check=True)
    cat = time.perf_counter() - began
    turns, seconds, kilobytes = measured(READ, path)
    (loads,) = measured(LOADS, path)
    print(
        f"\n{size / MEGABYTE:,.0f} MB: {kilobytes / 1024:.0f} MB of memory, "
        f"{seconds / loads:.2f}x json.loads of its lines, {seconds / cat:.1f}x cat"
    )
    assert turns == turns_made
    assert kilobytes * 1024 < MOST_MEMORY
    assert seconds < 1.5 * loads


def test_300_megabytes_in_lines_of_3(tmp_path):
    held_to(tmp_path / "big.jsonl", IN_CI)


@pytest.mark.torture
@pytest.mark.timeout(1800)
def test_5_gigabytes_in_lines_of_3(tmp_path):
    if os.environ.get("REKINDLE_TORTURE") != "whole":
        pytest.skip("five gigabytes: only in `just torture`")
    held_to(tmp_path / "big.jsonl", WHOLE)


def test_the_next_look_costs_what_was_added(tmp_path):
    path = tmp_path / "growing.jsonl"
    make(path, 30 * MEGABYTE)
    reading = TranscriptReader(str(path), claude_harness)
    list(reading.finished())
    added = json.dumps({"type": "user", "message": {"role": "user", "content": "go on"}}) + "\n"
    with path.open("a") as file:
        file.write(added)
    again = TranscriptReader(str(path), claude_harness, reading.cursor())
    list(again.finished())
    # The last exchange, which was not over, and what came since; not the other nine.
    assert again.at - reading.cursor().offset < path.stat().st_size / 3
    assert again.at == path.stat().st_size


def answer(number, *blocks, **more):
    message = {"id": f"m{number}", "model": "opus", "content": list(blocks)}
    return json.dumps({"type": "assistant", "message": message, **more}).encode() + b"\n"


def call(name, command):
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": command}}


def many_empty_texts():
    yield answer(1, *[{"type": "text", "text": ""}] * 40_000)


def another_sub_agent_each_line():
    for number in range(20_000):
        yield answer(1, call("c", "x" * 300), isSidechain=True, agentId=f"a{number}")


def a_line_of_empty_objects():
    yield answer(1, *[{}] * 900_000)


def calls_that_never_end():
    for number in range(40):
        uses = [call(f"{number}-{n}", "x" * 4_000) for n in range(100)]
        yield answer(number, *uses, isSidechain=True, agentId=f"a{number}")
        given = [
            {"type": "tool_result", "tool_use_id": f"{number}-{n}", "content": "y" * 8_000}
            for n in range(100)
        ]
        more = {"isSidechain": True, "agentId": f"a{number}"}
        record = {"type": "user", "message": {"role": "user", "content": given}, **more}
        yield json.dumps(record).encode() + b"\n"


def commands_of_megabytes():
    for number in range(20):
        yield answer(number, call(f"c{number}", "echo " + "words and words " * 190_000))


SHAPES = (
    many_empty_texts,
    another_sub_agent_each_line,
    a_line_of_empty_objects,
    calls_that_never_end,
    commands_of_megabytes,
)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_no_shape_costs_more_than_its_bytes(tmp_path, shape):
    path = tmp_path / "shape.jsonl"
    with path.open("wb") as file:
        # An answer that waits for ever, so that all others wait for it.
        file.write(answer(0, call("open", "sleep")))
        file.writelines(shape())
    _, seconds, kilobytes = measured(READ, path)
    (loads,) = measured(LOADS, path)
    size = path.stat().st_size / MEGABYTE
    print(
        f"\n{shape.__name__}, {size:.0f} MB: {kilobytes / 1024:.0f} MB of memory, "
        f"{seconds / loads:.2f}x json.loads of its lines"
    )
    assert kilobytes * 1024 < MOST_MEMORY
    assert seconds < 12 * loads + 0.2


SUMMARIZE = f"""{PEAK}
from rekindle.cli.main import run
start = time.perf_counter()
code = run(["summarize", sys.argv[1], "--as", "checkpoint", *sys.argv[2:]])
print(code, time.perf_counter() - start, peak(), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("how", "size"), [([], 60), (["--mechanical"], 12)], ids=["asked", "mechanical"]
)
def test_a_summary_of_far_too_much_is_refused_early_or_made_in_little_memory(tmp_path, how, size):
    manifest = f"""\
version: 1
agents: {{trades: {{harness: claude-code}}}}
personas:
  summarizer: {{adapter: command, command: [{sys.executable}, -c, "1/0"]}}
"""
    (tmp_path / "rekindle.yaml").write_text(manifest)
    text, path = "some words of an agent that talks on and on\n" * 60, tmp_path / "t.jsonl"
    given = {"type": "tool_result", "tool_use_id": "c", "content": text}
    record = {"type": "user", "message": {"role": "user", "content": [given]}}
    exchange = json.dumps(record).encode() + b"\n"
    with path.open("wb") as file:
        number = 0
        while file.tell() < size * MEGABYTE:
            number += 1
            file.write(answer(number, {"type": "text", "text": text}, call("c", "cat")))
            file.write(exchange)
    done = subprocess.run(
        [sys.executable, "-c", SUMMARIZE, str(path), *how],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    code, seconds, kilobytes = map(float, done.stderr.split()[-3:])
    print(f"\n{size} MB summarized: {kilobytes / 1024:.0f} MB of memory, {seconds:.1f} s")
    assert code == (0 if how else 9), done.stderr
    assert kilobytes * 1024 < MOST_MEMORY
