"""Find the agent that a session belongs to, from the launch or from the working directory."""

import os

from rekindle.hook.host_facts import find_user_folder, identify_host, is_locked, is_name, read_file
from rekindle.hook.session_primer import start_program
from rekindle.hook.special_events import PRIMED_EVENTS
from rekindle.hook.timeouts import PATIENCE_SECONDS, call_after, exit_now

DIRS_BYTES = 256 * 1024
DIR_FIELDS = 3
"""Number of fields in a line that describes an agent's folder."""


def find_folder(harness: str, event: str, agent_dir: str = "") -> str:
    """Return the folder of this session's agent, or "" if it is ambiguous.

    It is the launch's agent or, without a launch, the agent that works in the session's folder.
    Hooks that name an agent (`agent_dir`) ignore sessions in another agent's folder.
    """
    folder = os.environ.get("REKINDLE_FOLDER") or ""
    if not folder:
        place = os.path.realpath(read_variable(harness, "PROJECT_DIR") or ".")
        agents, _, named = agent_dir.rpartition("/") if agent_dir else (find_agents(place), "", "")
        dirs = read_dirs(agents, event)
        name = choose_agent(dirs, list_names(agents), place, harness, named)
        folder = f"{agents}/{name}" if name else ""
        # A parent folder may belong to another user, whose projects do not count.
        if folder and not agent_dir and os.lstat(folder).st_uid != os.getuid():
            return ""
    return folder if folder and has_no_links(folder) else ""


def find_agents(place: str) -> str:
    """Return the agents folder of the closest project at or above `place`, or ""."""
    while place:
        agents = f"{place}/.rekindle/agents"
        if os.path.isdir(agents):  # noqa: PTH112 - pathlib slows the start
            return agents
        place = place.rpartition("/")[0]
    return ""


def list_names(agents: str) -> list[str]:
    try:
        return [name for name in os.listdir(agents) if is_name(name)]  # noqa: PTH208 - pathlib slows the start
    except OSError:
        return []


def choose_agent(
    dirs: list[list[str]], names: list[str], place: str, harness: str, named: str = ""
) -> str:
    """Return the name of the agent that works in `place`, or "" unless there is exactly one."""
    if len(dirs) > 1:
        working_here = choose_agents(dirs, place)
        if named:
            return named if not working_here or named in working_here else ""
        names = [name for name in choose_agents(dirs, place, harness) if name in names]
    if named:
        return named
    return names[0] if len(names) == 1 else ""


def choose_agents(dirs: list[list[str]], place: str, harness: str = "") -> list[str]:
    """Return the agents that work in `place`.

    This is `policy.setup.agent_dirs.choose_agents` without its imports.
    """
    inside = place.rstrip("/") + "/"
    around = [entry for entry in dirs if inside.startswith(entry[2].rstrip("/") + "/")]
    depth = max([len(entry[2].rstrip("/")) for entry in around], default=0)
    innermost = [entry for entry in around if len(entry[2].rstrip("/")) == depth]
    same = [entry for entry in innermost if entry[1] == harness]
    return [entry[0] for entry in same or innermost]


def read_dirs(agents: str, event: str) -> list[list[str]]:
    """Return the name, harness and folder of each agent in rekindle.yaml.

    The main program writes this list when a session starts, so changes to the manifest only affect
    later sessions.
    """
    root = agents.rpartition("/")[0]
    project = root.rpartition("/")[0]
    try:
        status = os.stat(f"{project}/rekindle.yaml")  # noqa: PTH116 - pathlib slows the start
    except OSError:
        return []
    head = f"1 {status.st_mtime_ns} {status.st_size} {os.path.realpath(project)}"
    lines = read_lines(f"{root}/dirs")
    if lines[0] != head and (event in PRIMED_EVENTS or event.startswith("SessionStart")):
        start_program("rekindle.wiring.agent_dir_list", project, b"")
        call_after(PATIENCE_SECONDS, exit_now)
        lines = read_lines(f"{root}/dirs")
    return [words for line in lines[1:] if len(words := line.split(" ", 2)) == DIR_FIELDS]


def read_lines(path: str) -> list[str]:
    try:
        return os.fsdecode(read_file(path, DIRS_BYTES)).split("\n")
    except OSError:
        return [""]


def has_no_links(folder: str) -> bool:
    """Return whether an agent's folders are real folders, because a link could lead anywhere.

    Missing folders are accepted. Writing to them fails later.
    """
    root = folder.rpartition("/")[0]
    for path in (root.rpartition("/")[0], root, folder, f"{folder}/run", f"{folder}/run/inbox"):
        try:
            if os.lstat(path).st_mode & 0o170000 != 0o040000:  # noqa: PLR2004 - mode of a folder
                return False
        except FileNotFoundError:
            if path == folder:
                return False
    return True


def is_supervised(folder: str) -> bool:
    """Return whether a supervisor is running. Its outer lock survives if the folder is wiped."""
    return is_locked(f"{folder}/run/supervisor") or is_locked(find_outer_lock(folder))


def find_outer_lock(folder: str) -> str:
    """Return the path of the supervisor's lock outside the project, or "" if there is none.

    This is `stores.files.supervisor_locks.find_outer_lock` without its imports.
    """
    agents, _, name = folder.rpartition("/")
    try:
        project = os.stat(agents.rpartition("/")[0].rpartition("/")[0] or ".")  # noqa: PTH116 - pathlib slows the start
    except OSError:
        return ""
    return (
        f"{find_user_folder()}/locks/{identify_host()}-{project.st_dev:x}-{project.st_ino:x}-{name}"
    )


def read_variable(harness: str, name: str) -> str:
    """Return one of the CLI's environment variables, which start with the harness's first word.

    Variables from a parent CLI are ignored, because they describe another process and folder.
    """
    return os.environ.get(f"{harness.partition('-')[0].upper()}_{name}", "")
