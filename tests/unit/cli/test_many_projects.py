"""Several projects on one host: the folders that the user trusts are the register."""

import json
import shutil
import signal

import pytest

from rekindle import config
from rekindle.cli import main
from rekindle.cli.live_screen import fit_lines
from rekindle.documents import events
from rekindle.documents.screens.morning_page import (
    MorningEntry,
    MorningPage,
    NightLine,
    PersonRequest,
    merge,
)
from rekindle.system import clock
from rekindle.system.files import user_folder
from rekindle.wiring.access import trust_checks
from rekindle.wiring.open_store import open_store
from unit.cli.running.test_run_command import (
    MANIFEST,
    Project,
)


@pytest.fixture(autouse=True)
def register():
    """Hide other tests' projects from the register while this one runs."""
    projects = user_folder.make_user_folder() / "projects"
    aside = projects.with_name("projects-aside")
    if projects.exists():
        projects.rename(aside)
    yield projects
    shutil.rmtree(projects, ignore_errors=True)
    if aside.exists():
        aside.rename(projects)


@pytest.fixture
def rekindle(tmp_path, monkeypatch, capfd):
    """Run a command in a folder; return its exit code, output and errors."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CLAUDE_CONFIG_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "REKINDLE_AGENT"):
        monkeypatch.delenv(name, raising=False)

    def run(folder, *arguments):
        monkeypatch.chdir(folder)
        code = main.run(list(arguments))
        said = capfd.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def two(rekindle, tmp_path):
    """Create two projects with an agent each."""
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
        assert rekindle(folder, "init", "--yes", "--agent", folder.name)[0] == 0
        (folder / "relay.md").write_text(f"## Next Action\nTend to {folder.name} now\n")
        assert rekindle(folder, "relay", "set", "relay.md")[0] == 0
    return folders


def test_trusted_folders_are_the_register(two, tmp_path):
    """A folder that was never accepted, or was replaced by another one, is not listed."""
    (tmp_path / "third").mkdir()
    (tmp_path / "third/rekindle.yaml").write_text("version: 1\n")
    assert trust_checks.list_trusted() == two
    two[0].rename(tmp_path / "moved")
    assert trust_checks.list_trusted() == two[1:]
    two[0].mkdir()
    assert trust_checks.list_trusted() == two[1:]


def test_one_status_and_one_page_for_all_projects(rekindle, two, tmp_path):
    """They work in any folder; an unreadable project hides none of the others."""
    code, out, err = rekindle(tmp_path, "status", "--all")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0] == "2 projects, 2 agents: 2 stopped"
    assert lines[1].split()[:4] == ["project", "agent", "state", "reason"]
    for folder, line in zip(two, lines[2:], strict=True):
        assert line.split()[:3] == [folder.name, folder.name, "stopped"]
        assert f"Tend to {folder.name}"[:12] in line
    page = json.loads(rekindle(tmp_path, "brief", "--all-projects", "--json")[1])
    assert [one["agent"] for one in page["entries"]] == ["first/first", "second/second"]
    html = rekindle(tmp_path, "brief", "--all-projects", "--html", "-")[1]
    assert html.count("<article") == 2
    (two[0] / "rekindle.yaml").write_text("what is this\n")
    shown = json.loads(rekindle(tmp_path, "status", "--all", "--json")[1])["projects"]
    assert [one["project"] for one in shown] == [str(folder) for folder in two]
    assert ("error" in shown[0], [one["agent"] for one in shown[1]["agents"]]) == (True, ["second"])
    lines = rekindle(tmp_path, "status", "--all")[1].splitlines()
    assert lines[0] == "2 projects, 1 agent: 1 stopped; 1 project cannot be read"
    assert lines[2].split()[:3] == ["first", "-", "broken"]
    assert lines[-1].startswith("→ first: ")
    code, out, _ = rekindle(tmp_path, "brief", "--all-projects")
    assert code == 0
    assert "first/-: broken" in out or f"{two[0]}/-: broken" in out
    assert "second/second" in out


def test_without_a_trusted_project_the_page_names_the_first_step(rekindle, two, tmp_path):
    for folder in two:
        folder.rename(tmp_path / f"moved-{folder.name}")
    code, out, err = rekindle(tmp_path, "brief", "--all-projects")
    assert (code, out) == (2, "")
    assert "no project is trusted on this host" in err
    assert "rekindle init" in err


def test_a_total_comes_first_and_then_the_agents_that_need_a_person(rekindle, two, tmp_path):
    """The next command can be typed in any folder."""
    store = open_store(config.load_project(two[1]))
    with store.writer("second") as writer:
        now = clock.read_clock()
        writer.append(
            events.RunStarted(ts=now),
            events.SafeModeEntered(ts=now, why="auth", words="not logged in"),
        )
    code, out, err = rekindle(tmp_path, "status", "--all")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0] == "2 projects, 2 agents: 1 needs you, 1 stopped"
    assert [line.split()[0] for line in lines[2:4]] == ["second", "first"]
    assert lines[4:] == [f"→ cd {two[1]} && rekindle restart second && rekindle run second"]


def test_lines_that_do_not_fit_the_screen_are_counted():
    lines = [(f"line {number}",) for number in range(10)]
    assert fit_lines(lines, 10) == lines
    assert fit_lines(lines, 4) == [*lines[:3], ("… 7 more lines",)]


def test_every_command_on_the_page_names_the_folder():
    """This includes the command that writes a brief, and the one that lists loops."""
    entry = MorningEntry(
        agent="a",
        state="stopped",
        why="",
        brief="none yet: rekindle brief a",
        open_loops=("x: rekindle is slow", "and 3 more: rekindle loops -a a"),
        night=(
            NightLine("earlier", "24 more: rekindle logs a"),
            NightLine("01:00", "x: rekindle y"),
        ),
    )
    page = merge({"/p": MorningPage(project="p", written="Monday", entries=(entry,))})
    assert page.entries[0].brief == "none yet: cd /p && rekindle brief a"
    assert page.entries[0].open_loops == (
        "x: rekindle is slow",
        "and 3 more: cd /p && rekindle loops -a a",
    )
    assert [moment.text for moment in page.entries[0].night] == [
        "24 more: cd /p && rekindle logs a",
        "x: rekindle y",
    ]


def test_a_command_on_the_page_names_the_folder():
    """It can be typed in any folder; agents that wait for a person come first."""
    asks = (
        PersonRequest("is it done?", "rekindle resolve old REASON"),
        PersonRequest("which one?"),
    )
    calm = MorningEntry(agent="a", state="done", why="")
    page = merge(
        {
            "/calm": MorningPage(project="calm", written="Monday", entries=(calm,)),
            "/it's": MorningPage(
                project="its",
                written="Monday",
                entries=(MorningEntry(agent="b", state="stopped", why="", asks=asks),),
            ),
        }
    )
    assert [one.agent for one in page.entries] == ["its/b", "calm/a"]
    command = "cd '/it'\"'\"'s' && rekindle resolve old REASON"
    assert [ask.command for ask in page.entries[0].asks] == [command, ""]


def test_one_unit_for_all_projects(rekindle, two, tmp_path):
    """It starts `rekindle daemon --all`, outside of every project, and is removed again."""
    unit = tmp_path / "home/.config/systemd/user/rekindle.service"
    code, out, err = rekindle(tmp_path, "service", "install", "--all", "--kind", "systemd")
    assert (code, str(unit) in out) == (0, True), err
    text = unit.read_text()
    assert '"rekindle" "daemon" "--all"' in text
    assert "all trusted projects" in text
    assert not any(str(folder) in text for folder in two)
    assert rekindle(tmp_path, "service", "uninstall", "--all", "--kind", "systemd")[0] == 0
    assert not unit.exists()
    assert rekindle(tmp_path, "service", "install", "--all", "--briefs")[0] == 2


def test_one_daemon_starts_the_supervisors_of_all_projects(place, tmp_path):
    """Both were killed; a project that is trusted later is watched too."""
    made = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        project = Project(place, tmp_path / name)
        (project.path / "rekindle.yaml").write_text(MANIFEST + "runtime:\n  watch: {every: 0.2s}\n")
        project.claude('open(f"up-{os.getppid()}", "w").close()\ntime.sleep(600)\n')
        made.append(project)

    def came_up(project):
        return {int(path.name.split("-")[1]) for path in project.path.glob("up-*")}

    daemon = None
    for project in made:
        project("up")
        place.wait_for(lambda project=project: came_up(project) or None)
        daemon = daemon or project.start("daemon", "--all")
    for project in made:
        (supervisor,) = came_up(project)
        place.signal(supervisor, signal.SIGKILL)
    for project in made:
        place.wait_for(lambda project=project: len(came_up(project)) == 2 or None, 20)
        assert f"✓ {project.path}: trades: started" in daemon.out
    second = made[0].start("daemon", "--all")
    assert (second.wait(), "is already running" in second.err) == (2, True)
    for project in made:
        project("stop")
