"""`rekindle redact`: text in, text without secrets out."""

import io
import json
import sys

import pytest

from fakes import fakes
from rekindle.cli import main


@pytest.fixture
def redact(tmp_path, monkeypatch, capfdbinary):
    """Run the command on some bytes, from a file or from standard input."""
    monkeypatch.chdir(tmp_path)

    def run(data, *options, file=True):
        if file:
            (tmp_path / "in.txt").write_bytes(data)
            code = main.run(["redact", "in.txt", *options])
        else:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
            code = main.run(["redact", *options])
        said = capfdbinary.readouterr()
        assert code == 0, said.err
        return said.out

    return run


@pytest.mark.parametrize("file", [True, False])
def test_everything_but_secrets_passes_byte_for_byte(redact, file):
    """Broken UTF-8, carriage returns and a missing last newline come out unchanged."""
    (fake,) = fakes(8, 1)
    around = b"\xff\xfe caf\xc3\xa9\r\n%s\x00 tail \x80"
    out = redact(around % fake.line.encode(), file=file)
    assert fake.secret.encode() not in out
    before, after = out.split(b"[redacted:github-token:")
    assert before.startswith(b"\xff\xfe caf\xc3\xa9\r\n")
    assert after[4:] == b"] for now\x00 tail \x80"
    assert redact(b"\xff no secret \x80", file=file) == b"\xff no secret \x80"


def test_findings_name_line_and_character(redact):
    """Lines end at a newline only and count from 0; offsets are characters of the line."""
    made = list(fakes(9, 40))
    lines = [f"é{chr(0x2028)}\x0b 😀 {fake.line}" for fake in made]
    text = "\n".join(["nothing here", *lines])
    rows = [json.loads(row) for row in redact(text.encode(), "--json").splitlines()]
    assert {row["line"] for row in rows} == set(range(1, len(made) + 1))
    for row in rows:
        assert set(row) == {"line", "start", "end", "rule"}
    for number, fake in enumerate(made, 1):
        line = text.split("\n")[number]
        hidden = "".join(line[r["start"] : r["end"]] for r in rows if r["line"] == number)
        assert fake.secret in hidden


def test_the_project_s_allow_list_counts(redact, tmp_path):
    """If there is a manifest, the texts that it allows stay."""
    (fake,) = fakes(10, 1)
    (tmp_path / "rekindle.yaml").write_text(f'version: 1\nredact: {{allow: ["{fake.secret}"]}}\n')
    assert redact(fake.line.encode()) == fake.line.encode()
    assert redact(fake.line.encode(), "--json") == b""
