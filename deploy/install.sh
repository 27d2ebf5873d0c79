#!/bin/sh
# Install Rekindle into a virtual environment, with the dependencies that requirements/ pins by hash.
#
#   install.sh dependencies TARGET   make the environment, and install the dependencies
#   install.sh package TARGET        build the package from this folder, and install it
#
# The Dockerfile and `just image` both run this, so both get the same environment.
set -eu
step=$1 target=$2
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1
case $step in
dependencies)
    "${PYTHON:-python3}" -m venv "$target"
    "$target/bin/python" -m pip install --quiet --require-hashes --only-binary :all: \
        -r requirements/fleet.txt
    ;;
package)
    tools=$(mktemp -d)
    trap 'rm -rf "$tools"' EXIT
    "$target/bin/python" -m venv "$tools/venv"
    "$tools/venv/bin/python" -m pip install --quiet --require-hashes --only-binary :all: \
        -r requirements/build.txt
    # The build must not fetch tools that are not pinned.
    "$tools/venv/bin/python" -m pip wheel --quiet --no-deps --no-build-isolation -w "$tools" .
    "$target/bin/python" -m pip install --quiet --no-deps --no-index "$tools"/*.whl
    "$target/bin/python" -m pip check
    ;;
*)
    echo "unknown step: $step" >&2
    exit 2
    ;;
esac
