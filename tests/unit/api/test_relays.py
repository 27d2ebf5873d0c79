"""Edit relays from several programs."""

import threading

import pytest

import rekindle
from rekindle.errors import CheckFailedError

RELAY = """\
## What We Did This Cycle
Built the form.

## Next Action
Ship the form.
"""


@pytest.fixture
def scout(tmp_path):
    (tmp_path / "rekindle.yaml").write_text(
        'version: 1\nagents: {scout: {harness: command, command: ["true"], prompt: task.md}}\n'
    )
    (tmp_path / "task.md").write_text("Build the form.")
    with rekindle.connect(tmp_path) as home:
        agent = home.agent("scout")
        agent.relay.set(RELAY)
        yield agent


def test_of_several_edits_at_once_only_the_saved_one_succeeds(scout):
    started, saved, refused = threading.Barrier(4), [], []

    def edit(words):
        try:
            with scout.relay.edit() as draft:
                draft.next_action = words
                started.wait(120)
        except CheckFailedError:
            refused.append(words)
        else:
            saved.append(words)

    threads = [threading.Thread(target=edit, args=(f"Do step {each}.",)) for each in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert saved == [scout.relay.read().next_action]
    assert len(refused) == 3


def test_an_edit_continues_from_a_manual_edit(scout):
    path = scout.home.store.folder("scout").document("relay")
    path.write_text(path.read_text().replace("Built the form.", "Built two forms."))
    with scout.relay.edit() as draft:
        draft.next_action = "Test both."
    assert "Built two forms." in scout.relay.text()
    assert scout.relay.read().next_action == "Test both."
