"""Contract tests for hooks."""

import json
import subprocess
from typing import Any

import msgspec

from rekindle.documents.events import AnyEvent
from rekindle.documents.hooks.hook_settings import (
    HOOK_PROGRAM,
    HookCommand,
    list_wanted,
    parse_hook_command,
)
from rekindle.testing.contract_subject import (
    HOOK,
    ContractSubject,
    join_command,
)

_GONE = ("/nowhere/python", f"/nowhere/{HOOK_PROGRAM}")


class HookContract(ContractSubject):
    """Tests for a harness's hooks and their reports."""

    def test_hooks_are_ours_and_never_stand_in_the_way(self) -> None:
        """Each hook is recognized as ours, has a timeout, and succeeds without our program."""
        if not self.whole.CAN.hooks:
            return
        for supervised in (False, True):
            for folder in ("", "/a folder"):
                entries = self.whole.hooks(HOOK, supervised=supervised, folder=folder)
                for _, _, hook in list_wanted(json.loads(json.dumps(entries))):
                    command = parse_hook_command(hook["command"])
                    assert command is not None, hook
                    expected = HookCommand(
                        HOOK[0], HOOK[-1], self.whole.NAME, command.event, folder
                    )
                    assert command == expected
                    assert hook["timeout"] >= 1
        missing_hooks = list_wanted(self.whole.hooks(_GONE, supervised=True))
        lines = [f"({hook['command']}) || exit 1" for _, _, hook in missing_hooks]
        shell = ["/bin/sh", "-c", "\n".join(lines)]
        ended = subprocess.run(shell, capture_output=True, check=False)  # noqa: S603 - runs the command like the CLI does
        assert ended.returncode == 0, "a hook that fails must not block the CLI"

    def test_a_launch_has_its_hooks(self) -> None:
        """The command for a launch contains all hooks."""
        if not self.whole.CAN.launch_hooks:
            return
        for how in self.starts():
            launch_text = join_command(self.whole.command(self.start(**how)))
            for _, _, hook in list_wanted(self.whole.hooks(HOOK, supervised=True)):
                command = parse_hook_command(hook["command"])
                assert command is not None
                assert f" {self.whole.NAME} {command.event}" in launch_text

    def test_where_it_is_stopped_it_has_a_hook(self) -> None:
        """If a harness has a brake, each launch has a hook for the brake's event."""
        brake = self.whole.brake(interactive=False)
        if brake is None:
            return
        entries = list_wanted(self.whole.hooks(HOOK, supervised=True))
        words = [parse_hook_command(hook["command"]) for _, _, hook in entries]
        assert brake.event in {word.event for word in words if word}
        assert brake.signs
        assert brake.counts

    def test_a_session_can_be_told(self) -> None:
        """A hook can add text to the session, and the text arrives unchanged."""
        if not self.whole.CAN.hooks:
            return
        text = 'First line, "quoted"\n\\ second: é'
        entries = list_wanted(self.whole.hooks(HOOK, supervised=False))
        words = [parse_hook_command(hook["command"]) for _, _, hook in entries]
        hook_events = {word.event.partition(":")[0] for word in words if word}
        assert any(
            text in _list_texts(self.whole.render_hook_output(hook_event, text))
            for hook_event in hook_events
        )

    def test_a_hook_s_fact_keeps_what_ours_has_seen(self) -> None:
        """An event has its record's time, session and launch.

        A truncated event still has its session.
        """
        for line in (
            line for recording in self.kept() for line in recording.hook_lines(self.whole)
        ):
            context = {"launch": "4f1c", "process": "1 2 3", "visitor": True}
            event = self.whole.read_hook(msgspec.structs.replace(line, **context))
            cut = self.whole.read_hook(msgspec.structs.replace(line, cut=len(line.payload)))
            assert (event is None) is (cut is None)
            if event is None or cut is None:
                continue
            assert (type(event), _select_type(event, "session")) == (
                type(cut),
                _select_type(cut, "session"),
            )
            assert event.ts == line.ts
            own = {**context, "harness": self.whole.NAME}
            assert {name: _select_type(event, name, own[name]) for name in own} == own


def _list_texts(printed: str) -> list[str]:
    """Return the texts in a hook's output: the whole output, and the strings in its JSON."""
    texts = [printed]
    try:
        waiting = [json.loads(printed)]
    except ValueError:
        return texts
    while waiting:
        match waiting.pop():
            case dict() as fields:
                waiting += fields.values()
            case str() as text:
                texts.append(text)
    return texts


def _select_type(fact: AnyEvent, name: str, absent: Any = None) -> Any:
    return getattr(fact, name, absent)
