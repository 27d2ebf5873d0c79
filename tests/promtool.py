"""Prometheus's own program, which checks rules and evaluates them."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

import prerequisites


def promtool(*arguments: str, text: str | None = None) -> tuple[int, str]:
    """Run promtool; return its exit code and all that it printed."""
    program = shutil.which("promtool")
    if program is None:
        prerequisites.refuse("promtool is not installed: `.ci/run` shows how")
    done = subprocess.run(
        [str(program), *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


def check_rules(folder: Path, expressions: list[str]) -> tuple[int, str]:
    """Check expressions as recording rules, with Grafana's variables replaced."""
    rules = [
        {
            "record": f"check:{place}",
            "expr": re.sub(r"\$\w+", "x", expression.replace("$__rate_interval", "5m")),
        }
        for place, expression in enumerate(expressions)
    ]
    path = folder / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "checked", "rules": rules}]}))
    return promtool("check", "rules", str(path))


def try_rules(folder: Path, rules: Path, tests: list[dict[str, Any]]) -> str:
    """Evaluate the rules in tests of promtool's format; return what is wrong, or ""."""
    path = folder / "test.yml"
    content = {"rule_files": [str(rules)], "evaluation_interval": "15s", "tests": tests}
    path.write_text(yaml.safe_dump(content))
    code, said = promtool("test", "rules", str(path))
    return said if code else ""
