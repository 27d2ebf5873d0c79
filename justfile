# Every recipe runs in the project's own environment: `just setup` makes it.
python := ".venv/bin/python"

# List the recipes.
default:
    @just --list

# Make .venv with everything pinned, and the project itself in it.
setup:
    bash .ci/setup

# All tests but the sweeps and the timings.
test *args:
    {{python}} -m pytest -n 2 -m "not torture and not bench" {{args}}

# Play the recorded launches again, and keep them anew: `just record [CLI] [CASE...]`.
record *names:
    {{python}} tests/recordings/record.py {{names}}

# Play agents' lives on a real engine again, and keep their histories for this version.
record-fleet *lives:
    PYTHONPATH=tests {{python}} tests/fleet/record.py {{lives}}

# Timings, as ratios taken in one run; nothing else should run beside them.
bench *args:
    {{python}} -m pytest -m bench -s {{args}}

# The whole sweeps: every system call of every write killed, and more rounds of everything.
torture *args:
    REKINDLE_TORTURE=whole {{python}} -m pytest -m torture -s --timeout 3600 {{args}}

# How much of the evaluation sets is caught, by kind, form and surroundings.
redaction:
    PYTHONPATH=tests {{python}} tests/corpus/test_secrets.py

# How well stalls are told from progress in labelled histories, thresholds fitted elsewhere.
stalls:
    {{python}} tests/corpus/test_stall.py

lint:
    {{python}} -m ruff format --check .
    {{python}} -m ruff check .
    .venv/bin/lint-imports

types:
    {{python}} -m mypy

# Write the generated parts of docs/; with --check, only say whether they have drifted.
docs *args:
    {{python}} docs/generate.py {{args}}

# What CI runs.
check: lint types (docs "--check")
    # A busy neighbour can push a timing over its bar: what failed is measured once more, alone. A
    # bar that is really broken fails twice; what is not a timing is not tried again.
    {{python}} -m pytest -m bench -s || REKINDLE_MEASURES_AGAIN=1 {{python}} -m pytest -m bench -s --last-failed --last-failed-no-failures all
    REKINDLE_TESTS_IN_MEMORY=1 {{python}} -m pytest -n 2 -m "not bench"

# Pin the dependencies anew; the files name no index.
lock:
    uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 pyproject.toml -o requirements/runtime.txt
    uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 --all-extras pyproject.toml requirements/dev.in -o requirements/dev.txt
