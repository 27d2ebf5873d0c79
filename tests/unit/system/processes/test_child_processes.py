"""A program that we follow: what it says, how it ends, and that it ends with us."""

import signal
import sys

import pytest

PRELUDE = """
import json, os, select, signal, subprocess, sys, time
from rekindle.errors import AgentError, ProgramMissingError
from rekindle.system.processes.child_processes import (
    Interruption,
    HostProcesses,
)

def begin(code, prompt="", **environment):
    return HostProcesses().start(
        [sys.executable, "-I", "-S", "-c", "import os, signal, subprocess, sys, time\\n" + code],
        prompt=prompt, environment={"PATH": os.environ["PATH"]} | environment, folder=".",
    )

def lines(child, every=0.25):
    return [line for line in child.follow(every) if line is not None]

def lives(pid):
    try:
        stat = open(f"/proc/{pid}/stat").read()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"

def tell(**facts):
    print(json.dumps(facts))
"""
HOLDS_THE_PIPE = """
print("last words", flush=True)  # first: a flood would leave them little room in the pipe
reader, writer = os.pipe()
holder = ["setsid", "sh", "-c", f"echo >&{writer}; exec %s"]
subprocess.Popen(holder, stdin=subprocess.DEVNULL, pass_fds=[writer])
os.read(reader, 1)
os._exit(0)
"""


def test_lines_come_whole_and_in_order(inside):
    """Five megabytes, many small lines, and bytes of any kind, however they are split."""
    found = inside(
        PRELUDE
        + r"""
child = begin('''
out = sys.stdout.buffer
for piece in (b"fi", b"rst\\n", b"x" * 5_000_000 + b"\\n", b"\\n", bytes(range(256)), b"\\n"):
    out.write(piece)
    out.flush()
out.write(b"".join(b"%d\\n" % number for number in range(20_000)))
''')
found = lines(child)
garbage = bytes(range(256)).split(b"\n")
tell(head=[one.decode() for one in found[:1]], long=len(found[1]), empty=found[2] == b"",
     garbage=found[3:5] == garbage, numbers=found[5:] == [b"%d" % n for n in range(20_000)],
     code=child.code)
"""
    )
    assert found == {
        "head": ["first"],
        "long": 5_000_000,
        "empty": True,
        "garbage": True,
        "numbers": True,
        "code": 0,
    }


def test_a_last_line_without_its_end_is_read(inside):
    """A program's account of how it went counts, also where it forgot the newline."""
    found = inside(
        PRELUDE
        + """
child = begin('sys.stdout.write("one\\\\ntwo")')
tell(lines=[one.decode() for one in lines(child)])
"""
    )
    assert found == {"lines": ["one", "two"]}


@pytest.mark.parametrize("holder", ["sleep 600", "yes"], ids=["silent", "flooding"])
def test_following_ends_with_the_program_and_not_with_its_pipe(inside, holder):
    """A leftover process keeps the pipe open, silently or writing into it without end."""
    code = HOLDS_THE_PIPE % holder
    found = inside(
        PRELUDE
        + f"""
child = begin({code!r})
found = lines(child)
tell(said=any(one.endswith(b"last words") for one in found), code=child.code)
""",
        timeout=20,
    )
    assert found["said"] is True
    assert found["code"] == 0


def test_a_program_that_never_stops_talking_leaves_room_to_act(inside):
    """The caller gets a moment in between, to see a stop request."""
    found = inside(
        PRELUDE
        + """
environment = {"PATH": os.environ["PATH"]}
child = HostProcesses().start(["yes"], prompt="", environment=environment, folder=".")
came = 0
for line in child.follow(0.25):
    if line is None and came:
        child.kill()
    came += 1
    if came > 20_000_000:
        break
tell(code=child.code, in_time=came <= 20_000_000)
""",
        timeout=30,
    )
    assert found == {"code": -9, "in_time": True}


def test_a_prompt_is_given_whole_without_blocking(inside):
    """Five megabytes go to a program that reads them and to one that never does."""
    found = inside(
        PRELUDE
        + """
prompt = "\U0001d11e\\u00e9 \\n" * 700_000
reader = begin("print(len(sys.stdin.buffer.read()), flush=True)", prompt)
deaf = begin("print('done', flush=True)", prompt)
broken = begin("print(sys.stdin.buffer.read().decode())", "a\\ud800b")
tell(size=len(prompt.encode()), read=int(lines(reader)[0]), deaf=lines(deaf)[0].decode(),
     broken=lines(broken)[0].decode(), codes=[reader.code, deaf.code, broken.code])
"""
    )
    assert found["size"] == found["read"] > 5_000_000
    assert (found["deaf"], found["broken"], found["codes"]) == ("done", "a?b", [0, 0, 0])


def test_the_end_of_its_complaints_is_kept(inside):
    """A megabyte on standard error leaves its last words and costs no more than they do."""
    found = inside(
        PRELUDE
        + """
child = begin('''
sys.stderr.write("x" * 1_000_000 + "\\\\xe9 the reason")
sys.exit(7)
''')
lines(child)
tell(size=len(child.errors.encode()), end=child.errors[-12:], code=child.code)
"""
    )
    assert found["size"] <= 16 * 1024 + 8
    assert found["end"].endswith("the reason")
    assert found["code"] == 7


def test_how_it_ended_is_known_when_it_has(inside):
    """Before that there is no code; a signal that ended it is a negative one."""
    found = inside(
        PRELUDE
        + """
child = begin("os.kill(os.getpid(), signal.SIGKILL)")
try:
    child.code
except AgentError as error:
    early = str(error)
lines(child)
child.ask_to_end()  # too late: its process id may be reused, so no signal is sent
tell(early=early, code=child.code)
"""
    )
    assert found == {"early": "the agent is still running", "code": -9}


def test_its_group_ends_with_it(inside):
    """Processes of its group are gone when following ends, even if they ignore TERM."""
    found = inside(
        PRELUDE
        + """
child = begin('''
inner = ["sh", "-c", "trap '' TERM; echo $$; exec 1>&- 2>&-; exec sleep 600"]
sys.stdout.write(subprocess.Popen(inner, stdout=subprocess.PIPE, text=True).stdout.readline())
''')
(pid,) = lines(child)
try:
    gone = bool(select.select([os.pidfd_open(int(pid))], [], [], 10)[0])
except ProcessLookupError:
    gone = True
tell(gone=gone, code=child.code)
"""
    )
    assert found == {"gone": True, "code": 0}


def test_it_can_be_asked_and_made_to_end(inside):
    """Asked, it may say how it ends; killed, it may not; both reach its whole group."""
    found = inside(
        PRELUDE
        + """
listens = '''
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
print(os.getpid(), flush=True)
while True: signal.pause()
'''
deaf = listens.replace("lambda *_: sys.exit(3)", "signal.SIG_IGN")
codes = []
for code, end in ((listens, "ask_to_end"), (deaf, "kill")):
    child = begin(code)
    for line in child.follow(0.1):
        if line:
            getattr(child, end)()
    codes.append(child.code)
tell(codes=codes)
""",
        timeout=20,
    )
    assert found == {"codes": [3, -signal.SIGKILL]}


def test_a_caller_that_stops_following_ends_it(inside):
    """An error of ours leaves no unwatched agent behind."""
    found = inside(
        PRELUDE
        + """
child = begin("print(os.getpid(), flush=True)\\nwhile True: signal.pause()")
following = child.follow(0.25)
pid = int(next(line for line in following if line))
following.close()
tell(code=child.code, lives=lives(pid))
"""
    )
    assert found == {"code": -9, "lives": False}


def test_it_gets_the_environment_it_is_given_and_nothing_else(inside):
    """Ours may hold keys; the folder is the one that was said."""
    found = inside(
        PRELUDE
        + """
child = begin("print(sorted(os.environ))", MINE="1")
tell(names=lines(child)[0].decode())
""",
        UNSAID="s",
    )
    assert "MINE" in found["names"]
    assert "UNSAID" not in found["names"]


def test_a_program_or_folder_that_is_not_there_is_named(inside):
    """Each has its own message: one is fixed by installing, the other in the manifest."""
    found = inside(
        PRELUDE
        + """
def words(argv, folder):
    try:
        HostProcesses().start(argv, prompt="", environment={"PATH": "/bin"}, folder=folder)
    except AgentError as error:
        return [type(error).__name__, str(error), error.hint]
open("plain", "w").close()
tell(missing=words(["no-such-program"], "."), plain=words(["./plain"], "."),
     folder=words(["sh"], "./nowhere"))
"""
    )
    missing, plain, folder = found["missing"], found["plain"], found["folder"]
    assert missing[0] == plain[0] == "ProgramMissingError"
    assert "no-such-program could not be started" in missing[1]
    assert "Permission denied" in plain[1]
    assert folder[0] == "AgentError"
    assert "./nowhere does not exist" in folder[1]
    assert "`dir:`" in folder[2]


def test_it_dies_with_its_supervisor(place, tmp_path):
    """Killed with -9, the supervisor can do nothing for it: the kernel does."""
    code = PRELUDE + (
        "\nchild = begin(\"open('up', 'w').close()\\nwhile True: signal.pause()\")\nlines(child)\n"
    )
    supervisor = place.start(
        [sys.executable, "-c", code], env={"PATH": "/usr/bin:/bin"}, cwd=tmp_path
    )
    place.wait_for((tmp_path / "up").exists)
    assert len(place.processes()) == 2
    supervisor.signal(signal.SIGKILL)
    assert supervisor.wait() == -signal.SIGKILL
    place.wait_for(lambda: not place.processes(), timeout=120)


def test_an_interruption_is_counted_and_the_handlers_put_back(inside):
    """Ctrl-C, a `kill` and a terminal that closes count; then they do what they did before."""
    found = inside(
        PRELUDE
        + """
before = [signal.getsignal(number) for number in Interruption.SIGNALS]
with Interruption() as interruption:
    for number in Interruption.SIGNALS:
        os.kill(os.getpid(), number)
tell(count=interruption.count,
     same=before == [signal.getsignal(number) for number in Interruption.SIGNALS])
"""
    )
    assert found == {"count": 4, "same": True}


def test_a_signal_that_was_to_be_ignored_stays_ignored(inside):
    """`nohup rekindle run &` means that the terminal may close."""
    found = inside(
        PRELUDE
        + """
signal.signal(signal.SIGHUP, signal.SIG_IGN)
with Interruption() as interruption:
    os.kill(os.getpid(), signal.SIGHUP)
    hung_up = interruption.count
    os.kill(os.getpid(), signal.SIGTERM)
tell(hung_up=hung_up, count=interruption.count,
     ignored=signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)
"""
    )
    assert found == {"hung_up": 0, "count": 1, "ignored": True}
