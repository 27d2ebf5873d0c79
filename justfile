# Every recipe runs in the project's own environment: `just setup` makes it.
python := ".venv/bin/python"
compile := ".venv/bin/uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11"

# Where bytecode is not written, each command that a test starts compiles all of its modules.
export PYTHONDONTWRITEBYTECODE := ""

# List the recipes.
default:
    @just --list

# Make .venv with everything pinned, and the project itself in it.
setup:
    bash .ci/setup

# The pure tests: no process, no corpus, no sweep. For each save of a file.
unit *args:
    {{python}} -m pytest -q -n 2 -m pure {{args}} tests/unit

# The pure tests on every supported Python that is installed; --newest: only on the newest.
pythons *args:
    {{python}} tools/pythons.py {{args}}

# All tests but the sweeps and the timings.
test *args:
    {{python}} -m pytest -n 2 -m "not torture and not bench" {{args}}

# Play the recorded launches again, and store the results: `just record [CLI] [CASE...]`.
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

# Change the pure modules in one place at a time: which changes does no test notice?
mutate *args:
    PYTHONPATH=tests {{python}} tests/mutation/mutate.py {{args}}

# How much of the evaluation sets is caught, by kind, form and surroundings.
redaction:
    PYTHONPATH=tests {{python}} tests/corpus/test_secrets.py

# How well stalls are told from progress in labelled histories, thresholds fitted elsewhere.
stalls:
    {{python}} tests/corpus/test_stall.py

# How many ends that agents report in their own words are recognised, on held-out sets.
ends:
    PYTHONPATH=tests {{python}} tests/corpus/test_claimed_end.py

lint:
    {{python}} -m ruff format --check .
    {{python}} -m ruff check .
    .venv/bin/lint-imports

types:
    {{python}} -m mypy

# Write the generated parts of docs/; with --check, only say whether they have drifted.
docs *args:
    {{python}} tools/generate.py {{args}}

# Print the message of every common mistake.
errors:
    REKINDLE_PRINTS_ERRORS=1 {{python}} -m pytest -q -n 0 --no-header tests/unit/cli/test_error_messages.py

# Draw the picture of the README from a run of the demo.
picture:
    {{python}} tools/demo_svg.py

# Build the site in build/site/site, with warnings as errors, and check its links.
site:
    {{python}} tools/site.py

# Check the workflows in .github (needs Go).
actions:
    go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

# Build wheel and source distribution in dist/; with a tag such as v0.1.0, only for that version.
build tag="":
    {{python}} tools/release.py build {{tag}}

# Write the bill of materials of the package to build/sbom.cdx.json.
sbom:
    {{python}} tools/release.py sbom

# Everything, from a bare Debian machine.
ci:
    bash .ci/run

# What CI runs.
check: lint types (docs "--check") site (pythons "--newest")
    # A busy neighbour can push a timing over its bar: a failed one is measured once more, alone. A
    # bar that is really broken fails twice; a test that is not a timing is not tried again.
    {{python}} -m pytest -m "bench and not alone" -n 2 --dist loadfile -rP || REKINDLE_MEASURES_AGAIN=1 {{python}} -m pytest -m "bench and not alone" -s --last-failed --last-failed-no-failures all
    {{python}} -m pytest -m alone -s || REKINDLE_MEASURES_AGAIN=1 {{python}} -m pytest -m alone -s --last-failed --last-failed-no-failures all
    # Most of a test's time is waiting for a program, a timeout or a disk: four workers share two
    # cores. A worker that has nothing left takes tests from the one that has most.
    REKINDLE_TESTS_IN_MEMORY=1 {{python}} -m pytest -n 4 --dist worksteal -m "not bench"

# Pin the dependencies; the files name no index.
lock:
    {{compile}} pyproject.toml -o requirements/runtime.txt
    {{compile}} --all-extras pyproject.toml requirements/dev.in -o requirements/dev.txt
    {{compile}} -c requirements/dev.txt requirements/docs.in -o requirements/docs.txt
