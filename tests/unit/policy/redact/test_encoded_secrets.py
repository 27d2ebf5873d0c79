"""Secrets in base64 and in hexadecimal dumps."""

import base64

from rekindle.policy.redact.encoded_secrets import find_encoded

ENV_FILE = "NODE_ENV=production\nDB_PASSWORD=hunter2\n"


def find(text):
    spans = find_encoded(text, lambda decoded: "DB_PASSWORD" in decoded)
    return [text[start:end] for start, end, _ in spans]


def test_base64_of_a_secret_is_found():
    encoded = base64.b64encode(ENV_FILE.encode()).decode()
    assert find(f"$ base64 .env\n{encoded}\n") == [encoded]
    assert find(base64.b64encode(b"NODE_ENV=production and nothing").decode()) == []


def test_lines_of_base64_are_decoded_together():
    encoded = base64.b64encode(ENV_FILE.encode()).decode()
    lines = [encoded[:28], encoded[28:52], encoded[52:]]
    assert find("\n".join(lines)) == lines
    assert find("\n".join((lines[0], "x" * 80, lines[1]))) == []


def test_both_columns_of_a_dump_are_found():
    data = ENV_FILE.encode()
    rows = [data[at : at + 16] for at in range(0, len(data), 16)]
    shown = [(row.hex(" ", 2), row.decode().replace("\n", ".")) for row in rows]
    dump = "\n".join(f"{16 * n:08x}: {h:<39}  {text}" for n, (h, text) in enumerate(shown))
    assert find(dump) == [column for row in shown for column in row]
