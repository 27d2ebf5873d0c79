# Every recipe runs in the project's own environment, which `just setup` makes.
python := ".venv/bin/python"
again := "REKINDLE_MEASURES_AGAIN=1 .venv/bin/python -m pytest -s --last-failed --last-failed-no-failures all"
compile := ".venv/bin/uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11"

price_tools := ".venv/bin/uv run -q --isolated --no-project --with genai-prices --with msgspec --with PyYAML --with tzdata"

# Without bytecode, each command that a test starts would compile all of its modules.
export PYTHONDONTWRITEBYTECODE := ""

# List the recipes.
default:
    @just --list

# Make .venv, with the pinned dependencies and the project itself.
setup:
    bash .ci/setup

# Run the pure tests, which start no process: after each change.
unit *args:
    {{python}} -m pytest -q -n 2 -m pure {{args}} tests/unit

# Run the pure tests on every supported Python that is installed; --newest: on the newest.
pythons *args:
    {{python}} tools/pythons.py {{args}}

# Run all tests but the sweeps and the timings.
test *args:
    {{python}} -m pytest -n 2 -m "not torture and not bench" {{args}}

# Play cells of the survival benchmark that have no result yet: `just survival [TOOL] [FAULT]`.
survival *args:
    PYTHONPATH=tests {{python}} -m survival {{args}}

# Let Rekindle work through faults for 24 simulated hours with each CLI: `just soak [--cli CLI]`.
soak *args:
    PYTHONPATH=tests {{python}} -m survival.soak {{args}}

# Play the recorded launches again, and store the results: `just record [CLI] [CASE...]`.
record *names:
    {{python}} tests/recordings/record.py {{names}}

# Measure the load of running agents on the engine, before and after: `just fleet-load [--agents N]`.
fleet-load *args:
    PYTHONPATH=tests {{python}} tests/fleet/load.py {{args}}

# Run agents on a real engine, and store their histories for this version.
record-fleet *lives:
    PYTHONPATH=tests {{python}} tests/fleet/record.py {{lives}}

# Record the metrics of three real hosts through each fault, for the tests of the alert rules.
record-alerts *faults:
    PYTHONPATH=tests {{python}} tests/fleet/record_alerts.py {{faults}}

# Build, start and stop a real Temporal cluster over PostgreSQL: `just cluster --help`.
cluster *args:
    PYTHONPATH=tests {{python}} -m fleet.cluster {{args}}

# Measure times, as ratios within one run; run nothing else beside it.
bench *args:
    {{python}} -m pytest -m bench -s {{args}}

# Run the complete sweeps: kill every write at every system call, and more rounds of each test.
torture *args:
    REKINDLE_TORTURE=whole {{python}} -m pytest -m torture -s --timeout 3600 {{args}}

# Change the pure modules in one place at a time, and list the changes that no test notices.
mutate *args:
    PYTHONPATH=tests {{python}} tests/mutation/mutate.py {{args}}

# Measure how many secrets of the evaluation sets are found, by kind, form and context.
redaction:
    PYTHONPATH=tests {{python}} tests/corpus/test_secrets.py

# Fit the weights that tell stalls from progress, and measure them on labelled histories.
stalls:
    {{python}} tools/fit_stalls.py

# Measure how many ends that agents report in their own words are recognized.
ends:
    PYTHONPATH=tests {{python}} tests/corpus/test_claimed_end.py

# Check format, lint rules and layers.
lint:
    {{python}} -m ruff format --check .
    {{python}} -m ruff check .
    .venv/bin/lint-imports

# Check types.
types:
    {{python}} -m mypy

# Write the generated pages of docs/; --check: fail if they are not current.
docs *args:
    {{python}} tools/generate.py {{args}}

# Make the table of list prices again, from the newest prices that are published.
prices:
    {{price_tools}} python tools/prices.py

# Print the message of every common mistake.
errors:
    REKINDLE_PRINTS_ERRORS=1 {{python}} -m pytest -q -n 0 --no-header tests/unit/cli/test_error_messages.py

# Draw the picture of the README from a run of the demo.
picture:
    {{python}} tools/demo_svg.py

# Take the pictures of the screens from a recorded night; FOLDER: of all pages at all widths, there.
pictures *folder:
    {{python}} tools/pictures.py {{folder}}

# Build the site in build/site/site, with warnings as errors, and check its links.
site:
    {{python}} tools/site.py

# Check the workflows in .github (needs Go).
actions:
    go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

# Build wheel and source distribution in dist/; with a tag such as v0.1.0, only for that version.
build tag="":
    {{python}} tools/release.py build {{tag}}

# Build the image of deploy/, or without a Docker engine its contents; then try them.
image *args:
    {{python}} tools/image.py {{args}}

# Write the bill of materials of the package to build/sbom.cdx.json.
sbom:
    {{python}} tools/release.py sbom

# Install everything on a bare Debian machine, and run what CI runs.
ci:
    bash .ci/run

# Run what CI runs.
[parallel]
check: lint types (docs "--check") site (pythons "--newest")
    # A busy machine can make a timing fail, so a failed one is measured again, alone, at most twice.
    {{python}} -m pytest -m "bench and not alone" -n 2 --dist loadfile -rP || {{again}} -m "bench and not alone" || {{again}} -m "bench and not alone"
    {{python}} -m pytest -m alone -s tests/fleet || {{again}} -m alone tests/fleet || {{again}} -m alone tests/fleet
    # Most tests wait for a program, a timeout or a disk, so four workers share two cores. The pure
    # tests have passed on the newest Python.
    REKINDLE_TESTS_IN_MEMORY=1 {{python}} -m pytest -n 4 --dist worksteal -m "not bench and not pure" || REKINDLE_TESTS_IN_MEMORY=1 REKINDLE_REPEATS_FAILED=1 {{python}} -m pytest -m "not bench and not pure" --last-failed --last-failed-no-failures none

# Pin the dependencies; the files name no index.
lock:
    {{compile}} pyproject.toml -o requirements/runtime.txt
    {{compile}} --all-extras pyproject.toml requirements/dev.in -o requirements/dev.txt
    {{compile}} --extra fleet -c requirements/dev.txt pyproject.toml -o requirements/fleet.txt
    {{compile}} -c requirements/dev.txt requirements/build.in -o requirements/build.txt
    {{compile}} -c requirements/dev.txt requirements/docs.in -o requirements/docs.txt
