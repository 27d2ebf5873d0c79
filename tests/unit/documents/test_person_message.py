"""A person's message, as the agent reads it."""

import json
from datetime import UTC, datetime

from rekindle.documents import events
from rekindle.documents.person_message import render_message, render_sign

SENT = events.MessageSent(
    ts=datetime(2026, 11, 18, 6, 50, tzinfo=UTC), message="7f3a9c21", text="Use “blue”.\nNot red.\n"
)


def test_the_agent_reads_who_wrote_what_and_when():
    first, *text, last = render_message(SENT).splitlines()
    assert first == "[Rekindle: message 7f3a9c21 from a person, 2026-11-18 06:50 UTC]"
    assert text == ["Use “blue”.", "Not red."]
    assert last.startswith("[end of the message")


def test_a_transcript_shows_the_sign_and_the_log_does_not():
    sign = render_sign(SENT.message)
    assert render_message(SENT).startswith(sign)
    assert sign in json.dumps({"text": render_message(SENT)})
    assert sign not in events.render(SENT).decode()
