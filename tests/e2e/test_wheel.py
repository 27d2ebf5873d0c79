"""The built package, as a user gets it: in an environment of its own, far from the source."""

import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")


def load_release():
    spec = importlib.util.spec_from_file_location("rekindle_release", ROOT / "tools/release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """Build the source distribution, and the wheel from it; `twine check` accepts both."""
    release = load_release()
    release.DIST = tmp_path_factory.mktemp("dist")
    release.build(f"v{release.read_version()}")
    return release.DIST


@pytest.fixture(scope="module")
def wheel(dist):
    [wheel] = dist.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory):
    """Install the wheel and its pinned dependencies from wheels alone, and return its programs."""
    place = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([UV, "venv", "-q", "-p", sys.executable, place], check=True)
    install = [UV, "pip", "install", "-q", "-p", place, "--only-binary", ":all:"]
    pinned = ["--require-hashes", "-r", ROOT / "requirements/runtime.txt"]
    subprocess.run([*install, *pinned], check=True)
    subprocess.run([*install, "--no-deps", wheel], check=True)
    return place / "bin"


def run(*argv, cwd, **environment):
    """Run a program without compilers or the tests' environment on its PATH."""
    ended = subprocess.run(
        argv,
        cwd=cwd,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(cwd),
            "LC_ALL": "C.UTF-8",
            **environment,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_both_programs_print_their_help(programs, tmp_path):
    printed = [
        run(programs / name, "--help", cwd=tmp_path) for name in ("rekindle", "rekindle-agents")
    ]
    assert printed[0] == printed[1]
    assert "Usage: rekindle [OPTIONS] COMMAND" in printed[0]


def test_it_can_be_imported(programs, tmp_path):
    """Every module can be imported, but for those of extras and of other systems."""
    code = (
        "import importlib, pathlib, rekindle\n"
        "others = {'fleet', 'fleet_agent', 'fleet_changes', 'web', 'terminal_screen',"
        " 'psutil_processes'}\n"
        "root = pathlib.Path(rekindle.__file__).parent\n"
        "paths = [path.relative_to(root.parent).with_suffix('') for path in root.rglob('*.py')]\n"
        "names = ['.'.join(path.parts) for path in paths if not others & {*path.parts}]\n"
        "names = [name.removesuffix('.__init__') for name in names if '__main__' not in name]\n"
        "[importlib.import_module(name) for name in names]\n"
        "print(len(names), rekindle.__version__, root)\n"
    )
    count, version, folder = run(programs / "python", "-c", code, cwd=tmp_path).split()
    assert int(count) > 300
    assert version == load_release().read_version()
    assert Path(folder).is_relative_to(programs.parent)


def test_it_contains_the_files_of_the_screens(wheel):
    static = ROOT / "src/rekindle/web/static"
    names = {f"rekindle/web/static/{path.name}" for path in static.iterdir()}
    assert len(names) > 10
    names.add("rekindle/terminal_screen/top.tcss")
    assert names <= {*zipfile.ZipFile(wheel).namelist()}


def test_it_completes_in_a_shell(programs, tmp_path):
    """Bash loads its script, and asks it for the commands."""
    line = 'eval "$(_REKINDLE_COMPLETE=bash_source rekindle)" && complete -p rekindle'
    path = f"{programs}:/usr/bin:/bin"
    assert "_rekindle_completion" in run("bash", "-c", line, cwd=tmp_path, PATH=path)
    words = {"COMP_WORDS": "rekindle doc", "COMP_CWORD": "1"}
    asked = {"_REKINDLE_COMPLETE": "bash_complete", **words}
    assert run(programs / "rekindle", cwd=tmp_path, **asked) == "plain,doctor\n"


def test_uvx_runs_the_demonstration(wheel, tmp_path):
    """The first command of the README works without an install."""
    command = ["tool", "run", "-q", "--python", sys.executable, "--from", wheel, "rekindle-agents"]
    # The environment has the settings of uv: a cache, certificates, an index.
    printed = run(UV, *command, "demo", cwd=tmp_path, **os.environ)
    assert "6 chapters were written in 2 sessions" in printed


@pytest.mark.parametrize(
    "platform", ["aarch64-manylinux2014", "x86_64-manylinux2014", "aarch64-apple-darwin"]
)
@pytest.mark.parametrize("version", ["3.11", "3.14"])
def test_no_dependency_needs_a_compiler(platform, version, tmp_path):
    """There is a wheel of each one for the oldest and the newest Python, and a Mac."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    supported = [f"Programming Language :: Python :: {version}"]
    assert set(supported) <= set(project["classifiers"])
    install = [UV, "pip", "install", "--dry-run", "--target", tmp_path]
    wanted = ["--python-version", version, "--python-platform", platform]
    pinned = ROOT / "requirements/runtime.txt"
    ended = subprocess.run(
        [*install, *wanted, "--only-binary", ":all:", "--require-hashes", "-r", pinned],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert " + click==" in ended.stderr
    assert (" + psutil==" in ended.stderr) == ("apple" in platform)


def test_the_package_index_can_show_the_readme(wheel):
    """No link or picture of it is relative: the index has no files beside it."""
    [name] = [one for one in zipfile.ZipFile(wheel).namelist() if one.endswith("/METADATA")]
    text = zipfile.ZipFile(wheel).read(name).decode()
    assert "Description-Content-Type: text/markdown" in text
    targets = re.findall(r"!?\[[^]]*\]\(([^)]+)\)", text) + re.findall(
        r'(?:src|href)="([^"]+)', text
    )
    assert len(targets) > 10
    assert [one for one in targets if not one.startswith(("https://", "#"))] == []
    links = re.findall(r"rekindle-agents/rekindle/(?:blob|raw)/main/([^)#\s]+)", text)
    assert links
    assert all((ROOT / link).exists() for link in links)


def test_the_archives_have_what_they_should(dist, wheel):
    """Code, types, license and notices; no tests, no caches."""
    names = zipfile.ZipFile(wheel).namelist()
    assert {"rekindle/py.typed", "rekindle/__main__.py"} <= set(names)
    licenses = {Path(name).name for name in names if "/licenses/" in name}
    assert licenses == {"LICENSE", "THIRD_PARTY_NOTICES.md"}
    assert all(name.startswith(("rekindle/", "rekindle_agents-")) for name in names)
    [source] = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        packed = archive.getnames()
    assert {Path(name).parts[1] for name in packed if len(Path(name).parts) > 1} >= {
        "src",
        "README.md",
        "pyproject.toml",
        "THIRD_PARTY_NOTICES.md",
    }
    assert not [name for name in [*names, *packed] if "__pycache__" in name or "tests/" in name]
