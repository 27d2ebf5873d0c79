"""An imported agent keeps its permissions, and changes those of no other agent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents import agent_export, manifest
from rekindle.documents.agent_export import ExportHeader
from rekindle.documents.manifest import Manifest, Persona
from rekindle.policy.keeping.imported_personas import add_agent, fit_settings
from rekindle.policy.settings.used_personas import find_agent_personas, find_all_personas

BASH = {"permissions": {"allowed_tools": ["Bash"]}}
READ = {"permissions": {"allowed_tools": ["Read"]}}
OTHER = "version: 1\nagents:\n  other: {harness: codex}\n"


def make_header(entry, personas, agent="trades"):
    return ExportHeader(
        agent=agent,
        harness="codex",
        exported="2026-11-18",
        folder="/a",
        entry={"harness": "codex", **entry},
        personas=personas,
    )


def fit(text, entry, **personas):
    """Import the agent into a manifest; return what it adds, and the manifest."""
    header = make_header(entry, personas)
    return fit_settings(text, header), manifest.parse(add_agent(text, header))


def test_an_agent_that_the_manifest_has_is_not_changed():
    text = OTHER.replace("other", "trades")
    header = make_header({}, {"default": BASH})
    assert fit_settings(text, header) is None
    assert add_agent(text, header) == text


def test_the_default_persona_gets_a_name_of_its_own():
    fitted, after = fit(OTHER, {}, default=BASH)
    assert fitted.renamed == {"default": "trades-default"}
    assert after.agents["trades"].persona == "trades-default"
    assert after.personas.keys() == {"trades-default"}


def test_an_agent_without_a_persona_does_not_get_the_default_one_of_the_manifest():
    text = OTHER + "personas:\n  default: {permissions: {allowed_tools: [Bash]}}\n"
    _, after = fit(text, {})
    assert after.personas[after.agents["trades"].persona] == Persona()


def test_the_same_persona_is_shared():
    text = OTHER + "personas:\n  careful: {permissions: {allowed_tools: [Read]}}\n"
    fitted, after = fit(text, {"persona": "careful"}, careful=READ)
    assert (fitted.renamed, fitted.header.personas) == ({}, {})
    assert after.agents["trades"].persona == "careful"


@pytest.mark.parametrize("text", ["", OTHER])
def test_a_persona_with_a_free_name_keeps_it(text):
    fitted, _ = fit(text, {"persona": "careful"}, careful=READ)
    assert fitted.renamed == {}
    assert fitted.header.personas == {"careful": READ}


def test_another_persona_with_the_same_name_stays_as_it_is():
    text = OTHER + "personas:\n  careful: {model: x}\n  trades-careful: {model: y}\n"
    _, after = fit(text, {"persona": "careful", "review": "careful"}, careful=READ)
    entry = after.agents["trades"]
    assert entry.persona == entry.review == "trades-careful-2"
    assert after.personas["careful"].model == "x"
    assert after.personas["trades-careful"].model == "y"


def test_a_persona_that_the_agent_does_not_use_is_not_added():
    fitted, after = fit(OTHER, {"persona": "careful"}, careful=READ, summarizer=BASH)
    assert fitted.unused == ("summarizer",)
    assert after.personas.keys() == {"careful"}


def test_a_persona_without_keys_stays_unusable():
    """The agent could not start with it, and does not get permissions by the import."""
    text = OTHER + "personas:\n  careful: {model: x}\n"
    _, after = fit(text, {"persona": "careful"})
    assert after.agents["trades"].persona not in after.personas


NAMES = st.sampled_from(["default", "summarizer", "a", "a-2", "trades-a", "trades-default"])
KEYS = st.sampled_from([{}, BASH, READ])
PERSONAS = st.dictionaries(NAMES, KEYS)
ITEMS = st.lists(
    st.one_of(
        st.just("codex"),
        st.fixed_dictionaries({"use": st.just("gemini")}, optional={"persona": NAMES}),
    ),
    min_size=1,
)
ENTRIES = st.fixed_dictionaries(
    {"harness": st.one_of(st.just("codex"), ITEMS)},
    optional={
        "persona": NAMES,
        "review": NAMES,
        "handover": st.one_of(
            st.just({"compaction": False}),
            st.fixed_dictionaries(
                {"compaction": st.fixed_dictionaries({}, optional={"persona": NAMES})}
            ),
        ),
    },
)


def list_permissions(found: Manifest, agent: str) -> list[object]:
    """Return the personas of an agent in each place that names one; None if there is none."""
    entry = found.agents[agent]
    compaction = entry.handover.compaction if entry.handover else None
    names = [
        entry.persona or "default",
        *(item.persona or "default" for item in entry.harnesses or ()),
    ]
    names += [entry.review] if entry.review else []
    if compaction and compaction.persona:
        names.append(compaction.persona)
    implied = {"default": Persona()}
    return [(found.personas.get(name) or implied.get(name)) for name in names]


@given(ENTRIES, PERSONAS, ENTRIES, PERSONAS)
def test_no_agent_gets_other_permissions(entry, personas, other, known):
    text = agent_export.add_settings("", make_header(other, known, "other"))
    before, header = manifest.parse(text), make_header(entry, personas)
    _, after = fit(text, entry, **personas)
    exported = agent_export.read_settings(header)
    assert list_permissions(after, "trades") == list_permissions(exported, "trades")
    assert after.agents["other"] == before.agents["other"]
    for name in find_all_personas(before) | {"default"}:
        assert after.personas.get(name) == before.personas.get(name)
    assert (
        find_agent_personas(after.agents["trades"])
        >= after.personas.keys() - before.personas.keys()
    )
