"""What Rekindle would have done in a recorded history."""

import pytest

from rekindle.policy.stall.replayed_cycles import RelayRevision, replay_cycles


def actions(texts, changed=None):
    revisions = [RelayRevision(f"## Next Action\n{text}\n", changed, "notes.md") for text in texts]
    return [cycle.action for cycle in replay_cycles(revisions)]


SAME = ["Port the parser"] * 5


@pytest.mark.parametrize(
    ("texts", "changed", "expected"),
    [
        (SAME, (), ["notice", "pause", "notice", "pause"]),
        (SAME, None, ["none", "notice", "pause", "none"]),
        (SAME, ("src/a.py",), ["none", "notice", "none", "none"]),
        (SAME, ("notes.md",), ["notice", "pause", "notice", "pause"]),
        (SAME, ("journal.md",), ["none", "notice", "notice", "pause"]),
        (["Waiting for Ann to sign"] * 2, (), ["pause"]),
        (["Waiting for Ann to sign\n- write the manual"] * 2, ("a.py",), ["notice"]),
        (["Write it", "DONE"], ("a.py",), ["finish"]),
        (["Write A", "Test B"], (), ["none"]),
        (
            ["Port the parser", "Write the notes"] * 3,
            (),
            ["none", "notice", "pause", "notice", "pause"],
        ),
        (["Continue writing the novel"] * 6, ("book.md",), ["none", "notice", *["none"] * 3]),
        (["Waiting for Ann's key. Meanwhile write tests"] * 2, ("a.py",), ["notice"]),
        (
            [f"Add the {word} approval endpoint" for word in ("admin", "owner", "user", "client")],
            ("src/a.py",),
            ["none"] * 3,
        ),
        (["Continue, 20 of 900 done", "Continue, 40 of 900 done"], (), ["none"]),
    ],
)
def test_the_reaction_depends_on_the_relays_and_on_the_work(texts, changed, expected):
    assert actions(texts, changed) == expected


def test_work_is_unknown_without_a_list_of_changed_files():
    texts = [RelayRevision("## Next Action\nPort it\n")] * 2
    assert [cycle.work for cycle in replay_cycles(texts)] == [None]
