#!/bin/sh
# Build the kernel with AddressSanitizer, UndefinedBehaviorSanitizer and failing allocations, and run its tests with it.
# The package is copied, so that the working tree keeps its own build.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

meson setup "$work/build" "$root" --buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-DSOBOLEV_FAULTS >"$work/log" 2>&1 \
  || { cat "$work/log"; exit 1; }
meson compile -C "$work/build" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
mkdir "$work/src"
cp -r "$root/src/sobolev_novelty" "$work/src/"
rm -f "$work"/src/sobolev_novelty/kernels/_native*
cp "$work"/build/src/sobolev_novelty/kernels/native/_native*.so "$work/src/sobolev_novelty/kernels/"

# Python itself leaks by design; everything else ends the run.
cd "$root"
export LD_PRELOAD="$(${CC:-cc} -print-file-name=libasan.so) $(${CC:-cc} -print-file-name=libubsan.so)"
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export PYTHONPATH="$work/src" PYTHONMALLOC=malloc
python -c "from sobolev_novelty.kernels import _native; assert _native.__file__.startswith('$work'), _native.__file__"
python tests/fuzz/run.py --target kernels --seconds "${FUZZ_SECONDS:-20}" --seed "${FUZZ_SEED:-$(date +%s)}"
python -m pytest -q -p no:cacheprovider tests/test_kernels.py tests/test_kernel_novelties.py tests/test_kernel_faults.py tests/test_batch.py tests/test_fitting.py "$@"
