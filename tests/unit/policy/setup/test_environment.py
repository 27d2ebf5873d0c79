"""Which of our environment variables an agent gets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.harnesses.claude_code import claude_harness
from rekindle.policy.setup import environment

FOR_CLAUDE = (claude_harness.PASSED_PREFIXES, claude_harness.BLOCKED_VARIABLES)


def test_common_variables_are_passed_on():
    """They tell where programs are, the user, the language and the network."""
    ours = {
        "PATH": "/bin",
        "HOME": "/nowhere",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "XDG_RUNTIME_DIR": "/run/user/1",
        "https_proxy": "http://proxy",
        "SSH_AUTH_SOCK": "/run/agent",
    }
    assert environment.select_variables(ours, (), ()) == ours


def test_keys_of_other_programs_stay_here():
    """Nothing that is not named is passed on, however harmless it looks."""
    ours = {
        "GITHUB_TOKEN": "t",
        "DATABASE_URL": "d",
        "OTHER_API_KEY": "k",
        "PATHS": "p",
        "MY_HOME": "h",
        "LD_PRELOAD": "evil.so",
        "PYTHONPATH": "/elsewhere",
        "path": "lower",
    }
    assert environment.select_variables(ours, *FOR_CLAUDE) == {}


def test_the_harness_s_own_are_passed_on_except_a_session_s_marks():
    """Its configuration is passed on; the marks of an outer session are not."""
    wanted = {f"{prefix}X": "1" for prefix in claude_harness.PASSED_PREFIXES}
    marks = dict.fromkeys(claude_harness.BLOCKED_VARIABLES, "1")
    assert environment.select_variables(wanted | marks, *FOR_CLAUDE) == wanted


def test_our_own_marks_never_pass_by_themselves():
    """A launch inside a launch gets its own mark and folder, not those around it."""
    ours = {"REKINDLE_LAUNCH": "l", "REKINDLE_FOLDER": "f", "REKINDLE_AGENT": "a"}
    assert environment.select_variables(ours, *FOR_CLAUDE) == {}


@given(
    st.dictionaries(st.text(max_size=20), st.text(max_size=5)),
    st.lists(st.text(min_size=1, max_size=5)),
    st.lists(st.text(max_size=20)),
)
def test_what_is_never_passed_on_never_is(ours, prefixes, never):
    """The refusal outranks every reason to pass a variable on, and no value changes."""
    found = environment.select_variables(ours, prefixes, [*never, "PATH"])
    assert not set(found) & {*never, "PATH"}
    assert found.items() <= ours.items()


def test_nothing_that_could_be_a_secret_is_written_down():
    """The name decides, in any case; the address of a proxy may contain a password."""
    secrets = {
        "ANTHROPIC_API_KEY": "k",
        "CLAUDE_CODE_OAUTH_TOKEN": "t",
        "AWS_SECRET_ACCESS_KEY": "s",
        "aws_session_token": "t",
        "XDG_PASSWORD": "p",
        "GOOGLE_APPLICATION_CREDENTIALS": "c",
        "ANTHROPIC_AUTH": "a",
        "XDG_COOKIE": "c",
        "https_proxy": "http://me:word@proxy",
        "ALL_PROXY": "socks://me:word@proxy",
    }
    plain = {"PATH": "/bin", "HOME": "/nowhere", "LC_ALL": "C.UTF-8", "SSH_AUTH_SOCK": "/run/agent"}
    assert environment.drop_secret_variables(secrets | plain) == plain


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=5)))
def test_what_is_kept_is_what_was_there(found):
    """No value changes, and doing it twice changes nothing."""
    kept = environment.drop_secret_variables(found)
    assert kept.items() <= found.items()
    assert environment.drop_secret_variables(kept) == kept


def test_a_variable_is_withheld_if_it_is_neither_passed_nor_expected_nor_our_own():
    ours = {"GIVEN": "1", "PATH": "/bin", "REKINDLE_AGENT": "a", "DATABASE_URL": "d"}
    assert environment.list_withheld(ours, {"GIVEN"}) == {"DATABASE_URL": "d"}


@pytest.mark.parametrize(
    "name",
    [
        *("CODEX_ACCESS_TOKEN", "OPENAI_IDENTITY_TOKEN_FILE", "OPENAI_API_KEY"),
        *("CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR", "CLAUDE_CODE_OAUTH_REFRESH_TOKEN"),
        *("ANTHROPIC_AWS_API_KEY", "ANTHROPIC_AUTH_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"),
        *("GOOGLE_CLOUD_ACCESS_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "SWITCH"),
    ],
)
def test_a_login_of_another_account_is_dropped(name):
    """Any name of a credential counts, and the switches of the CLI."""
    assert not environment.drop_login_variables({name: "x"}, ("SWITCH",))


def test_variables_that_are_not_a_login_stay():
    """Among them are proxies, limits in tokens, the SSH agent and the keys of MCP servers."""
    kept = dict.fromkeys(
        ["HTTPS_PROXY", "MAX_THINKING_TOKENS", "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "SSH_AUTH_SOCK"],
        "x",
    )
    kept |= dict.fromkeys(["MCP_GITHUB_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL"], "x")
    assert environment.drop_login_variables(kept, ()) == kept


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("$HOME", "HOME"),
        ("$_a1", "_a1"),
        ("$HOME/x", ""),
        ("${HOME}", ""),
        ("$1", ""),
        ("$A\n", ""),
    ],
)
def test_only_a_whole_value_names_a_variable(value, name):
    """Everything else is passed on as it is."""
    assert environment.find_reference(value) == name


@pytest.mark.parametrize(
    "name", ["SSH_AUTH_SOCK", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_SSH_COMMAND", "GIT_CONFIG_VALUE_0"]
)
def test_the_credentials_of_git_are_dropped(name):
    assert environment.drop_git_variables({name: "x", "GIT_EDITOR": "vi"}) == {"GIT_EDITOR": "vi"}
    assert environment.is_credential(name)
    assert not environment.is_credential("GIT_EDITOR")
