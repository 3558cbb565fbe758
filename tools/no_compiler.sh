#!/bin/sh
# Build a wheel where there is no C compiler, install it into a fresh environment, and run tests on the installed package.
#   tools/no_compiler.sh [PYTHON]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/source"
(cd "$root" && git archive HEAD) | tar x -C "$work/source" --exclude=results --exclude=docs
"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet -c "$root/constraints.txt" meson-python meson ninja
# Meson looks for these names; a path without a compiler is what a plain machine has.
mkdir "$work/bin"
for tool in sh env git uname; do ln -s "$(command -v $tool)" "$work/bin/$tool"; done
PATH="$work/venv/bin:$work/bin" "$work/venv/bin/python" -m pip wheel --quiet --no-deps --no-build-isolation \
  --wheel-dir "$work/wheels" "$work/source"
ls "$work/wheels"
"$work/venv/bin/python" -m pip install --quiet -c "$root/constraints.txt" "$(ls "$work"/wheels/*.whl)[test]"
cd "$work/source"
unset PYTHONPATH
"$work/venv/bin/python" -c "
from sobolev_novelty.kernels.backend import backend
found = backend()
assert found.name == 'numpy', found
print(found.reason)"
"$work/venv/bin/python" -m pytest -q -p no:cacheprovider tests/test_terms.py tests/test_projection.py tests/test_batch.py \
  tests/test_guidance.py
