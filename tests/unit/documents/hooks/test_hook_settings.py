"""Our hooks in foreign settings: added, found again, removed, without moving a byte of theirs."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents.hooks import hook_settings
from rekindle.errors import DocumentError
from rekindle.formats import json_edit
from rekindle.harnesses.claude_code import claude_harness

HOOKS = claude_harness.hooks(
    ["/opt/it's here/bin/python", "-I", "-S", "/p/.rekindle/hook.pyc"],
    supervised=False,
    folder="/p/.rekindle/agents/trades",
)
OLDER = claude_harness.hooks(["/old/python3", "/old/rekindle/hook.pyc"], supervised=True)
FOREIGN = {"type": "command", "command": "notify-send 'hook.pyc'", "timeout": 5}
STYLES = {
    "two": {"indent": 2},
    "four": {"indent": 4},
    "tab": {"indent": "\t"},
    "line": {},
    "compact": {"separators": (",", ":")},
}

names = st.text(max_size=6) | st.sampled_from(["env", "permissions", "größe", "a\nb"])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
foreign_entries = st.lists(
    st.fixed_dictionaries(
        {"hooks": st.lists(st.just(FOREIGN), max_size=2)}, optional={"matcher": st.text(max_size=4)}
    ),
    max_size=3,
)
foreign_hooks = st.dictionaries(
    st.sampled_from(["SessionStart", "PostToolUse", "Stop", "Notification"]), foreign_entries
)


@st.composite
def settings(draw):
    """Settings as people and programs write them: any keys, some hooks, any layout."""
    value = draw(st.dictionaries(names.filter(lambda name: name != "hooks"), values, max_size=4))
    if draw(st.booleans()):
        members = list(value.items())
        members.insert(draw(st.integers(0, len(members))), ("hooks", draw(foreign_hooks)))
        value = dict(members)
    style = STYLES[draw(st.sampled_from(sorted(STYLES)))]
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), **style)
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return draw(st.sampled_from(["", "\ufeff"])) + text + draw(st.sampled_from(["", "\n", " \n\n"]))


def added(text, hooks=HOOKS):
    return hook_settings.add_hooks(text, hooks, "settings.json")


def removed(text, before=""):
    return hook_settings.remove_hooks(text, "settings.json", before)


def decoded(text):
    return json.loads(text.removeprefix("\ufeff"))


@given(settings())
def test_what_is_put_in_can_be_taken_out_byte_for_byte(text):
    """Adding and removing gives the same text, for any content and layout."""
    assert removed(added(text), text) == text


@given(settings())
def test_everything_else_keeps_its_value_and_place(text):
    """Keys stay in their order, and foreign hooks come first, in theirs."""
    before, after = decoded(text), decoded(added(text))
    assert [key for key in after if key != "hooks"] == [key for key in before if key != "hooks"]
    assert {**after, "hooks": 0} == {**before, "hooks": 0}
    for event, entries in before.get("hooks", {}).items():
        assert after["hooks"][event][: len(entries)] == entries
    events = list(before.get("hooks", {}))
    assert list(after["hooks"])[: len(events)] == events
    assert list(after)[: len(before)] == list(before)


@given(settings())
def test_ours_are_found_again(text):
    """Each of ours is found once, and no foreign hook is."""
    assert hook_settings.find_installed(text, "settings.json") == []
    found = hook_settings.find_installed(added(text), "settings.json")
    wanted = hook_settings.list_wanted(HOOKS)
    assert sorted(map(str, wanted)) == sorted(
        str((one.event, one.matcher, one.hook)) for one in found
    )
    assert {one.command.folder for one in found} == {"/p/.rekindle/agents/trades"}


@given(settings())
def test_an_older_install_is_replaced(text):
    """Whatever path and events it had, nothing of it is left."""
    older = added(text, OLDER)
    assert added(removed(older, text)) == added(text)


@given(settings())
def test_the_layout_is_the_file_s_own(text):
    """A file of one line stays one; an indented one is indented in the same steps."""
    body = text.removeprefix("\ufeff").strip()
    after = added(text).removeprefix("\ufeff").strip()
    if body != "{}" and "\n" not in body:
        assert "\n" not in after
    for indent in (2, 4, "\t"):
        if body != "{}" and body == json.dumps(json.loads(body), indent=indent, ensure_ascii=False):
            again = json.dumps(json.loads(after), indent=indent, ensure_ascii=False)
            assert after == again


@pytest.mark.parametrize(
    "text",
    [
        '{\n  "a": [1.0, 1e400, 12345678901234567890],\n  "b": "\\u00e9é\\ud800"\n}\n',
        '{"hooks": {}, "z":1 , "a":[ ]}',
        '{\n  "hooks": {\n    "PostToolUse": []\n  }\n}',
        '{ "hooks" : { "Stop" : [ ] } }',
        '{\n    "hooks": {"SessionEnd": [{"hooks": []}]}\n}\n',
    ],
)
def test_unusual_files_come_back_as_they_were(text):
    """Numbers that no float holds, escapes, odd spaces, and empty places that were there."""
    assert removed(added(text), text) == text


@pytest.mark.parametrize("text", ["", "\n", "{}", "{}\n"])
def test_an_empty_file_becomes_one_that_reads_well(text):
    """Two spaces a step, as the CLI itself writes it."""
    assert added(text).rstrip("\n") == json.dumps({"hooks": HOOKS}, indent=2)


def test_a_hook_that_was_put_beside_ours_stays():
    """A foreign hook in the same entry survives the removal of ours."""
    value = decoded(added("{}"))
    value["hooks"]["SessionEnd"][0]["hooks"].insert(0, FOREIGN)
    after = decoded(removed(json.dumps(value, indent=2)))
    assert after == {"hooks": {"SessionEnd": [{"hooks": [FOREIGN]}]}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n  "a": 1,\n  "b": 2,\n  "a": 3\n}', "line 4 has the key 'a' twice"),
        ('{"x": {"y": {"k": 1, "k": 1}}}', "the key 'k' twice"),
        ('{\n  "a": 1,\n  b\n}', "line 3"),
        ('{\n  // mine\n  "a": 1}', "line 2"),
        ("[]", "line 1: it should be an object"),
        ("null", "it should be an object"),
        ('{"a": 1,\n "hooks": []}', "line 2: hooks should be an object"),
        ('{"hooks": {"PostToolUse": {}}}', "hooks.PostToolUse should be an array"),
        ('{"a": NaN}', "NaN"),
        ("[" * 100_000, "not valid JSON"),
        ('{"a": ' + "[" * 50_000 + "]" * 50_000 + "}", "not valid JSON"),
    ],
)
def test_what_cannot_be_merged_is_refused_by_place(text, said):
    """Nothing is guessed: the key, or the line, is named."""
    with pytest.raises(DocumentError) as refused:
        added(text)
    assert said in str(refused.value)
    assert refused.value.hint


COMMENTED = """\
// What I like, and why: a, b, "c"
{
  /* "hooks": {} */
  "theme": "dark", // not light, ever
  "url": "http://here//", "list": [1, 2,],
  // about the hooks
  "hooks": {
    "SessionEnd": [
      // mine
      {"hooks": [{"type": "command", "command": "notify // bye"},]}, // and no more
    ], /* , */
  }, // all of them
} // the end
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "text",
    [
        COMMENTED,
        COMMENTED.replace('"hooks": {', '"others": {'),
        '{\n  "a": 1 // last\n}\n',
        '{\n  "a": 1, // last\n}\n',
        "{\n  // nothing yet\n}\n",
        "{ // nothing yet\n}\n",
        "// nothing\n{}\n",
        '{"hooks": {/* none */}, "a": [/*1,*/]}',
    ],
)
def test_settings_with_comments_keep_them(text, newline):
    """In a CLI that reads comments, hooks are added, found and removed without moving a byte."""
    text = text.replace("\n", newline)
    after = hook_settings.add_hooks(text, HOOKS, "settings.json", comments=True)
    found = hook_settings.find_installed(after, "settings.json", comments=True)
    assert len(found) == len(hook_settings.list_wanted(HOOKS))
    rest = iter(after)
    assert all(letter in rest for letter in text)  # nothing of it is gone
    assert json_edit.blank_comments(after).count("notify // bye") == text.count("notify // bye")
    assert hook_settings.remove_hooks(after, "settings.json", text, comments=True) == text
    older = hook_settings.add_hooks(text, OLDER, "settings.json", comments=True)
    without = hook_settings.remove_hooks(older, "settings.json", text, comments=True)
    assert hook_settings.add_hooks(without, HOOKS, "settings.json", comments=True) == after
    with pytest.raises(DocumentError, match="is not valid JSON"):
        added(text)


@given(settings())
def test_a_text_without_comments_is_read_as_before(text):
    """Whatever its strings hold."""
    assert json_edit.blank_comments(text) == text
    assert hook_settings.add_hooks(text, HOOKS, "x", comments=True) == added(text)


def test_comments_that_were_written_beside_ours_stay():
    """A comment on our hooks belongs to the user and is not removed with them."""
    after = hook_settings.add_hooks('{\n  "a": 1\n}\n', HOOKS, "x", comments=True)
    noted = after.replace('"a": 1,', '"a": 1, // one').replace(
        '"SessionEnd"', '/* ! */ "SessionEnd"'
    )
    noted = noted.replace('"hooks": {', '// Rekindle\n  "hooks": {', 1)
    left = hook_settings.remove_hooks(noted, "x", comments=True)
    assert json.loads(json_edit.blank_comments(left)) == {"a": 1}
    assert "// one" in left
    assert "// Rekindle" in left
    assert not hook_settings.is_empty_file("{ // mine\n}", "x", comments=True)


@pytest.mark.parametrize("text", ['{"a": 1, // x', '{"a": /* 1}', '{"a": "// }', "{a: 1}", "{/}"])
def test_invalid_json_with_comments_is_refused(text):
    """It is refused, and nothing is guessed."""
    with pytest.raises(DocumentError, match="is not valid JSON"):
        hook_settings.find_installed(text, "settings.json", comments=True)


@pytest.mark.parametrize(
    "line",
    [
        "notify 'hook.pyc' claude-code",
        "python hook.pyc --verbose PostToolUse",
        "python /x/my-hook.pyc claude-code PostToolUse",
        "'unclosed hook.pyc claude-code PostToolUse",
        "python /x/hook.pyc claude-code A b c d",
        "",
        None,
        7,
    ],
)
def test_foreign_commands_are_not_ours(line):
    """Only hook.pyc with our own arguments is ours."""
    assert hook_settings.parse_hook_command(line) is None


def test_an_empty_list_without_our_hooks_stays():
    """Only a list that our hooks leave empty is removed."""
    text = '{"hooks": {"Stop": []}}'
    assert removed(text) == text


OWN = {"type": "command", "command": "python /p/hook.pyc claude-code Stop /p/a", "timeout": 10}
SMALL = {
    "Stop": [{"hooks": [OWN]}],
    "PostToolUse": [{"matcher": "*", "hooks": [OWN]}, {"matcher": "Edit", "hooks": [OWN]}],
}
ENTRY = {"hooks": [FOREIGN]}
EXAMPLES = [
    {},
    {"env": {"A": "1"}},
    {"hooks": {}},
    {"hooks": {}, "env": {"A": "1"}},
    {"env": {"A": "1"}, "hooks": {"Stop": [ENTRY]}},
    {"hooks": {"Stop": []}},
    {"hooks": {"Stop": [], "PostToolUse": []}},
    {"hooks": {"PostToolUse": [{"matcher": "Bash", **ENTRY}, ENTRY]}, "env": {}},
    {"hooks": {"Stop": [ENTRY], "PostToolUse": [ENTRY], "Notification": [ENTRY]}},
    {"hooks": {"Stop": [{"hooks": []}, {"matcher": "x"}]}},
]


@pytest.mark.parametrize("indent", [2, 4, "\t"])
@pytest.mark.parametrize("before", EXAMPLES, ids=json.dumps)
def test_hooks_are_written_as_the_file_is_indented(before, indent):
    """The result is the text that a program with the same indentation would write."""
    hooks = {name: list(entries) for name, entries in before.get("hooks", {}).items()}
    for event, entries in SMALL.items():
        hooks[event] = hooks.get(event, []) + entries
    after = {**before, "hooks": hooks}
    text = json.dumps(before, indent=indent) + "\n"
    found = added(text, SMALL)
    assert decoded(found) == after
    if before:
        assert found == json.dumps(after, indent=indent) + "\n"
    assert removed(found, text) == text
    assert removed(text, text) == text


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("before", EXAMPLES, ids=json.dumps)
def test_each_layout_is_restored(before, style):
    """Also without the earlier text, except for containers that were empty before."""
    text = json.dumps(before, **STYLES[style])
    found = added(text, SMALL)
    assert removed(found, text) == text
    if all(before.get("hooks", {"": [1]}).values()) and before.get("hooks") != {}:
        assert removed(found) == text


def test_a_foreign_hook_beside_ours_stays():
    """In the same entry, before and after ours."""
    text = json.dumps({"hooks": {"Stop": [{"hooks": [FOREIGN, OWN, FOREIGN, OWN]}, ENTRY]}})
    assert decoded(removed(text)) == {"hooks": {"Stop": [{"hooks": [FOREIGN, FOREIGN]}, ENTRY]}}
    text = json.dumps({"hooks": {"Stop": [{"hooks": [OWN]}, ENTRY], "A": [{"hooks": [OWN, OWN]}]}})
    assert decoded(removed(text)) == {"hooks": {"Stop": [ENTRY]}}
    text = json.dumps({"hooks": {"Stop": 7, "A": [{"hooks": [OWN]}]}, "b": 1})
    assert decoded(removed(text)) == {"hooks": {"Stop": 7}, "b": 1}
    text = json.dumps({"hooks": {"A": [{"hooks": [OWN]}]}, "b": 1})
    assert decoded(removed(text)) == {"b": 1}
    assert decoded(removed(text, '{"hooks": {}}')) == {"hooks": {}, "b": 1}
    assert decoded(removed(text, '{"hooks": {"A": []}}')) == {"hooks": {"A": []}, "b": 1}
    assert decoded(removed(text, '{"hooks": 7}')) == {"b": 1}


def test_where_our_hooks_are_found():
    """In the order of the file, each with its matcher; other values are ignored."""
    hooks = {
        "B": [{"matcher": "x", "hooks": [FOREIGN, OWN]}, {"matcher": 7, "hooks": [OWN, 7]}],
        "C": {"hooks": [OWN]},
        "A": [{"hooks": [OWN]}, {"hooks": OWN}, {"matcher": "y"}, 7],
    }
    found = hook_settings.find_installed(json.dumps({"hooks": hooks}), "settings.json")
    assert [(one.event, one.matcher, one.hook) for one in found] == [
        *(("B", "x", OWN), ("B", "", OWN), ("A", "", OWN)),
    ]
    assert hook_settings.find_installed("", "settings.json") == []
    assert hook_settings.find_installed("{}", "settings.json") == []


HASHED = "hook-" + "0123456789abcdef" * 2 + ".pyc"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("py hook.pyc codex Stop", ("py", "hook.pyc", "codex", "Stop", "")),
        ("py hook.pyc codex Stop /p/a", ("py", "hook.pyc", "codex", "Stop", "/p/a")),
        ("py hook.pyc codex Stop /p/a more", None),
        ("py -I -S /x/hook.pyc codex Stop", ("py", "/x/hook.pyc", "codex", "Stop", "")),
        ("py -I '/a b/hook.pyc' codex Stop d", ("py", "/a b/hook.pyc", "codex", "Stop", "d")),
        ("py hook.pyc codex Stop || true", ("py", "hook.pyc", "codex", "Stop", "")),
        ("py hook.pyc codex || Stop", None),
        (f"py /x/{HASHED} codex Stop", ("py", f"/x/{HASHED}", "codex", "Stop", "")),
        (f"py /x/{HASHED.replace('f', '')} codex Stop", None),
        ("hook.pyc codex Stop", None),
        ("py hook.pyc codex", None),
        ("py hook.pyc", None),
        ("py hook.py codex Stop", None),
    ],
)
def test_the_command_of_a_hook(line, expected):
    """The interpreter, the program, the harness, the event, and the folder if there is one."""
    command = hook_settings.HookCommand(*expected) if expected else None
    assert hook_settings.parse_hook_command(line) == command


@pytest.mark.parametrize(
    ("text", "comments", "expected"),
    [
        ("", False, True),
        (" \n", True, True),
        ("{}", False, True),
        ("{ }\n", True, True),
        ('{"a": 1}', False, False),
        ("{} // mine", True, False),
    ],
)
def test_when_a_file_is_empty(text, comments, expected):
    """A comment is content."""
    assert hook_settings.is_empty_file(text, "settings.json", comments=comments) is expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "line 1: it should be an object"),
        ('\n{"hooks": []}', "line 2: hooks should be an object"),
        ('{"hooks": {\n"Stop": {}}}', "line 2: hooks.Stop should be an array"),
    ],
)
def test_a_file_of_another_shape_is_refused(text, reason):
    """With the line, and before anything was changed."""
    with pytest.raises(DocumentError, match=reason) as refused:
        added(text, SMALL)
    assert refused.value.hint == "correct it and repeat the command; nothing was changed"


def test_the_wanted_hooks_are_listed_as_the_installed_ones():
    """An entry without a matcher has an empty one."""
    assert hook_settings.list_wanted(SMALL) == [
        *(("Stop", "", OWN), ("PostToolUse", "*", OWN), ("PostToolUse", "Edit", OWN)),
    ]


def test_a_number_that_is_too_long_for_python_is_kept_as_text():
    """Below 300 digits, it is a number."""
    for digits, kind in ((299, int), (300, str), (5_000, str)):
        hook = json.dumps(OWN)[:-1] + f', "n": {"1" * digits}}}'
        text = f'{{"hooks": {{"A": [{{"hooks": [{hook}]}}]}}}}'
        (found,) = hook_settings.find_installed(text, "settings.json")
        assert isinstance(found.hook["n"], kind)
