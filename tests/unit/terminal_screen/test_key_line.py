"""The last line shows the first keys that fit, and always how to see the others."""

from rekindle.terminal_screen.key_line import render_keys

KEYS = [("a", "answer"), ("s", "stop"), ("esc", "back"), ("?", "keys"), ("q", "quit")]


def test_all_keys_are_shown_if_they_fit():
    assert render_keys(KEYS, 80).plain == "a answer  s stop  esc back  ? keys  q quit  "


def test_a_narrow_line_keeps_the_keys_to_go_back_and_for_help():
    assert render_keys(KEYS, 30).plain == "a answer  esc back  ? keys  "
    assert render_keys(KEYS, 5).plain == "esc back  ? keys  "
