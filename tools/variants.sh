#!/bin/sh
# Build the kernel as other machines do and run its tests: gcc and clang, with and without libmvec, every instruction set of
# this processor. Each build is in a folder of its own; the working tree keeps its own.
#   tools/variants.sh                # all
#   tools/variants.sh gcc clang      # only these compilers
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"

build() { # compiler, libmvec
  folder="$work/$1-$2"
  CC=$1 meson setup "$folder/build" "$root" --buildtype=release "-Dlibmvec=$2" >"$work/log" 2>&1 || { cat "$work/log"; return 1; }
  meson compile -C "$folder/build" >"$work/log" 2>&1 || { cat "$work/log"; return 1; }
  mkdir "$folder/src"
  cp -r "$root/src/sobolev_novelty" "$folder/src/"
  rm -f "$folder"/src/sobolev_novelty/kernels/_native*
  cp "$folder"/build/src/sobolev_novelty/kernels/native/_native*.so "$folder/src/sobolev_novelty/kernels/"
}

tests() { # folder, instruction set
  PYTHONPATH="$1/src${PYTHONPATH:+:$PYTHONPATH}" SOBOLEV_SIMD=$2 python -c "
from sobolev_novelty.kernels.backend import backend
from sobolev_novelty.kernels import _native
assert _native.__file__.startswith('$work'), _native.__file__
found = backend()
print(f'   {found.instruction_set}, vector maths: {found.vector_maths}')"
  PYTHONPATH="$1/src${PYTHONPATH:+:$PYTHONPATH}" SOBOLEV_SIMD=$2 python -m pytest -q -p no:cacheprovider -x \
    tests/kernels/test_kernels.py tests/kernels/test_kernel_novelties.py tests/hostile/test_extremes.py
}

sets=baseline
grep -q avx2 /proc/cpuinfo 2>/dev/null && sets="$sets avx2"
grep -q avx512dq /proc/cpuinfo 2>/dev/null && sets="$sets avx512"

for compiler in ${*:-gcc clang}; do
  if ! command -v "$compiler" >/dev/null; then
    echo "$compiler is not installed: it is left out."
    continue
  fi
  for libmvec in true false; do
    echo "== $compiler, libmvec $libmvec"
    build "$compiler" "$libmvec"
    # Without libmvec all sets call the same scalar functions: the best one is enough.
    [ "$libmvec" = true ] && chosen=$sets || chosen=${sets##* }
    for set in $chosen; do tests "$work/$compiler-$libmvec" "$set"; done
  done
done
