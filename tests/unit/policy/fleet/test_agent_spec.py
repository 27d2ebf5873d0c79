"""Definitions from a program: what hosts get, and which field is wrong."""

import msgspec
import pytest

from rekindle.documents import manifest
from rekindle.documents.manifest import Permissions
from rekindle.documents.manifest_keys import Budget
from rekindle.errors import DefinitionError
from rekindle.policy.fleet.agent_registry import hash_definition
from rekindle.policy.fleet.agent_spec import (
    AgentSettings,
    make_definition,
    require_same_owner,
)
from rekindle.policy.settings.runtime_settings import FleetSettings

pytestmark = pytest.mark.pure
FLEET = FleetSettings(team="blue", pool="gpu")
BAD_BRANCHES = (
    *("-x", "a b", "a..b", "/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a.lock/b", "a.", "a@{1}"),
    *("a~1", "a^", "a:b", "a?", "a*", "a[b", "a\\b", "a\x7f", "a\n", "HEAD"),
)
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


def spec(**fields) -> AgentSettings:
    return AgentSettings(
        **{"name": "scout", "harness": "codex", "task": "Build the form."} | fields
    )


def test_a_host_gets_the_settings_and_texts():
    made = make_definition(
        spec(
            repository="https://ann:token@example.org/shop.git",
            branch="main",
            folder="web/",
            model="gpt-5",
            permissions=Permissions(deny=["Bash"]),
            system_prompt="Be brief.",
            rules="No mocks.",
            until=["make", "test"],
            budget=Budget(usd=5),
            env={"TOKEN": "$TOKEN"},
            sandbox=True,
            settings={"convergence": False},
            manifest={"runtime": {"restart": {"max_crashes": 2}}, "notify": ["ntfys://$TOPIC"]},
        ),
        FLEET,
    )
    parsed = manifest.parse(made.manifest)
    entry, persona = parsed.agents["scout"], parsed.personas[parsed.agents["scout"].persona]
    assert (entry.harness, entry.until, entry.convergence) == ("codex", ["make", "test"], False)
    assert (entry.env, entry.sandbox, entry.budget.usd) == ({"TOKEN": "$TOKEN"}, True, 5)
    assert (persona.model, persona.permissions.deny) == ("gpt-5", ["Bash"])
    assert made.files[entry.prompt] == "Build the form."
    assert made.files[entry.rules] == "No mocks."
    assert made.files[persona.system_prompt_file] == "Be brief."
    assert (made.remote, made.branch, made.within) == (
        "https://example.org/shop.git",
        "main",
        "web",
    )
    assert (made.team, made.pool, made.notifies) == ("blue", "gpu", True)
    assert (made.limits.budget.usd, made.limits.runtime.restart.max_crashes) == (5, 2)


def test_equal_specs_have_equal_definitions():
    one, two = (make_definition(spec(env={"A": "1"}), FLEET) for _ in range(2))
    assert hash_definition(one) == hash_definition(two)
    other = make_definition(spec(env={"A": "2"}), FLEET)
    assert hash_definition(other) != hash_definition(one)


def test_an_own_team_and_pool_replace_those_of_the_connection():
    made = make_definition(spec(team="", pool="cpu"), FLEET)
    assert (made.team, made.pool) == ("", "cpu")


def test_a_secret_in_a_task_is_removed():
    assert SECRET not in make_definition(spec(task=f"Use {SECRET} there."), FLEET).files["task.md"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": "A b"}, "name"),
        ({"pool": ""}, "pool"),
        ({"team": "A b"}, "team"),
        ({"task": " "}, "task"),
        ({"task": "x" * 300_000}, "task"),
        ({"rules": "x" * 300_000}, "rules"),
        ({"system_prompt": "x" * 300_000}, "system_prompt"),
        ({"env": {"A": "x y " * 80_000}}, "env"),
        ({"command": ["x"] * 300_000}, "command"),
        ({"until": "pytest -q"}, "until"),
        ({"command": "python3 x.py"}, "command"),
        ({"command": b"true"}, "command"),
        ({"until": {"make", "test"}}, "until"),
        ({"command": ["a", 3]}, "command"),
        ({"until": ["a", None]}, "until"),
        ({"env": {"A": 3}}, "env.A"),
        ({"budget": Budget(tokens=-5)}, "budget.tokens"),
        ({"sandbox": "onn"}, "sandbox"),
        ({"name": 5}, "name"),
        ({"harness": None}, "harness"),
        ({"task": None}, "task"),
        ({"task": b"Build it."}, "task"),
        ({"task": "\ud800"}, "task"),
        ({"env": {"A": "\ud800"}}, "settings"),
        ({"team": 5}, "team"),
        ({"settings": ["handover"]}, "settings"),
        ({"manifest": {"personas": ["a"]}, "model": "gpt-5"}, "manifest.personas"),
        ({"harness": "command"}, "command"),
        ({"folder": "../other", "repository": "r"}, "folder"),
        ({"branch": "main"}, "branch"),
        ({"repository": "not a url"}, "repository"),
        ({"repository": "shop"}, "repository"),
        ({"repository": "--upload-pack=x"}, "repository"),
        ({"repository": "-x:shop.git"}, "repository"),
        ({"repository": "ssh://-x/shop.git"}, "repository"),
        ({"repository": "https://"}, "repository"),
        ({"repository": "https://example.org/a b"}, "repository"),
        ({"repository": "s3://bucket/shop"}, "repository"),
        ({"repository": "ext::sh -c true"}, "repository"),
        ({"repository": "/srv/shop\n.git"}, "repository"),
        *(
            ({"repository": "https://example.org/shop.git", "branch": branch}, "branch")
            for branch in BAD_BRANCHES
        ),
        ({"budget": Budget(usd=-1)}, "budget.usd"),
        ({"permissions": Permissions(deny="x")}, "permissions.deny"),
        ({"model": "a b"}, "model"),
        ({"env": {"TOKEN": SECRET}}, "env.TOKEN"),
        ({"sandbox": "maybe"}, "sandbox"),
        ({"settings": {"cycles": 3}}, "settings.cycles"),
        ({"settings": {"nothing": 3}}, "settings.nothing"),
        ({"settings": {"handover": object()}}, "settings"),
        ({"manifest": {"agents": {}}}, "manifest.agents"),
        ({"manifest": {"notify": ["ntfys://topic"]}}, "manifest.notify"),
        ({"manifest": {"personas": {"a": {"system_prompt_file": "x"}}}}, "manifest.personas.a"),
        (
            {"manifest": {"runtime": {"restart": {"max_crashes": "x"}}}},
            "manifest.runtime.restart.max_crashes",
        ),
    ],
)
def test_an_error_names_the_field(fields, field):
    with pytest.raises(DefinitionError) as refused:
        make_definition(spec(**fields), FLEET)
    assert refused.value.field == field
    assert refused.value.hint
    assert "quotes" not in refused.value.hint
    assert "config explain" not in refused.value.hint
    assert "agents.agent" not in refused.value.reason


@pytest.mark.parametrize(
    "repository",
    [
        "https://ann:token@example.org:8443/shop.git",
        "http://example.org/shop",
        "ssh://git@example.org:22/~ann/shop.git",
        "git://[::1]/shop.git",
        "file:///srv/my shop.git",
        "/srv/my shop.git",
        "git@example.org:ann/shop.git",
        "example.org:shop.git",
        "git@[::1]:shop.git",
    ],
)
def test_each_kind_of_git_remote_is_accepted(repository):
    assert make_definition(spec(repository=repository), FLEET).remote


@pytest.mark.parametrize("branch", ["main", "release/2.x", "a-b", "@a", "über", "a.locked", "x{y}"])
def test_each_valid_branch_is_accepted(branch):
    repository = "https://example.org/shop.git"
    assert make_definition(spec(repository=repository, branch=branch), FLEET).branch == branch


def test_only_settings_of_an_agent_define_one():
    with pytest.raises(DefinitionError, match="not a dict") as refused:
        make_definition({"name": "scout"}, FLEET)
    assert "AgentSettings" in refused.value.hint


def test_an_agent_keeps_its_remote_and_its_folder():
    pushed = make_definition(spec(repository="https://example.org/shop.git"), FLEET)
    local = make_definition(spec(), FLEET)
    other = make_definition(spec(repository="https://example.org/shop.git", task="Less."), FLEET)
    require_same_owner("scout", pushed, other)
    for before, after in ((pushed, local), (local, pushed)):
        with pytest.raises(DefinitionError) as refused:
            require_same_owner("scout", before, after)
        assert refused.value.field == "repository"
        assert "replace=True" in refused.value.hint
    with pytest.raises(DefinitionError, match="folder shop") as refused:
        require_same_owner("scout", msgspec.structs.replace(pushed, project="shop"), pushed)
    assert (refused.value.field, "replace=True" in refused.value.hint) == ("name", True)
