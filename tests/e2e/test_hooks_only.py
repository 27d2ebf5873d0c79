"""Hooks alone, and a person who starts Claude Code by hand."""

import json

import pytest

from e2e.sandbox import BANNER, RELAY, bash, killed_in_a_tool_call, long_call
from loopback.anthropic import COMPACTION, too_long
from loopback.script import Hang, Text

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def hooked(rekindle):
    """Create the same project, with our hooks in its settings."""
    rekindle("hooks", "install", "--for", "project")
    rekindle("loops", "add", "rate-limit", "How many an hour?")
    return rekindle


def told(request) -> str:
    """Return the texts that hooks gave to the model."""
    return "\n".join(request.injected[1:])


def session_of(started) -> str:
    return json.loads(started.out.splitlines()[-1])["session_id"]


def test_the_next_session_after_kill_9_is_told(hooked, model):
    """It gets the notice once; later sessions, and one after a clean exit, do not."""
    model.play(long_call(), Text("begun again"), Text("and again"))
    first = hooked.by_hand("count the stars")
    killed_in_a_tool_call(hooked)
    assert first.wait() == -9
    assert hooked.by_hand("hello").wait() == 0
    text = model.log.main[1].text
    assert text.count(BANNER) == 1
    assert "  Task: Write the parser's tests\n  Open loops: 1\n" in text
    assert text.count(RELAY.strip()) == 1
    assert hooked.by_hand("hello again").wait() == 0
    assert BANNER not in model.log.main[2].text
    assert model.log.main[2].text.count(RELAY.strip()) == 1
    assert [one["session"] for one in hooked.events("session.lost")] == [
        hooked.events("session.started")[0]["session"]
    ]


def test_without_a_relay_the_task_is_the_last_prompt(unbriefed, model):
    """The notice quotes the last prompt of the session that was killed."""
    unbriefed("hooks", "install")
    model.play(long_call(), Text("begun again"))
    unbriefed.by_hand("count the stars")
    killed_in_a_tool_call(unbriefed)
    assert unbriefed.by_hand("hello").wait() == 0
    assert "  Task: count the stars\n" in model.log.main[1].text


def test_two_levels_of_hooks_prime_once(hooked, model):
    """With hooks for the user and for the project, the primer is in the request once and whole."""
    hooked("hooks", "install", "--for", "user")
    model.play(Text("all done"))
    assert hooked.by_hand("hello").wait() == 0
    (request,) = model.log.main
    assert request.text.count(RELAY.strip()) == 1
    assert request.text.count("rate-limit: How many an hour?") == 1


def test_a_resumed_session_is_not_told_that_it_was_interrupted(hooked, model):
    """A resume, fork or clear shows no banner, even if a killed session was not reported yet."""
    model.play(Text("all done"), long_call(), Text("resumed"), Text("forked"), Text("cleared"))
    first = hooked.by_hand("hello")
    assert first.wait() == 0
    session = session_of(first)
    hooked.by_hand("work")
    killed_in_a_tool_call(hooked)
    assert hooked.by_hand("go on", "--resume", session).wait() == 0
    assert hooked.by_hand("go on", "--resume", session, "--fork-session").wait() == 0
    lines = [
        {"type": "user", "message": {"role": "user", "content": text}} for text in ("/clear", "hi")
    ]
    stdin = "".join(json.dumps(line) + "\n" for line in lines)
    cleared = hooked.by_hand(stdin, "--input-format", "stream-json", "--resume", session)
    assert cleared.wait() == 0, cleared.err
    sources = [one["source"] for one in hooked.events("session.started")]
    assert {"resume", "fork", "clear"} <= set(sources), sources
    resumed, forked, after_clear = model.log.main[-3:]
    assert all(BANNER not in one.text for one in (resumed, forked, after_clear))
    assert RELAY.strip() in after_clear.text  # its window was emptied, so it is told again


def test_a_compacted_session_is_told_again_what_must_not_be_lost(hooked, model):
    """Rules, the last request and the open loops follow the summary, without banner or relay."""
    manifest = hooked.project / "rekindle.yaml"
    manifest.write_text(
        manifest.read_text().replace("    prompt:", "    rules: RULES.md\n    prompt:")
    )
    (hooked.project / "RULES.md").write_text("Never touch main.\n")
    model.play(bash("true"), too_long(), Text("all done"))
    model.play(Text("<summary>the gist</summary>"), to=COMPACTION)
    assert hooked.by_hand("count the stars").wait() == 0
    assert model.log.side[-1].kind == COMPACTION
    after = model.log.main[-1]
    assert "the gist" in after.text
    for part in ("Never touch main.", "Last request:\ncount the stars", "rate-limit: How many"):
        assert after.text.count(part) == 1, part
    assert BANNER not in after.text


def test_a_relay_that_is_too_long_for_a_hook_is_shortened_by_us(hooked, model):
    """The CLI would silently hide more than 10,000 characters in a file."""
    wide = "x" * 90
    decisions = "".join(f"- decision {number}: {wide}\n" for number in range(60))
    steps = "".join(f"- step {number}: 𝄞{wide}\n" for number in range(120))
    relay = f"## Key Decisions Made\n{decisions}\n## Next Action\nDo this.\n{steps}"
    (hooked.project / "relay.md").write_text(relay)
    hooked("relay", "set", "relay.md")
    model.play(Text("all done"))
    assert hooked.by_hand("hello").wait() == 0
    (request,) = model.log.main
    (given,) = [part for part in request.injected if "Do this." in part]
    assert "step 0:" in given
    assert "consensus.md" in given  # the place of the rest
    assert "saved to" not in given
    (fact,) = hooked.events("primer.given")
    assert 2_000 < fact["characters"] <= 10_000


def test_a_person_s_own_session_beside_a_supervised_one_is_left_alone(hooked, model):
    """It is logged as a visitor, not primed, not a sign of life, and never recovered."""
    waits = Hang(Text("all done"))
    model.play(waits, Text("hello person"))
    running = hooked.start("run")
    model.log.wait_for(lambda request: request.step is waits, timeout=120)
    visit = hooked.by_hand("what is this?")
    assert visit.wait() == 0
    request = model.log.main[1]
    assert "Write the parser's tests" not in request.text
    waits.release.set()
    assert running.wait() == 0, running.err
    by_session = {one["session"]: one for one in hooked.events("session.started")}
    assert by_session[session_of(visit)]["visitor"] is True
    (own,) = {one["session"] for one in hooked.events("launch.started")}
    assert "visitor" not in by_session[own]
    asked = {one["text"]: one.get("visitor", False) for one in hooked.events("prompt.submitted")}
    assert asked["what is this?"] is True


def test_the_checkpoint_of_a_compacted_session_is_for_that_session_alone(hooked, model):
    """That session is told the checkpoint, and the next one is not."""
    model.play(bash("touch made"), too_long(), Text("it is all done and pushed"), Text("hi"))
    model.play(Text("<summary>the gist</summary>"), to=COMPACTION)
    assert hooked.by_hand("count the stars").wait() == 0
    assert "Before it was compacted:" in model.log.main[-1].text
    (made,) = hooked.events("checkpoint.committed")
    assert made["session"] == hooked.events("session.compacted")[0]["session"]
    assert hooked.by_hand("quite another thing").wait() == 0
    last = model.log.main[-1].text
    assert "quite another thing" in last
    assert RELAY.strip() in last
    assert "The work below was begun" not in last
    assert "stars" not in last


DOMAINS = ("accounts", "desk", "fleet", "lab", "orders", "press", "trades")


def test_seven_sessions_in_seven_folders_are_each_told_their_own_relay(unbriefed, model):
    """Each session in the folder of an agent gets that agent's relay.

    There is one manifest, and Claude Code is started by hand in each folder. The user's hooks name
    no agent: they choose it by the folder of the session. Three folders also have hooks that name
    their agent; in the other four the folder alone decides. Each event is recorded once.
    """
    project = unbriefed.project
    entries = "".join(f"  {name}: {{harness: claude-code, dir: {name}}}\n" for name in DOMAINS)
    (project / "rekindle.yaml").write_text(f"version: 1\nagents:\n{entries}")
    markers = {name: f"marker-{number}-of-{name}" for number, name in enumerate(DOMAINS)}
    for name, marker in markers.items():
        (project / name).mkdir()
        (project / "relay.md").write_text(f"## Next Action\nTend to {marker}\n")
        unbriefed("relay", "set", "relay.md", "--agent", name)
    unbriefed("hooks", "install", "--all")
    unbriefed("hooks", "install", "--for", "user")
    for name in DOMAINS[3:]:
        (project / name / ".claude/settings.local.json").unlink()
    model.play(*(Text("all done") for _ in DOMAINS))
    for name in DOMAINS:
        assert unbriefed.by_hand("hello", folder=name).wait() == 0
    primed = [
        {name: n for name, marker in markers.items() if (n := request.text.count(marker))}
        for request in model.log.main
    ]
    assert primed == [{name: 1} for name in DOMAINS]
    for name in DOMAINS:
        unbriefed("loops", "add", "seen", "It takes the hooks' reports over", "--agent", name)
    for kind in ("session.started", "prompt.submitted", "session.ended"):
        recorded = [one["agent"] for one in unbriefed.events(kind)]
        assert sorted(recorded) == list(DOMAINS), kind
