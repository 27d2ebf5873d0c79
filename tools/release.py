"""Build the package, or write its bill of materials."""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
SBOM = ROOT / "build/sbom.cdx.json"
PROGRAMS = Path(sys.executable).parent


def read_version() -> str:
    """Return the version of the package."""
    [version] = re.findall(
        r'^__version__ = "(.+)"$', (ROOT / "src/rekindle/__init__.py").read_text(), re.MULTILINE
    )
    return str(version)


def build(tag: str) -> None:
    """Build wheel and source distribution in dist/, with the pinned tools, and check both."""
    if tag not in ("", f"v{read_version()}"):
        raise SystemExit(f"the tag is {tag}, but the version of the package is {read_version()}")
    shutil.rmtree(DIST, ignore_errors=True)
    # The environment has the pinned build backend; isolation would fetch the newest one.
    build = [PROGRAMS / "uv", "build", "-q", "--no-build-isolation", "-p", sys.executable]
    subprocess.run([*build, "-o", DIST, ROOT], check=True)
    built = sorted([*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")])
    subprocess.run([PROGRAMS / "twine", "check", "--strict", *built], check=True)


def describe_materials() -> dict[str, object]:
    """Return the bill of materials, as CycloneDX: the package and its pinned dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    package = _describe(project["name"], read_version()) | {
        "type": "application",
        "licenses": [{"expression": project["license"]}],
    }
    pins = re.findall(
        r"^([\w.-]+)==([^\s;]+)", (ROOT / "requirements/runtime.txt").read_text(), re.MULTILINE
    )
    components = [_describe(name, version) for name, version in pins]
    names = [component["bom-ref"] for component in components]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": package},
        "components": components,
        "dependencies": [{"ref": package["bom-ref"], "dependsOn": names}],
    }


def _describe(name: str, version: str) -> dict[str, object]:
    address = f"pkg:pypi/{name.lower()}@{version}"
    return {
        "type": "library",
        "bom-ref": address,
        "name": name,
        "version": version,
        "purl": address,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build").add_argument("tag", nargs="?", default="")
    commands.add_parser("sbom")
    arguments = parser.parse_args()
    if arguments.command == "build":
        build(arguments.tag)
        return
    SBOM.parent.mkdir(exist_ok=True)
    SBOM.write_text(json.dumps(describe_materials(), indent=2) + "\n")
    print(SBOM)


if __name__ == "__main__":
    main()
