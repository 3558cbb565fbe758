#!/bin/sh
# Two wheels, each installed into a fresh environment and tested where there is no C compiler: one built with a compiler, which
# brings the compiled kernel along, and one built without, which falls back to NumPy.
#   tools/no_compiler.sh [PYTHON]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH
export PIP_CONSTRAINT="$root/constraints.txt"

mkdir "$work/source" "$work/bin"
(cd "$root" && git archive HEAD) | tar x -C "$work/source" --exclude=results --exclude=docs
"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet meson-python meson ninja

# What a plain machine has on its path.
for tool in sh env git uname; do ln -s "$(command -v $tool)" "$work/bin/$tool"; done
without_compiler() { env CC=/bin/false PATH="$work/venv/bin:$work/bin" "$work/venv/bin/python" "$@"; }
wheel="-m pip wheel --quiet --no-deps --no-build-isolation"
PATH="$work/venv/bin:$PATH" "$work/venv/bin/python" $wheel --wheel-dir "$work/native" "$work/source"
without_compiler $wheel --wheel-dir "$work/numpy" "$work/source"
"$work/venv/bin/python" -m pip install --quiet "$(ls "$work"/native/*.whl)[test]"

cd "$work/source"
rm -r src # the installed package is what is tested
for kernel in native numpy; do
  echo "== $(basename "$work/$kernel"/*.whl), $kernel kernel"
  without_compiler -m pip install --quiet --no-deps --force-reinstall "$work/$kernel"/*.whl
  without_compiler -c "
import shutil
from sobolev_novelty.kernels import backend
assert not any(shutil.which(name) for name in ('cc', 'gcc', 'clang', 'c99')), 'there is a compiler'
found = backend()
assert found.name == '$kernel', found
print(found.reason)"
  without_compiler -m pytest -q -p no:cacheprovider tests/algebra/test_terms.py tests/core/test_projection.py tests/metric/test_batch.py \
    tests/metric/test_guidance.py tests/kernels/test_kernels.py tests/search/fit/test_fitting.py
done
