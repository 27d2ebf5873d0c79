"""A pipeline step, with everything that its checks need."""

from collections.abc import Iterable
from difflib import get_close_matches

import msgspec

from rekindle.documents.manifest import Manifest, Persona
from rekindle.documents.manifest_pipelines import Pipeline, PipelineStep
from rekindle.errors import ManifestError
from rekindle.formats.yaml_lines import MarkedData
from rekindle.policy.settings.runtime_settings import AgentDefaults

_OUR_FOLDERS = {".git", ".rekindle"}


class StepContext(msgspec.Struct, frozen=True):
    manifest: Manifest
    marked: MarkedData
    name: str
    """Name of the pipeline."""
    number: int
    """Position of the step in the pipeline, starting at 0."""

    @property
    def pipeline(self) -> Pipeline:
        return self.manifest.pipelines[self.name]

    @property
    def step(self) -> PipelineStep:
        return self.pipeline.steps[self.number]

    def refuse(self, *keys: str | int, message: str, hint: str) -> ManifestError:
        """Return an error about one of the step's keys."""
        return ManifestError(
            f"step {self.step.id}: {message}",
            file=self.marked.file,
            line=self.marked.line(("pipelines", self.name, "steps", self.number, *keys)),
            hint=hint,
        )

    def find_persona(self, name: str | None) -> Persona | None:
        """Return the persona with this name, or None if there is none."""
        default = AgentDefaults().persona
        named = self.manifest.personas.get(name or default)
        return Persona() if named is None and name in {None, default} else named

    def find_harness(self, name: str | None) -> str | None:
        """Return the persona's CLI, or the only one that agents use, or None."""
        persona = self.find_persona(name)
        if persona is not None and persona.adapter:
            return persona.adapter
        used = {agent.harness for agent in self.manifest.agents.values()}
        return used.pop() if len(used) == 1 else None


def suggest_name(name: str, names: Iterable[str], otherwise: str) -> str:
    """Suggest the most similar name, or all names; return `otherwise` if there are no names."""
    listed = list(names)
    similar = get_close_matches(name, listed, n=1)
    if similar:
        return f"did you mean `{similar[0]}`?"
    return f"use one of: {', '.join(listed)}" if listed else otherwise


def explain_path(path: str) -> str:
    """Explain why a path is not a usable file in the folder, or return "" if it is."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in {"", "."}]
    if not parts or not path.strip() or "\0" in path:
        return "is not a file"
    if path.startswith(("/", "\\", "~")) or parts[0].endswith(":"):
        return "is outside the folder"
    if ".." in parts:
        return "leaves the folder"
    return f"is in {parts[0]}, which is not for steps" if parts[0] in _OUR_FOLDERS else ""
