#!/bin/sh
# Build the kernel with sanitizers and run its tests with it. The package is copied, so that the working tree keeps its own build.
#   tools/sanitize.sh [pytest options]          AddressSanitizer, UndefinedBehaviorSanitizer and failing allocations
#   tools/sanitize.sh thread [pytest options]   ThreadSanitizer: threads of the kernel, and Python threads that call it at once
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kind=memory
if [ "${1:-}" = thread ]; then
  kind=thread
  shift
fi

build() { # sanitizers, further arguments of the compiler
  meson setup "$work/build" "$root" --buildtype=debugoptimized "-Db_sanitize=$1" -Db_lundef=false "-Dc_args=$2" >"$work/log" 2>&1 \
    || { cat "$work/log"; exit 1; }
  meson compile -C "$work/build" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  mkdir "$work/src"
  cp -r "$root/src/sobolev_novelty" "$work/src/"
  rm -f "$work"/src/sobolev_novelty/kernels/_native*
  cp "$work"/build/src/sobolev_novelty/kernels/native/_native*.so "$work/src/sobolev_novelty/kernels/"
}

library() { ${CC:-cc} -print-file-name="$1"; }

cd "$root"
export PYTHONPATH="$work/src${PYTHONPATH:+:$PYTHONPATH}"
uses_this_build="from sobolev_novelty.kernels import _native; assert _native.__file__.startswith('$work'), _native.__file__"

if [ "$kind" = thread ]; then
  build thread ""
  # Only the kernel is compiled for ThreadSanitizer: what others do to memory is not looked at, what they lock is. Reports go to
  # files, because pytest swallows what is written past it. The shadow memory needs a fixed layout of the address space.
  export TSAN_OPTIONS="ignore_noninstrumented_modules=1:log_path=$work/report"
  export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
  run() { setarch "$(uname -m)" -R env LD_PRELOAD="$(library libtsan.so)" python "$@"; }
  run -c "$uses_this_build"
  run -m pytest -q -p no:cacheprovider tests/kernels/test_kernel_threads.py "$@" || { cat "$work"/report* 2>/dev/null; exit 1; }
  if ls "$work"/report* >/dev/null 2>&1; then
    cat "$work"/report*
    exit 1
  fi
  exit
fi

build address,undefined -DSOBOLEV_FAULTS
# Python itself leaks by design; everything else ends the run.
export LD_PRELOAD="$(library libasan.so) $(library libubsan.so)"
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export PYTHONMALLOC=malloc
python -c "$uses_this_build"
python tests/fuzz/run.py --target kernels --seconds "${FUZZ_SECONDS:-20}" --seed "${FUZZ_SEED:-$(date +%s)}"
python -m pytest -q -p no:cacheprovider tests/kernels/test_kernels.py tests/kernels/test_kernel_arguments.py tests/kernels/test_kernel_novelties.py \
  tests/kernels/test_kernel_faults.py tests/metric/test_batch.py tests/search/fit/test_fitting.py "$@"
