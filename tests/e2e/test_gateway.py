"""Real CLIs whose keys are outside their sandbox."""

import json
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import prerequisites
import rekindle
from e2e import helped_run
from e2e.handing import KINDS, MECHANICAL
from loopback.anthropic import Anthropic
from loopback.gemini import Gemini
from loopback.model import Model
from loopback.openai import OpenAI
from loopback.script import Text
from rekindle.policy.sandbox.gateway_access import PLACEHOLDER
from rekindle.system.sandbox import probe
from tls_host import make_tls

pytestmark = pytest.mark.timeout(300)

SECRET = "sk-real-b2c1d0e9f8"  # noqa: S105 - not a key
DIALECTS = {
    "claude": (Anthropic, "ANTHROPIC_BASE_URL", "", ("x-api-key", SECRET)),
    "codex": (OpenAI, "OPENAI_BASE_URL", "/v1", ("authorization", f"Bearer {SECRET}")),
    "gemini": (Gemini, "GOOGLE_GEMINI_BASE_URL", "", ("x-goog-api-key", SECRET)),
}
SEARCH = """\
import json, os, pathlib, sys, urllib.request
words = {"key": sys.argv[1][::-1].encode(), "placeholder": sys.argv[2][::-1].encode()}
passed = {"/usr", "/proc", "/sys", "/dev", "/opt", "/etc", *sys.argv[4:]}
proc = pathlib.Path("/proc")
files = [*proc.glob("[0-9]*/environ"), *proc.glob("[0-9]*/cmdline")]
for folder, folders, names in os.walk("/"):
    folders[:] = [one for one in folders if os.path.join(folder, one) not in passed]
    files += [pathlib.Path(folder, one) for one in names]
found, looked = {word: [] for word in words}, 0
for file in files:
    try:
        data = file.read_bytes() if file.parts[1] == "proc" or file.is_file() else b""
    except OSError:
        continue
    looked += 1
    for name, word in words.items():
        if word in data:
            found[name].append(str(file))
for name in ("NO_PROXY", "no_proxy"):
    os.environ.pop(name)
try:
    tunnel = str(urllib.request.urlopen(sys.argv[3], timeout=5).status)
except OSError as error:
    tunnel = str(error)
mine = {name: os.environ.get(name, "") for name in ("SSH_AUTH_SOCK", "GIT_ASKPASS")}
report = {"found": found, "looked": looked, "tunnel": tunnel, "mine": mine}
pathlib.Path("report.json").write_text(json.dumps(report))
"""


@pytest.fixture(autouse=True)
def _bubblewrap():
    obstacle = probe.find_obstacle()
    prerequisites.require(obstacle.words if obstacle else None)


class Helped:
    """An agent of a real CLI, a model with a certificate, and a credential helper."""

    def __init__(self, request, kind, model, ca):
        made, _ = KINDS[kind]
        cli, place = request.getfixturevalue(kind), request.getfixturevalue("place")
        self.host, self.ca = urlsplit(model.url).netloc, ca
        self.found = made(cli, place, model)
        self.found.begin(80, runtime=f"{MECHANICAL}, restart: {{cooldown: 0s}}")
        manifest = self.found.project / "rekindle.yaml"
        manifest.write_text(manifest.read_text().replace("cycles: 1", "cycles: 1\n    sandbox: on"))
        _, self.variable, self.path, self.header = DIALECTS[kind]
        self.folder = cli.home.parent / "helper"
        self.folder.mkdir()

    def help(self, script: str) -> Path:
        program = self.folder / "helper"
        program.write_text(f"#!/bin/sh\ncat >{self.folder}/asked\n{script}\n")
        program.chmod(0o755)
        return program

    def print_key(self, host: str = "", value: str = "") -> str:
        header, usual = self.header
        output = {
            "env": {self.variable: f"https://{self.host}{self.path}"},
            "keys": {host or self.host: {"header": header, "value": value or usual}},
            "expires": "2999-01-01T00:00:00Z",
        }
        (self.folder / "output").write_text(json.dumps(output))
        return f"cat {self.folder}/output"

    def run(self, program: Path):
        cli = self.found.cli
        started = self.found.rekindle.place.start(
            [sys.executable, "-P", helped_run.__file__, str(program), str(self.ca)],
            env=cli.environment(LC_ALL="C.UTF-8", SSH_AUTH_SOCK="/run/agent", GIT_ASKPASS="/x"),
            cwd=self.found.project,
        )
        code = started.wait()
        return code, started.out + started.err


@pytest.fixture
def helped(request, network, tmp_path):
    kind = request.param
    (tmp_path / "tls").mkdir()
    tls, ca = make_tls(tmp_path / "tls")
    listener = tls.wrap_socket(network.listen(0), server_side=True)
    with Model(DIALECTS[kind][0](), listener) as model:
        yield Helped(request, kind, model, ca)


@pytest.mark.parametrize("helped", ["claude", "codex", "gemini"], indirect=True)
def test_the_model_gets_the_key_and_the_agent_only_a_placeholder(helped):
    found = helped.found
    (found.project / "search.py").write_text(SEARCH)
    package, programs = str(Path(rekindle.__file__).parent), str(found.cli.program.parents[3])
    passed = {sys.prefix, sys.base_prefix, package, programs}
    words = [SECRET[::-1], PLACEHOLDER[::-1], f"https://{helped.host}/", *passed]
    found.model.play(
        found.bash(f"{sys.executable} search.py {' '.join(words)}"),
        Text("all done"),
    )
    code, told = helped.run(helped.help(helped.print_key()))
    assert code == 0, told
    assert found.model.secrets == {helped.header}
    report = json.loads((found.project / "report.json").read_text())
    assert report["found"]["key"] == []
    assert report["looked"] > 20
    assert report["found"]["placeholder"], "the search must be able to find something"
    assert "403" in report["tunnel"], "the model's host is reached only through the gateway"
    assert report["mine"] == {"SSH_AUTH_SOCK": "", "GIT_ASKPASS": ""}
    assert SECRET not in told
    asked = json.loads((helped.folder / "asked").read_text())
    assert asked.pop("launch")
    assert asked == {
        "agent": "trades",
        "team": "red",
        "harness": found.HARNESS,
        "repository": "https://example.com/repository",
    }
    state = [path for path in (found.project / ".rekindle").rglob("*") if path.is_file()]
    assert state
    assert not [path for path in state if SECRET.encode() in path.read_bytes()]


@pytest.mark.parametrize("helped", ["claude"], indirect=True)
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo sk-printed; exit 3", "failed with exit code 3"),
        ("echo sk-printed", "printed something else than the expected JSON"),
        ("", "printed no key for"),
    ],
)
def test_without_usable_credentials_no_launch_starts(helped, script, reason):
    """The host has a key in its environment, which is not used instead."""
    found = helped.found
    assert "ANTHROPIC_API_KEY" in found.cli.environment()
    code, told = helped.run(helped.help(script or helped.print_key(host="api.example.org")))
    assert code == 1
    assert "CredentialsError: the credential helper" in told
    assert reason in told
    assert " → " in told
    assert "sk-" not in told
    assert found.rekindle.events("launch.started") == []
    assert found.model.log.main == []
