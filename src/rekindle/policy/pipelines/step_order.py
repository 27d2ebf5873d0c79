"""Order a pipeline's steps: find the steps before each step, and any cycle."""

from collections.abc import Mapping, Sequence

Dependencies = Mapping[str, Sequence[str]]
"""Ids of the steps that each step depends on, by its own id. Every step has an entry."""


def find_cycle(dependencies: Dependencies) -> list[str]:
    """Return the steps in a cycle, each before the one it depends on, or [] if there is none."""
    finished = set[str]()
    for start in dependencies:
        path = list[str]()
        open_steps = [(start, iter(dependencies[start]))]
        while open_steps:
            step, rest = open_steps[-1]
            if not path or path[-1] != step:
                path.append(step)
            following = next((other for other in rest if other not in finished), None)
            if following is None:
                finished.add(step)
                path.pop()
                open_steps.pop()
            elif following in path:
                return path[path.index(following) :]
            else:
                open_steps.append((following, iter(dependencies[following])))
    return []


def list_ancestors(dependencies: Dependencies, step: str) -> set[str]:
    """Return all steps that finish before a step starts. There must be no cycle."""
    ancestors = set[str]()
    waiting = [*dependencies[step]]
    while waiting:
        ancestor = waiting.pop()
        if ancestor not in ancestors:
            ancestors.add(ancestor)
            waiting += dependencies[ancestor]
    return ancestors
