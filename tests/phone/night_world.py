"""A night with questions: real supervisors, gates and a bridge, which are killed at random.

Only the agent CLI and Telegram are replaced. The agents make calls that need approval, one after
the other. A person answers on the phone, or does not, in an order that a seed decides.
"""

import json
import random
import re
import signal
import stat
import sys
import threading
from collections import Counter
from datetime import datetime

from phone.phone_world import ME, STRANGER
from phone.telegram_double import find_key
from rekindle import config
from rekindle.wiring.access import trust_checks
from throwaway import Repository

ASKED = re.compile(r"(\S+)/(\S+) asks \((\S+)\):")
IGNORED = "ignored"
MANIFEST = """\
version: 1
agents:
{agents}
personas:
  default: {{permissions: {{allowed_tools: [Bash], ask: ["Bash(git push*)"]}}}}
runtime:
  questions: {{wait: {wait}s}}
  relay: {{summarizer: mechanical}}
  restart: {{cooldown: 0s, max_crashes: 100000}}
"""
STAND_IN = """\
#!%(python)s -IS
# Makes calls one after the other, each through the gate, and notes those that ran.
import json, os, subprocess, sys, time
options = dict(one.partition("=")[::2] for one in sys.argv if one.startswith("--"))
session = options.get("--session-id") or options["--resume"]
with open(options["--settings"]) as file:
    hooks = json.load(file)["hooks"]["PermissionRequest"]
gate, launch = hooks[0]["hooks"][0]["command"], os.environ["REKINDLE_LAUNCH"]
agent = os.environ["REKINDLE_FOLDER"].rpartition("/")[2]

def note(name, words):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
    os.write(fd, (words + "\\n").encode())
    os.close(fd)

def done():
    try:
        with open(f"done-{agent}") as file:
            return file.read().split()
    except FileNotFoundError:
        return []

note(f"work-{agent}-{launch}", "")
said = {"type": "system", "subtype": "init", "session_id": session, "model": "m"}
print(json.dumps(said), flush=True)
for number in range(%(calls)d):
    if str(number) in done():
        continue
    call = {"tool_name": "Bash", "tool_input": {"command": f"git push {agent} {number}"}}
    call["cwd"] = os.getcwd()
    ended = subprocess.run(["sh", "-c", gate], input=json.dumps(call).encode(), capture_output=True)
    if ended.returncode == 0 and b'"allow"' in ended.stdout:
        note("calls", f"{agent} {number} {time.time()}")
    note(f"done-{agent}", str(number))
    print('{"type":"assistant","message":{"model":"m","content":[]}}', flush=True)
text = {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}
print(json.dumps({**text, "session_id": session, "num_turns": 1}), flush=True)
"""


class Night:
    """Agents that ask, a person who answers, and a hand that kills."""

    def __init__(self, place, telegram, folder, plan):
        self.place, self.telegram, self.plan = place, telegram, plan
        self.random = random.Random(plan.seed)
        self.agents = [f"a{number}" for number in range(plan.agents)]
        self.kills = Counter()
        self.path = folder / "night"
        self.path.mkdir()
        programs = folder / "programs"
        programs.mkdir()
        self._environment = {
            "PATH": f"{programs}:/usr/bin:/bin",
            "HOME": str(folder),
            "LC_ALL": "C.UTF-8",
        }
        entries = [
            f"  {name}: {{harness: claude-code, cycles: 1, until: ['true']}}"
            for name in self.agents
        ]
        Repository(self.path).init()
        text = MANIFEST.format(agents="\n".join(entries), wait=plan.wait)
        (self.path / "rekindle.yaml").write_text(text)
        (self.path / "PROMPT.md").write_text("Ship it.\n")
        program = programs / "claude"
        program.write_text(STAND_IN % {"python": sys.executable, "calls": plan.calls})
        program.chmod(stat.S_IRWXU)
        trust_checks.accept_project(config.load_project(self.path))
        self.person = Person(telegram, self.random.random())

    def start(self, *words):
        argv = [sys.executable, "-I", "-m", "rekindle", *words]
        return self.place.start(argv, env=self._environment, cwd=self.path)

    def play(self):
        """Run all agents to the end, and kill the bridge and supervisors meanwhile."""
        kills = self.plan.kills
        bridge = self.start("phone", "run")
        running = {name: self.start("run", name) for name in self.agents}
        with self.person:
            while running:
                self._wait(self.random.uniform(0.2, 3.0))
                for name, started in list(running.items()):
                    code = self.place.ended.get(started.pid)
                    if code == 0:
                        del running[name]
                    elif code is not None:
                        assert code == -signal.SIGKILL, started.out + started.err
                        running[name] = self.start("run", name)
                if kills and running:
                    kills -= 1
                    victim = self.random.choice(["bridge", self.random.choice(list(running))])
                    self.kills["bridge" if victim == "bridge" else "supervisor"] += 1
                    if victim == "bridge":
                        bridge.signal(signal.SIGKILL)
                        bridge.wait()
                        bridge = self.start("phone", "run")
                    else:
                        running[victim].signal(signal.SIGKILL)
            self.telegram.wait_for(self.is_settled, seconds=240)
        bridge.signal(signal.SIGTERM)
        assert bridge.wait() == 0, bridge.err

    def _wait(self, seconds):
        with self.telegram.changed:
            self.telegram.changed.wait(seconds)

    def is_settled(self):
        """Return whether every question was sent, and every press was handled."""
        answered = {one["question"] for one in self.list_events("question.answered")}
        wanted = {
            question
            for question in self.list_asked()
            if self.person.decisions.get(question, "") != IGNORED
        }
        return wanted <= answered and not self.telegram.updates

    def list_events(self, kind):
        events = []
        for name in self.agents:
            path = self.path / ".rekindle/agents" / name / "ops.jsonl"
            lines = path.read_text().splitlines() if path.exists() else []
            for line in lines:
                try:
                    event = json.loads(line)
                except ValueError:
                    continue  # the writer is appending it
                if event["kind"] == kind:
                    events.append(event)
        return events

    def list_asked(self):
        return {one["question"]: one for one in self.list_events("question.asked")}

    def list_runs(self):
        """Return the calls that ran, each with its time."""
        path = self.path / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [
            (f"git push {agent} {number}", float(at)) for agent, number, at in map(str.split, lines)
        ]


class Person:
    """Presses each copy of a question's message, or ignores the question."""

    def __init__(self, telegram, seed):
        self.telegram, self._seed = telegram, seed
        self.decisions = {}
        """Choice by question id, or `IGNORED`."""
        self._pressed = set()
        self._ending = False
        self._thread = threading.Thread(target=self._answer)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *exc):
        self._ending = True
        self._thread.join()

    def decide(self, question):
        """Ignore a fifth of each agent's questions, and allow most of the others."""
        agent, _, number = question.rpartition("-")
        if (int(number) + int(agent.removeprefix("a"))) % 5 == 2:
            return IGNORED
        return random.Random(f"{self._seed}{question}").choice(["allow", "allow", "deny"])

    def _answer(self):
        while not self._ending:
            with self.telegram.changed:
                self.telegram.changed.wait(0.1)
                messages = list(self.telegram.messages.values())
            for message in messages:
                match = ASKED.match(message["text"])
                if match and message["message_id"] not in self._pressed:
                    self._pressed.add(message["message_id"])
                    self._press(match[3], message)

    def _press(self, question, message):
        choice = self.decisions.setdefault(question, self.decide(question))
        allow, deny = (find_key(message, label) for label in ("Allow once", "Deny"))
        self.telegram.press_data(ME, allow, message, STRANGER)
        if choice != IGNORED:
            pressed, other = (allow, deny) if choice == "allow" else (deny, allow)
            self.telegram.press_data(ME, pressed, message, times=2)
            self.telegram.press_data(ME, other, message)


def find_faults(night):
    """Return a line for each broken promise."""
    asked, decisions = night.list_asked(), night.person.decisions
    counted = [one for one in night.list_events("question.answered") if not one.get("refused")]
    faults = [f"lost: {name}" for name in asked if name not in decisions]
    times = Counter(one["question"] for one in counted)
    faults += [f"answered {count} times: {name}" for name, count in times.items() if count > 1]
    answers = {one["question"]: one for one in counted}
    for name, choice in decisions.items():
        answer = answers.get(name, {"choice": IGNORED, "by": f"telegram:{ME}"})
        if (answer["choice"], answer["by"]) != (choice, f"telegram:{ME}"):
            faults.append(f"{name} should be {choice}: {answer}")
    return faults + list(_find_wrong_runs(night, asked, answers))


def _find_wrong_runs(night, asked, answers):
    """Yield the calls that ran without an approval of their own that was given before."""
    permitted = {}
    for event in night.list_events("call.permitted"):
        name = event["question"]
        answer = answers.get(name, {})
        if answer.get("choice") != "allow" or answer["ts"] > event["ts"]:
            yield f"permitted without an approval: {name}"
        command = asked[name]["request"]["arguments"]["command"]
        if name in {each for each, _ in permitted.get(command, ())}:
            yield f"permitted twice: {name}"
        at = datetime.fromisoformat(event["ts"]).timestamp()
        permitted.setdefault(command, []).append((name, at))
    for command, at in night.list_runs():
        earlier = [each for each in permitted.get(command, ()) if each[1] <= at]
        if not earlier:
            yield f"ran without permission: {command}"
        else:
            permitted[command].remove(earlier[0])
