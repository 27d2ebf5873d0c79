"""Define an agent on a fleet for each line of a file, run all, and report how each ended.

python define_many_agents.py HOST:PORT TASKS HARNESS [COMMAND...]
"""

import sys
from pathlib import Path

import rekindle

address, tasks, harness, *command = sys.argv[1:]
specs = [
    rekindle.AgentSettings(
        name=f"task-{number}",
        harness=harness,
        command=command,
        task=line,
        budget=rekindle.Budget(tokens=1_000_000),
    )
    for number, line in enumerate(Path(tasks).read_text().splitlines(), 1)
]

with rekindle.connect(fleet=address, team="tasks") as fleet:
    defined = fleet.define_all(specs)
    for name, error in defined.failed.items():
        print(f"{name}: {error} → {error.hint}")
    waiting = {*defined.done, *defined.unchanged}
    fleet.run(waiting, cycles=1).require()
    for change in fleet.watch(team="tasks"):
        if change.kind in {"ended", "question"} and change.row.agent in waiting:
            waiting.discard(change.row.agent)
            print(f"{change.row.agent}: {change.row.state}: {change.row.reason}")
        if not waiting:
            break
