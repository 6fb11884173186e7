#!/usr/bin/env bash
# The Python package as a user meets it: a fresh environment, pip, the tests, the tutorial.
# usage: python.sh TAILWATER
#
# CARGO_TARGET_DIR and MATURIN_PEP517_ARGS go through to the build: with "--profile dev" it shares what `cargo build` and
# `cargo test` have compiled; without, the wheel is the one that people install.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "$1")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

python3 -m venv "$place/venv"
pip() { "$place/venv/bin/pip" --quiet --disable-pip-version-check "$@"; }
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target} pip install "./crates/python[notebook]"
# The tutorial runs with what the package asked for, and the means to run a notebook.
pip install nbclient nbformat
"$place/venv/bin/python" tests/python/notebook.py docs/tutorial.ipynb
pip install pandas polars pyarrow pytest "distributed>=2024"
TAILWATER="$program" timeout 900 "$place/venv/bin/python" -m pytest -q -p no:cacheprovider -o faulthandler_timeout=300 tests/python
