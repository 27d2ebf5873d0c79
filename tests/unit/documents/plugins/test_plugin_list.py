"""Lists of plugins and hooks, as the CLIs print them."""

import json

import pytest

from rekindle.documents.plugins import plugin_list
from rekindle.documents.plugins.plugin_list import InstalledPlugin, ListedHook

CLAUDE = {"id": "rekindle@rekindle", "version": "0.1.0", "enabled": True}
CODEX = {"pluginId": "rekindle@rekindle", "version": "0.1.0", "enabled": False}
OTHER = {"id": "rekindle@elsewhere", "version": "9"}


@pytest.mark.parametrize(
    ("listed", "plugin"),
    [
        ([OTHER, CLAUDE], InstalledPlugin("0.1.0")),
        ([{**CLAUDE, "folderVersion": "0.2.0"}], InstalledPlugin("0.2.0")),
        ([{**CLAUDE, "errors": ["cache-miss"]}], InstalledPlugin("")),
        ({"installed": [CODEX], "available": []}, InstalledPlugin("0.1.0", is_enabled=False)),
        ({"installed": [], "available": [CLAUDE]}, None),
        ([OTHER, None, "rekindle"], None),
        ("rekindle", None),
    ],
)
def test_the_plugin_is_found_between_warnings(listed, plugin):
    text = f"Warning: [no colours]\n{json.dumps(listed, indent=2)}\nDone.\n"
    assert plugin_list.find_plugin(text) == plugin


@pytest.mark.parametrize("text", ["", "[", "{'a'}\n[1", "[" * 100_000])
def test_a_damaged_list_has_no_plugin(text):
    assert plugin_list.find_plugin(text) is None


def test_gemini_s_files_name_the_folder_and_the_version():
    assert plugin_list.read_source('{"source": "/a", "type": "link"}') == "/a"
    assert plugin_list.read_source('{"source": "https://a", "type": "git"}') == ""
    assert plugin_list.read_source("[]") == ""
    assert plugin_list.read_version('{"name": "rekindle", "version": "0.1.0"}') == "0.1.0"
    assert plugin_list.read_version("") == ""


def test_only_the_plugin_s_own_hooks_are_returned():
    """Hooks of other plugins keep their trust."""
    own = {
        "key": "rekindle@rekindle:hooks/hooks.json:stop:0:0",
        "command": "sh shim",
        "currentHash": "sha256:1/sha256:2",
        "pluginId": "rekindle@rekindle",
    }
    trusted = {**own, "key": "other", "trustStatus": "trusted"}
    foreign = {**own, "pluginId": "other@other"}
    answer = {"data": [{"hooks": [foreign, own, None]}, {"hooks": [own, trusted]}, {}]}
    assert plugin_list.find_hooks(answer) == [
        ListedHook(own["key"], "sh shim", own["currentHash"], is_trusted=False),
        ListedHook("other", "sh shim", own["currentHash"], is_trusted=True),
    ]
    assert plugin_list.find_hooks({"data": None}) == plugin_list.find_hooks([]) == []


def test_each_command_is_listed_once():
    handlers = [{"command": "a"}, {"command": "b"}]
    hooks = {"hooks": {"Stop": [{"hooks": handlers}], "Start": [{"hooks": handlers[:1]}]}}
    assert plugin_list.list_commands(json.dumps(hooks)) == ["a", "b"]
